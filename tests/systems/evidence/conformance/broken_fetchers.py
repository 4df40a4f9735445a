"""Fetchers and search engines that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools
import threading
import time

from conformance.breaking import breaks

from nlp_retrieval.errors import FetchError
from nlp_retrieval.systems.evidence.testing import FetcherRules, WebSearchRules
from nlp_retrieval.systems.evidence.web_research.fetching import BaseFetcher, FetchedPage
from nlp_retrieval.systems.evidence.web_research.searching import BaseWebSearch, WebResult

_counter = itertools.count()
_PAGES = {"https://a.example/1": b"one", "https://a.example/2": b"two"}


class OfTwoPages(BaseFetcher):
    """Has two pages; keeps every rule.

    Args:
        media_type: of both.
    """

    def __init__(self, media_type: str = "text/plain") -> None:
        self.media_type = media_type

    def fetch(self, url):
        if url not in _PAGES:
            raise FetchError(f"{url}: there is no such page")
        return FetchedPage(url, url, _PAGES[url], self.media_type, "2026-01-19T14:30:00Z")


class _Rules(FetcherRules):
    def known_urls(self):
        return list(_PAGES)


@breaks(_Rules, "test_a_page_has_bytes_a_type_and_where_and_when_it_was_read", "yesterday")
class SaysYesterday(OfTwoPages):
    def fetch(self, url):
        return FetchedPage(url, url, b"x", "text/plain", "yesterday")


@breaks(_Rules, "test_a_page_that_is_not_there_is_a_fetch_error", "KeyError")
class LooksUpWithoutAsking(OfTwoPages):
    def fetch(self, url):
        return FetchedPage(url, url, _PAGES[url], "text/plain", "2026-01-19")


@breaks(_Rules, "test_the_same_page_twice_has_the_same_bytes")
class CountsItsVisitors(OfTwoPages):
    def fetch(self, url):
        return FetchedPage(url, url, str(next(_counter)).encode(), "text/plain", "2026-01-19")


@breaks(_Rules, "test_threads_get_the_pages_of_one")
class KeepsItsAddressInItself(OfTwoPages):
    def fetch(self, url):
        self.url = url
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)
        return super().fetch(self.url)


class OfTwoResults(BaseWebSearch):
    """Finds a page that is named after the query, and another; keeps every rule.

    Args:
        host: of both.
    """

    def __init__(self, host: str = "a.example") -> None:
        self.host = host

    def search(self, query, k=10):
        return [WebResult(f"https://{self.host}/{len(query)}"), WebResult(f"https://{self.host}/all", "All", "A page.")][:k]


class _SearchRules(WebSearchRules):
    def known_queries(self):
        return ["foxes", "an owl"]


@breaks(_SearchRules, "test_known_queries_find_addresses_of_the_web", "file:///")
class FindsFiles(OfTwoResults):
    def search(self, query, k=10):
        return [WebResult("file:///etc/passwd")]


@breaks(_SearchRules, "test_any_query_is_answered", "UnicodeEncodeError")
class AsksInAscii(OfTwoResults):
    def search(self, query, k=10):
        return super().search(query.encode("ascii").decode(), k)


@breaks(_SearchRules, "test_the_same_query_twice_finds_the_same")
class FindsSomethingNewEachTime(OfTwoResults):
    def search(self, query, k=10):
        return [WebResult(f"https://a.example/{next(_counter)}")]


@breaks(_SearchRules, "test_threads_find_what_one_finds")
class KeepsItsQueryInItself(OfTwoResults):
    def search(self, query, k=10):
        self.query = query
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)
        return super().search(self.query, k)
