"""Every fetcher keeps every rule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nlp_retrieval.systems.evidence.testing import FetcherRules
from nlp_retrieval.systems.evidence.web_research.fetching import FolderFetcher, HttpFetcher
from systems.evidence.web_research.web_server import WebServer, html, web_server

_SERVERS: list[WebServer] = []


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    with web_server() as running:
        running.pages |= {"/a": html("Foxes sleep."), "/b?c=1": html("Owls wake.")}
        _SERVERS.append(running)
        yield


class TestFolderFetcher(FetcherRules):
    component = FolderFetcher

    def prepare(self):
        (self.folder / "a.example").mkdir()
        (self.folder / "a.example" / "one.html").write_text("<p>Foxes sleep.</p>")
        (self.folder / "two.txt").write_text("Owls wake.")
        (self.folder / "manifest.csv").write_text("file,url\ntwo.txt,https://b.example/two\n")

    def make(self):
        return FolderFetcher(str(self.folder))

    def known_urls(self):
        return ["https://a.example/one.html", "https://b.example/two"]


class TestHttpFetcher(FetcherRules):
    component = HttpFetcher

    def make(self):
        return HttpFetcher(private_hosts=[f"127.0.0.1:{_SERVERS[-1].port}"])

    def known_urls(self):
        return [f"{_SERVERS[-1].url}/a"]

    def missing_url(self):
        return f"{_SERVERS[-1].url}/nowhere"
