"""A SearXNG server is asked, and what it answers is data."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from nlp_retrieval.errors import ConfigurationError, FetchError, QueryError, RetrievalWarning
from nlp_retrieval.systems.evidence.web_research.searching import SearxngSearch, WebResult, find_pages

from .web_server import Page, WebServer, redirect


def answer(*results: object) -> Page:
    return Page(json.dumps({"query": "x", "results": list(results)}).encode(), media_type="application/json")


def row(url: object, title: object = "") -> dict[str, object]:
    return {"url": url, "title": title, "content": "", "engine": "e", "score": 1.0}


def test_results_come_in_order_each_page_once_and_only_addresses_of_the_web_pass(web: WebServer) -> None:
    hostile = ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "https://user:word@a.example/", "", "\u202e"]
    web.pages["/search"] = answer(
        row("https://a.example/1", "One"), row("http://a.example:80/1#x", "Again"), *(row(url) for url in hostile), row(None),
        row(["https://a.example/"]), "https://a.example/", None, [], row("https://c.example/", {"a": 1}),
        row("https://b.example/", "T\x1b[31m\u202e\n" + "t" * 5000),
    )  # fmt: skip
    with pytest.warns(RetrievalWarning, match="results dropped.*such as 'javascript"):
        first, untitled, long = find_pages(SearxngSearch(web.url), "fox & dog?", 10)
    assert (first, untitled) == (WebResult("https://a.example/1", "One"), WebResult("https://c.example/"))
    assert long.title.startswith("T[31m")
    assert len(long.title) <= 300
    asked = urlsplit(web.asked[0])
    assert asked.path == "/search"
    assert parse_qs(asked.query) == {"q": ["fox & dog?"], "format": ["json"]}


def test_settings_are_asked_for_and_a_path_before_the_search_is_kept(web: WebServer) -> None:
    web.pages["/find/search"] = answer()
    for url in (f"{web.url}/find/", f"{web.url}/find", f"{web.url}/find/search"):
        assert SearxngSearch(url, language="de-CH").search("fox") == []
        assert parse_qs(urlsplit(web.asked[-1]).query) == {"q": ["fox"], "format": ["json"], "language": ["de-CH"]}


def test_what_is_no_answer_is_an_error_that_says_what_to_do(web: WebServer) -> None:
    for page, message in (
        (Page(status=403), "search.formats"),
        (redirect("http://127.0.0.1:1/search"), "status 302"),
        (Page(b"<html>results</html>"), "not JSON.*search.formats"),
        (Page(b"[" * 100_000, media_type="application/json"), "not JSON"),
        (Page(b'{"results": {}}', media_type="application/json"), "list of"),
        (Page(b"[", media_type="application/json", again=b" " * 65_536), "larger than"),
    ):
        web.pages["/search"] = page
        with pytest.raises(FetchError, match=message):
            SearxngSearch(web.url).search("fox")
    assert all(path.startswith("/search?") for path in web.asked)
    with pytest.raises(FetchError, match="no complete answer"):
        SearxngSearch("http://127.0.0.1:1").search("fox")


def test_an_address_that_is_none_or_holds_a_secret_is_refused_without_saying_it() -> None:
    for url in ("localhost:8888", ""):
        with pytest.raises(ConfigurationError, match="url"):
            SearxngSearch(url)
    for url in ("https://user:hunter22@a.example/", "https://a.example/?token=hunter22"):
        with pytest.raises(ConfigurationError, match="password or a key") as caught:
            SearxngSearch(url)
        assert "hunter22" not in str(caught.value)


def test_a_query_is_text(web: WebServer) -> None:
    with pytest.raises(QueryError):
        find_pages(SearxngSearch(web.url), "\ud800")
    with pytest.raises(ConfigurationError):
        SearxngSearch(web.url, language="en&q=x")
    assert web.asked == []
