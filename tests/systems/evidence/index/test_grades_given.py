"""What a person gave of a source stays, whichever way it comes in again; its versions are ordered by their arrival."""

from __future__ import annotations

from nlp_retrieval.systems.evidence.index import store
from nlp_retrieval.systems.evidence.index.store import SourceDocument
from nlp_retrieval.systems.evidence.source_files import read_sources

from .sources import LAKE, LAKE_TEXT, TOWN, lexical


def test_a_grade_and_a_title_that_were_given_stay(tmp_path):
    index = lexical(tmp_path)
    index.add_document(LAKE_TEXT, LAKE, "Lakes", "A")
    index.add_document(LAKE_TEXT, LAKE)
    index.add_document("The lake is dry.", LAKE)
    found = index.source(LAKE)
    assert (found.title, found.quality) == ("Lakes", "A")
    index.add_document("The lake is dry.", LAKE, source_quality="D")
    assert index.source(LAKE).quality == "D"


def test_what_a_file_or_page_says_does_not_replace_what_was_given(tmp_path):
    index = lexical(tmp_path)
    file = tmp_path / "lake.txt"
    file.write_text(LAKE_TEXT)
    (read,) = read_sources(file, url=LAKE)
    index.add_document(LAKE_TEXT, LAKE, "Lakes", "A")
    assert not index.add_source(read)
    found = index.source(LAKE)
    assert (found.title, found.quality) == ("Lakes", "A")
    for title, quality in (("Old", "B"), ("New", "C")):
        index.add_source(SourceDocument(f"A page called {title}.", TOWN, title, quality))
        found = index.source(TOWN)
        assert (found.title, found.quality) == (title, quality)


def test_a_clock_that_goes_back_hides_no_newer_text(tmp_path, monkeypatch):
    index = lexical(tmp_path)
    index.add_document("The first text.", LAKE)
    monkeypatch.setattr(store, "now", lambda: "2001-01-01T00:00:00.000000+00:00")
    index.add_document("The second text.", LAKE)
    index.add_document("The third text.", LAKE)
    assert [index.text(version.key) for version in index.versions(LAKE)] == [
        "The first text.", "The second text.", "The third text."
    ]  # fmt: skip
