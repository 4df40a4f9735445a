"""The rules of fetchers: a page with its address and its bytes, or an error that says why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import ClassVar

from nlp_retrieval.errors import FetchError, FetchRefusedError
from nlp_retrieval.systems.evidence.web_research.fetching.base import BaseFetcher, FetchedPage
from nlp_retrieval.systems.evidence.web_research.web.target import web_url
from nlp_retrieval.testing import ComponentRules, broken, in_threads, shown

_NO_PAGES = (
    "",
    "page",
    "/etc/passwd",
    "file:///etc/passwd",
    "ftp://a.example/",
    "javascript:alert(1)",
    "https://",
    "https://user:word@a.example/",
    "https://a.example/\r\nX: y",
    "\ud800",
)


class FetcherRules(ComponentRules):
    """Rules of what fetches pages."""

    component: ClassVar[type[BaseFetcher]]

    def make(self) -> BaseFetcher:
        return self.component()

    def known_urls(self) -> Sequence[str]:
        """Return addresses, one or more, at which :meth:`make`'s fetcher finds a page."""
        raise NotImplementedError

    def missing_url(self) -> str:
        """Return an address of the web at which it finds none."""
        return "https://nowhere.invalid/zyzzyva"

    def test_a_page_has_bytes_a_type_and_where_and_when_it_was_read(self) -> None:
        fetcher = self.make()
        for url in self.known_urls():
            page = fetcher.fetch_page(url)
            fine = isinstance(page, FetchedPage) and isinstance(page.content, bytes) and isinstance(page.media_type, str)
            if not fine or page.asked_url != url or web_url(page.url) is None or not _is_date(page.fetch_date):
                broken(
                    "a page has bytes, a media type, both addresses, and a date of ISO 8601", fetcher, f"{url!r}: {shown(page)}"
                )

    def test_what_is_no_address_of_the_web_is_refused(self) -> None:
        fetcher = self.make()
        for url in _NO_PAGES:
            try:
                found: object = fetcher.fetch(url)
            except FetchRefusedError:
                continue
            except Exception as error:
                found = error
            broken("what is no address of the web is a FetchRefusedError", fetcher, f"{url!r}: {shown(found)}")

    def test_a_page_that_is_not_there_is_a_fetch_error(self) -> None:
        fetcher = self.make()
        try:
            found: object = fetcher.fetch_page(self.missing_url())
        except FetchError:
            return
        except Exception as error:
            found = error
        broken("a page that is not there is a FetchError", fetcher, f"{self.missing_url()!r}: {shown(found)}")

    def test_the_same_page_twice_has_the_same_bytes(self) -> None:
        fetcher = self.make()
        for url in self.known_urls():
            one, other = fetcher.fetch(url), fetcher.fetch(url)
            if (one.content, one.url, one.media_type) != (other.content, other.url, other.media_type):
                broken("a page that did not change is fetched alike", fetcher, f"{url!r}: {shown(one)}, then {shown(other)}")

    def test_threads_get_the_pages_of_one(self) -> None:
        fetcher = self.make()
        calls = [partial(fetcher.fetch, url) for url in self.known_urls()]
        wanted = [call().content for call in calls]
        for number, found in in_threads(calls):
            if found.content != wanted[number]:
                broken("a fetcher is safe in several threads at once", fetcher, shown(found))


def _is_date(text: object) -> bool:
    try:
        datetime.fromisoformat(str(text))
    except ValueError:
        return False
    return True
