"""A SearXNG server is asked, and what it answers is data."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from nlp_retrieval.errors import ConfigurationError, FetchError, QueryError, RetrievalWarning
from nlp_retrieval.systems.evidence.web_research.searching import SearxngSearch, WebResult, find_pages

from ..web_server import Page, WebServer, redirect


def answer(*results: object) -> Page:
    return Page(json.dumps({"query": "x", "results": list(results)}).encode(), media_type="application/json")


def row(url: object, title: object = "", content: object = "") -> dict[str, object]:
    return {"url": url, "title": title, "content": content, "engine": "e", "score": 1.0}


def test_results_come_in_order_each_page_once(web: WebServer) -> None:
    web.pages["/search"] = answer(
        row("https://a.example/1", "One", "The first."), row("http://a.example:80/1#x", "Again"), row("https://b.example/")
    )
    found = find_pages(SearxngSearch(web.url), "fox & dog?", 10)
    assert found == [WebResult("https://a.example/1", "One", "The first."), WebResult("https://b.example/")]
    asked = urlsplit(web.asked[0])
    assert asked.path == "/search"
    assert parse_qs(asked.query) == {"q": ["fox & dog?"], "format": ["json"]}


def test_settings_are_asked_for_and_a_path_before_the_search_is_kept(web: WebServer) -> None:
    web.pages["/find/search"] = answer()
    for url in (f"{web.url}/find/", f"{web.url}/find", f"{web.url}/find/search"):
        assert SearxngSearch(url, language="de-CH").search("fox") == []
        assert parse_qs(urlsplit(web.asked[-1]).query) == {"q": ["fox"], "format": ["json"], "language": ["de-CH"]}


def test_further_pages_are_asked_for_until_there_are_enough_or_no_more(web: WebServer) -> None:
    def paged(path: str) -> Page:
        number = int(parse_qs(urlsplit(path).query).get("pageno", ["1"])[0])
        return answer(*(row(f"https://a.example/{number}/{n}") for n in range(4 if number < 3 else 0)))

    web.pages["/search"] = paged
    assert len(find_pages(SearxngSearch(web.url), "fox", 3)) == 3
    assert len(web.asked) == 1
    assert len(find_pages(SearxngSearch(web.url), "fox", 20)) == 8
    assert len(web.asked) == 4


def test_a_server_that_always_answers_the_same_is_asked_twice(web: WebServer) -> None:
    web.pages["/search"] = answer(row("https://a.example/"))
    assert len(find_pages(SearxngSearch(web.url), "fox", 50)) == 1
    assert len(web.asked) == 2


def test_only_addresses_of_the_web_pass_and_the_rest_is_counted(web: WebServer) -> None:
    hostile = ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "https://user:word@a.example/", "", "\u202e"]
    web.pages["/search"] = answer(
        *(row(url) for url in hostile), row(None), row(5), row(["https://a.example/"]), "https://a.example/", None, [],
        row("https://a.example/", {"a": 1}, ["b"]),
        row("https://b.example/", "T\x1b[31m\u202e\n" + "t" * 5000, "\u200bs\x07\n\n" + "s" * 5000),
    )  # fmt: skip
    with pytest.warns(RetrievalWarning, match="results dropped.*: 6 "):
        found = find_pages(SearxngSearch(web.url), "fox", 10)
    assert found[0] == WebResult("https://a.example/")
    assert found[1].title.startswith("T[31m")
    assert len(found[1].title) <= 300
    assert found[1].snippet == "s " + "s" * 998


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (Page(status=403), "search.formats"),
        (Page(status=404), "start page"),
        (Page(status=429), "fewer requests"),
        (Page(status=500), "status 500"),
        (redirect("http://127.0.0.1:1/search"), "status 302"),
        (Page(b"<html>results</html>"), "search.formats"),
        (Page(b"<html>results</html>", media_type="application/json"), "not JSON"),
        (Page(b'{"results": [', media_type="application/json"), "not JSON"),
        (Page(b"[" * 100_000, media_type="application/json"), "not JSON"),
        (Page(b'{"results": {}}', media_type="application/json"), "list of"),
        (Page(b"[]", media_type="application/json"), "list of"),
        (Page(b"\xff\xfe", media_type="application/json"), "not JSON"),
        (Page(b"[", media_type="application/json", again=b" " * 65_536), "larger than"),
        (Page(b"[", media_type="application/json", again=b" ", pause=0.02), "within 0.5 s"),
    ],
)
def test_what_is_no_answer_is_an_error_that_says_what_to_do(web: WebServer, page: Page, message: str) -> None:
    web.pages["/search"] = page
    with pytest.raises(FetchError, match=message):
        SearxngSearch(web.url, seconds=0.5).search("fox")
    assert all(path.startswith("/search?") for path in web.asked)


def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FetchError, match="no complete answer"):
        SearxngSearch("http://127.0.0.1:1").search("fox")


@pytest.mark.parametrize("url", ["file:///etc", "localhost:8888", "https://user:word@a.example/", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="url"):
        SearxngSearch(url).search("fox")


def test_an_address_that_holds_a_secret_is_refused_without_saying_it() -> None:
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
