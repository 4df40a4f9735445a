"""Every search engine keeps every rule."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from nlp_retrieval.systems.evidence.testing import WebSearchRules
from nlp_retrieval.systems.evidence.web_research.searching import FolderSearch, SearxngSearch
from systems.evidence.web_research.web_server import Page, WebServer, web_server

_SERVERS: list[WebServer] = []
_ROWS = [{"url": f"https://a.example/{n}", "title": f"Page {n}", "content": "Foxes sleep."} for n in range(4)]


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    with web_server() as running:
        running.pages["/search"] = Page(json.dumps({"results": _ROWS}).encode(), media_type="application/json")
        _SERVERS.append(running)
        yield


class TestFolderSearch(WebSearchRules):
    component = FolderSearch

    def prepare(self):
        (self.folder / "a.example").mkdir()
        for number, text in enumerate(["Foxes sleep by day.", "Owls wake by night.", "A fox and an owl."]):
            (self.folder / "a.example" / f"{number}.txt").write_text(text)

    def make(self):
        return FolderSearch(str(self.folder))

    def known_queries(self):
        return ["foxes", "owl", "night"]


class TestSearxngSearch(WebSearchRules):
    component = SearxngSearch

    def make(self):
        return SearxngSearch(_SERVERS[-1].url)

    def known_queries(self):
        return ["foxes", "foxes & owls?"]
