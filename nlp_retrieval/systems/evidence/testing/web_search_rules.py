"""The rules of search engines: addresses of the web, best first, each once, and no more than were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from nlp_retrieval.errors import QueryError
from nlp_retrieval.systems.evidence.web_research.searching.base import BaseWebSearch, WebResult
from nlp_retrieval.systems.evidence.web_research.web.target import web_url
from nlp_retrieval.testing import QUERIES, SILENT, UNKNOWN, ComponentRules, broken, in_threads, shown, without_warnings


class WebSearchRules(ComponentRules):
    """Rules of what finds pages of the web."""

    component: ClassVar[type[BaseWebSearch]]

    def make(self) -> BaseWebSearch:
        return self.component()

    def known_queries(self) -> Sequence[str]:
        """Return queries, one or more, for which :meth:`make`'s search engine finds a page."""
        raise NotImplementedError

    def test_known_queries_find_addresses_of_the_web(self) -> None:
        engine = self.make()
        for query in self.known_queries():
            with without_warnings():
                found = engine.find(query, 10)
            if not isinstance(found, list) or not found or not all(isinstance(one, WebResult) for one in found):
                broken("find returns a list of WebResult", engine, f"{query!r}: {shown(found)}")
            if not any(web_url(one.url) for one in found):
                broken("what is found has http or https addresses", engine, f"{query!r}: {shown(found)}")

    def test_titles_and_snippets_are_text(self) -> None:
        engine = self.make()
        for query in self.known_queries():
            for one in engine.find(query, 10):
                if not all(isinstance(text, str) for text in (one.url, one.title, one.snippet)):
                    broken("address, title and snippet are text, empty where there is none", engine, f"{query!r}: {shown(one)}")

    def test_any_query_is_answered(self) -> None:
        engine = self.make()
        for query in (*QUERIES, *SILENT, UNKNOWN, "\u202e\u200b\x00", "x " * 2000):
            with without_warnings():
                found = engine.search(query, 3)
            addresses = [web_url(one.url) for one in found]
            if len(found) > 3 or len(set(addresses)) != len(addresses):
                broken("at most k pages are found, each once", engine, f"{shown(query)}: {shown(found)}")

    def test_a_query_that_is_no_text_is_refused(self) -> None:
        engine = self.make()
        for query, k in (("\ud800", 3), (5, 3), ("fox", 0)):
            try:
                found: object = engine.search(query, k)  # type: ignore[arg-type]
            except QueryError:
                continue
            broken("what is no text, or a k below 1, is a QueryError", engine, f"{query!r}, {k}: {shown(found)}")

    def test_the_same_query_twice_finds_the_same(self) -> None:
        engine = self.make()
        for query in self.known_queries():
            one, other = engine.search(query, 10), engine.search(query, 10)
            if one != other:
                broken("the same query finds the same pages", engine, f"{query!r}: {shown(one)}, then {shown(other)}")

    def test_threads_find_what_one_finds(self) -> None:
        engine = self.make()
        calls = [partial(engine.search, query, 10) for query in self.known_queries()]
        wanted = [call() for call in calls]
        for number, found in in_threads(calls):
            if found != wanted[number]:
                broken("a search engine is safe in several threads at once", engine, shown(found))
