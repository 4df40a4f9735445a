"""``nlp-retrieval evidence research``: a question becomes sources, and what happened to each page is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.commands import refused, run

from systems.evidence.web_research.web_server import Page, WebServer, html, web_server

QUESTION = "When was the bridge over the strait opened?"
ANSWER = "The bridge over the strait was opened in 1932."


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as running:
        running.pages |= {"/bridge": html(ANSWER), "/search": found(running, "/bridge")}
        yield running


def found(web: WebServer, *paths: str, **others: str) -> Page:
    rows = [{"url": f"{web.url}{path}", "title": others.get(path.strip("/"), "")} for path in paths]
    return Page(json.dumps({"results": rows}).encode(), media_type="application/json")


def engines(web: WebServer) -> tuple[str, ...]:
    return "--search", f"searxng:url={web.url}", "--fetch", f"http:private_hosts=['127.0.0.1:{web.port}']", "-r", "bm25"


def test_a_question_becomes_sources_and_passages(tmp_path: Path, web: WebServer) -> None:
    done = run("evidence", "research", "project", QUESTION, *engines(web), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"added   {web.url}/bridge  C" in done.stderr
    assert "1 added, 0 known, 0 refused, 0 failed; 0 more found" in done.stderr
    assert ANSWER in done.stdout
    again = run("evidence", "research", "project", QUESTION, *engines(web), folder=tmp_path)
    assert "0 added, 1 known, 0 refused, 0 failed" in again.stderr
    assert ANSWER in again.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "--search"),
        (("--search", "searxng:url=http://127.0.0.1:1"), 2, "--fetch"),
        (("--search", "bing", "--fetch", "http"), 2, "there is no search_engine called 'bing'"),
        (("--search", "searxng:url=http://127.0.0.1:1", "--fetch", "http"), 1, "no complete answer"),
        (("--search", "searxng:url=http://127.0.0.1:1", "--fetch", "searxng:url=x"), 2, "there is no fetcher called 'searxng'"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    refused(run("evidence", "research", "project", QUESTION, *words, "-r", "bm25", folder=tmp_path), code, said)
