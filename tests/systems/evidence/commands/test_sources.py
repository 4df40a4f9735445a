"""``nlp-retrieval evidence add``, ``search`` and ``stats``: what was read is added once, found, and shown without harm."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from cli.commands import refused, run

from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex

from .world import SOURCES, make_project


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that no test changes."""
    return make_project(tmp_path_factory.mktemp("sources"))


def index_of(project: Path) -> EvidenceIndex:
    return EvidenceIndex(project, Searcher([Bm25Retriever()]))


def test_sources_are_added_once_and_are_searchable_at_once(tmp_path: Path) -> None:
    make_project(tmp_path)
    again = run("evidence", "add", "project", "sources.jsonl", folder=tmp_path)
    assert again.returncode == 0
    assert again.stderr == "0 sources added, 2 known before; 2 texts, 2 passages in project\n"
    found = run("evidence", "search", "project", "passengers", "--json", folder=tmp_path)
    assert {one["url"] for one in json.loads(found.stdout)} == {one["url"] for one in SOURCES}


def test_sources_are_listed_and_deleted(tmp_path: Path) -> None:
    make_project(tmp_path)
    stats, gazette = (source["url"] for source in SOURCES)

    def asked(*words: str) -> str:
        done = run("evidence", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = json.loads(asked("list", "project", "--json"))
    assert [(one["url"], one["quality"], one["version_count"], one["pages"]) for one in listed] == [
        (stats, "A", 1, 0),
        (gazette, "D", 1, 0),
    ]
    assert gazette in asked("list", "project", "--match", "GAZETTE")
    assert stats not in asked("list", "project", "--match", "GAZETTE")
    assert gazette not in asked("list", "project", "--min-quality", "B")
    asked("delete", "project", listed[0]["key"])
    assert [one["url"] for one in json.loads(asked("list", "project", "--json"))] == [gazette]
    assert index_of(tmp_path / "project").was_deleted(stats)
    refused(run("evidence", "delete", "project", stats, folder=tmp_path), 2, "nothing was deleted")


def test_a_source_is_deleted_by_any_form_of_its_url_and_all_of_them_or_none(tmp_path: Path) -> None:
    make_project(tmp_path)
    here, nowhere = "http://stats.altbrunn.example/tram/?utm_source=x", "https://nowhere.example/"
    refused(run("evidence", "delete", "project", here, nowhere, folder=tmp_path), 2, f"under '{nowhere}' in project")
    refused(run("evidence", "delete", "project", "nowhere", folder=tmp_path), 2, "'nowhere' is not a URL")
    refused(run("evidence", "delete", "nothing", here, folder=tmp_path), 2, "nothing holds no sources")
    assert len(index_of(tmp_path / "project").sources()) == 2
    done = run("evidence", "delete", "project", here, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "1 version deleted; 1 text left in project\n")
    audit = run("evidence", "audit", "project", "report.md", folder=tmp_path, COLUMNS="120")
    assert "deleted source" in audit.stdout
    run("evidence", "delete", "project", SOURCES[1]["url"], folder=tmp_path)
    for words, code in ((("audit", "--fail-on", "review"), 1), (("review",), 0)):
        emptied = run("evidence", words[0], "project", "report.md", *words[1:], folder=tmp_path, COLUMNS="120")
        assert (emptied.returncode, "deleted source" in emptied.stdout) == (code, True), emptied.stderr


def test_passages_are_printed_with_title_grade_and_url(world: Path) -> None:
    done = run("evidence", "search", "project", "How many passengers?", folder=world)
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines)) == (0, 4)
    assert "  1  Tram in figures  A  https://stats.altbrunn.example/tram" in lines
    assert "     The tram of Altbrunn carried 2.4 million passengers in 2019. It has 22 stops." in lines


@pytest.mark.parametrize("command", [("search", "bell"), ("verify", "The bell of Altbrunn weighs 900 kg.")])
def test_nothing_in_a_source_is_obeyed_or_hidden(command: tuple[str, str], tmp_path: Path) -> None:
    index = index_of(tmp_path / "project")
    content = "The bell of Altbrunn weighs 900 kg.\x1b[31m It is \u202eold\u202c."
    index.add_document(content, "https://bell.example/", "Bell \x1b]0;owned\x07\u202egnp [bold]x[/]")
    index.build_index()
    verb, words = command
    done = run("evidence", verb, "project", words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "900 kg" in done.stdout
    assert "[U+202E]gnp [bold]x[/]" in done.stdout
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("project", "nowhere.txt"), "nowhere.txt: no such file"),
        (("project", ".", "--url", "https://a.example/"), "--url is for a single file"),
        (("project", "report.md", "--url", "nowhere"), "'nowhere' is not a URL"),
        (("project", "report.md", "-r", "bm52"), "did you mean 'bm25'"),
    ],
)
def test_what_cannot_be_added_is_told_and_changes_nothing(words: tuple[str, ...], said: str, world: Path) -> None:
    before = index_of(world / "project").sources()
    refused(run("evidence", "add", *words, folder=world), 2, said)
    assert index_of(world / "project").sources() == before


DAMAGE = {
    "a text": ("10_graph/evidence.sqlite3", "UPDATE texts SET content = content || '.'", "8a830d58f718 does not match"),
    "the file of sources": ("10_graph/evidence.sqlite3", b"no database", "evidence.sqlite3 cannot be read"),
    "an index": ("10_graph/index/*/items.arrow", b"no arrow", "items.arrow is damaged: it has 8 bytes"),
    "a manifest": ("10_graph/index/manifest.json", b"{", "manifest.json"),
}


@pytest.mark.parametrize(("files", "damage", "said"), DAMAGE.values(), ids=DAMAGE)
def test_verify_checks_a_whole_project(files: str, damage: bytes | str, said: str, tmp_path: Path) -> None:
    project = make_project(tmp_path) / "project"
    whole = run("verify", "project", folder=tmp_path)
    assert (whole.returncode, whole.stderr) == (0, "project: every file is whole\n")
    (project / "09_qa").mkdir(exist_ok=True)
    for path in [project / files] if "*" not in files else project.glob(files):
        if isinstance(damage, bytes):
            path.write_bytes(damage)
        else:
            with sqlite3.connect(path) as database:
                database.execute(damage)
            database.close()
    done = run("verify", "project", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
