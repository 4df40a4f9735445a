"""``nlp-retrieval evidence research``: a question becomes sources, and what happened to each page is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import chat_server, fields
from cli.commands import refused, run

from systems.evidence.web_research.web_server import Page, WebServer, html, web_server

QUESTION = "When was the bridge over the strait opened?"
ANSWER = "The bridge over the strait was opened in 1932."
FOLDER = ("--search", "folder:folder=web", "--fetch", "folder:folder=web", "-r", "bm25")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = tmp_path / "web" / "harbour.example"
    site.mkdir(parents=True)
    (site / "bridge.html").write_text(f"<html><title>Bridges</title><p>{ANSWER}</p></html>")
    (site / "broken.pdf").write_bytes(b"%PDF-1.4 bridge opened strait")
    return tmp_path


def test_a_question_becomes_sources_and_passages(folder: Path) -> None:
    done = run("evidence", "research", "project", QUESTION, *FOLDER, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "added   https://harbour.example/bridge.html  C" in done.stderr
    assert "1 added, 0 known, 0 refused, 0 failed; 0 more found" in done.stderr
    assert ANSWER in done.stdout
    again = run("evidence", "research", "project", QUESTION, *FOLDER, "--json", folder=folder)
    report = json.loads(again.stdout)
    assert [page["status"] for page in report["pages"]] == ["known"]
    assert report["passages"][0]["content"] == ANSWER


def test_a_hypothetical_answer_is_searched_for_too(folder: Path) -> None:
    (folder / "web" / "harbour.example" / "ada.txt").write_text("Ada Winter drew its plans.")
    with chat_server(lambda _: fields(passage="Ada Winter built it.")) as server:
        lm = f"dspy:model=openai/small,base_url={server.url}"
        done = run("evidence", "research", "project", QUESTION, *FOLDER, "--hyde", lm, "--json", folder=folder)
    report = json.loads(done.stdout)
    assert report["expansion"]["expanded"] == f"{QUESTION} Ada Winter built it."
    assert {page["url"] for page in report["pages"]} >= {"https://harbour.example/ada.txt"}


@pytest.fixture
def web() -> WebServer:
    with web_server() as running:
        yield running


def test_over_http_pages_are_found_and_fetched_and_what_fails_is_said_without_harm(folder: Path, web: WebServer) -> None:
    rows = [
        {"url": f"{web.url}/bridge", "title": "Bridge"},
        {"url": f"{web.url}/inner", "title": "\x1b]0;owned\x07"},
        {"url": "http://169.254.169.254/latest/meta-data/"},
        {"url": "javascript:alert(1)"},
    ]
    web.pages |= {
        "/search": Page(json.dumps({"results": rows}).encode(), media_type="application/json"),
        "/bridge": html(ANSWER),
        "/inner": Page(status=302, headers={"Location": "http://10.0.0.1/"}),
    }
    options = ("--search", f"searxng:url={web.url}", "--fetch", f"http:private_hosts=['127.0.0.1:{web.port}']", "-r", "bm25")
    done = run("evidence", "research", "project", QUESTION, *options, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "1 added, 0 known, 2 refused, 0 failed" in done.stderr
    assert "addresses: 1 (first" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    assert ANSWER in done.stdout
    alone = run("evidence", "research", "other", QUESTION, *options[:3], "http", "-r", "bm25", folder=folder)
    assert "0 added, 0 known, 3 refused, 0 failed" in alone.stderr


def test_nothing_is_fetched_that_was_not_asked_for(folder: Path) -> None:
    refused(run("evidence", "research", "project", QUESTION, folder=folder), 2, "--search")
    refused(run("evidence", "research", "project", QUESTION, *FOLDER[:2], folder=folder), 2, "--fetch")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--search", "bing", "--fetch", "http"), 2, "there is no search_engine called 'bing'"),
        (("--search", "folder:folder=nowhere", "--fetch", "http"), 2, "not a folder"),
        (("--search", "searxng:url=http://127.0.0.1:1", "--fetch", "http"), 1, "no complete answer"),
        (("--search", "folder:folder=web", "--fetch", "http:ports=[0]"), 2, "ports"),
        (("--search", "folder:folder=web", "--fetch", "searxng:url=x"), 2, "there is no fetcher called 'searxng'"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder: Path, words: tuple[str, ...], code: int, said: str) -> None:
    refused(run("evidence", "research", "project", QUESTION, *words, "-r", "bm25", folder=folder), code, said)
