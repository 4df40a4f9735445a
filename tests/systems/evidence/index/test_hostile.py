"""What an outsider may do to the files of a project: nothing of it decides, misleads or crashes."""

from __future__ import annotations

import shutil
import sqlite3

import pytest
from soaking import mostly_soaked

from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.errors import IndexDamagedError
from systems.evidence.index.sources import LAKE, LAKE_TEXT, lexical, told, two_sources


@pytest.fixture
def closed(tmp_path):
    """A project of two sources, and the path of its database."""
    two_sources(tmp_path).close()
    return tmp_path, tmp_path / "10_graph" / "evidence.sqlite3"


@pytest.mark.parametrize(
    "content",
    [b"{", b"[" * 100_000, b'{"document_count": 1e999, "index_built": false}'],
    ids=["cut", "deep", "lying"],
)
def test_the_metadata_file_is_never_believed(tmp_path, content):
    index = two_sources(tmp_path)
    index.metadata_path.write_bytes(content)
    again = lexical(tmp_path)
    assert len(again.sources()) == 2
    assert again.search("lake freezes")[0].url == LAKE
    again.write_metadata()
    assert told(again)["document_count"] == 2


CHANGES = {
    "newer": ("PRAGMA user_version=9", "another version of nlp_retrieval; move it away, and add the sources again"),
    "older": ("PRAGMA user_version=7", "another version"),
    "trigger": ("CREATE TRIGGER t AFTER INSERT ON versions BEGIN DELETE FROM texts; END", "it was tampered with"),
    "column": ("ALTER TABLE texts ADD COLUMN x", "it was tampered with"),
    "grade": ("UPDATE versions SET quality='A+'", "did not write"),
    "type": ("UPDATE versions SET title=x'00ff'", "did not write"),
}


@pytest.mark.parametrize("change", mostly_soaked(list(CHANGES), 1))
def test_a_database_that_was_changed_by_others_is_refused(closed, change):
    project, path = closed
    statement, message = CHANGES[change]
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(IndexDamagedError, match=message):
        lexical(project).sources()


def test_a_text_that_was_changed_is_never_quoted(closed):
    project, path = closed
    connection = sqlite3.connect(path)
    connection.execute("UPDATE texts SET content = replace(content, 'January', 'October')")
    connection.commit()
    connection.close()
    index = lexical(project)
    for look in (lambda: index.search("lake freezes"), lambda: index.text(index.source(LAKE).key)):
        with pytest.raises(IndexDamagedError, match="does not match its checksum"):
            look()


def test_a_span_outside_its_text_is_refused(closed):
    project, path = closed
    connection = sqlite3.connect(path)
    connection.execute("UPDATE texts SET spans = '[[-5, 9]]'")
    connection.commit()
    connection.close()
    with pytest.raises(IndexDamagedError, match="begins or ends nowhere"):
        lexical(project).search("lake freezes")


def test_an_index_that_is_damaged_is_built_again_from_the_sources(tmp_path):
    index = two_sources(tmp_path)
    shutil.rmtree(next(index.index_path.glob("bm25-*")))
    again = lexical(tmp_path)
    with pytest.raises(IndexDamagedError, match="call build_index"):
        again.search("lake freezes")
    again.build_index()
    assert again.search("lake freezes")[0].url == LAKE
    (again.index_path / "manifest.json").write_text("{")
    assert lexical(tmp_path).stats()["indexed_count"] == 0
    lexical(tmp_path).build_index()
    assert lexical(tmp_path).search("lake freezes")[0].url == LAKE


def test_another_programs_database_is_refused_and_kept(tmp_path):
    path = tmp_path / "10_graph" / "evidence.sqlite3"
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE texts (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(IndexDamagedError, match="made by another program"):
        lexical(tmp_path).add_document(LAKE_TEXT, LAKE)
    assert path.read_bytes() == before


def test_an_index_of_something_else_shows_nothing_of_it(tmp_path):
    """Passages come from the stored sources; an index can only point at them."""
    index = two_sources(tmp_path)
    key = index.source(LAKE).sha256
    false = {"source": key, "url": "https://evil.example", "title": "", "quality": "A", "start": 0, "end": 9}
    ids = [f"{key}::0", f"{key}::7", f"{key}::-1", "0" * 64 + "::0", "no id"]
    items = [SearchableItem(item_id=one, content="The lake never freezes", metadata=false) for one in ids]
    Searcher([Bm25Retriever()]).index(items, index.index_path, replace=True)
    found = lexical(tmp_path).search("The lake never freezes")
    assert [(one.content, one.url, one.quality) for one in found] == [(LAKE_TEXT, LAKE, "B")]
