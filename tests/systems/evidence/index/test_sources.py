"""What is stored of sources: texts, aliases, versions, grades; and what is refused."""

from __future__ import annotations

import pytest

from nlp_retrieval.errors import InputError
from nlp_retrieval.systems.evidence.index.store import EvidenceStore, source_of
from systems.evidence.index.sources import LAKE, LAKE_TEXT, lexical, two_sources


def test_looking_at_a_project_that_is_not_there_creates_nothing(tmp_path):
    index = lexical(tmp_path / "none")
    assert index.search("lake") == []
    assert index.sources() == []
    assert index.source(LAKE) is None
    assert index.delete(LAKE) == 0
    assert index.stats()["document_count"] == 0
    index.build_index()
    assert list(tmp_path.iterdir()) == []


def test_a_duplicate_brings_title_grade_and_date_up_to_date(tmp_path):
    index = lexical(tmp_path)
    index.add_document(LAKE_TEXT, LAKE, "Lakes", "A", "2026-01-19")
    assert not index.add_document(LAKE_TEXT, LAKE, "", "D", "2026-03-01")
    found = index.source(LAKE)
    assert (found.title, found.quality, found.fetch_date) == ("Lakes", "D", "2026-03-01")
    assert not index.add_document(LAKE_TEXT, LAKE, "Cold lakes", "D", "2025-12-01")
    found = index.source(LAKE)
    assert (found.title, found.fetch_date) == ("Cold lakes", "2026-03-01")


def test_a_second_url_of_a_text_is_an_alias_that_can_be_cited(tmp_path):
    index = two_sources(tmp_path)
    assert index.add_document(LAKE_TEXT, "https://mirror.example/lake", "A mirror", "A")
    index.build_index()
    mirror = index.source("http://mirror.example/lake/#x")
    assert mirror.key == index.source(LAKE).key
    assert index.stats()["document_count"] == 2
    assert index.stats()["source_count"] == 3
    assert (mirror.title, mirror.quality) == ("A mirror", "A")
    (found, *_) = index.search("when does the lake freeze")
    assert (found.url, found.title, found.quality) == (LAKE, "Lakes", "A")


def test_a_changed_page_is_a_new_version_and_the_old_one_is_kept(tmp_path):
    index = two_sources(tmp_path)
    old = index.source(LAKE)
    assert index.add_document("The lake no longer freezes, since 2026.", LAKE, "Lakes", "B", "2026-06-01T12:00:00+02:00")
    index.build_index()
    new = index.source(LAKE)
    assert new.key != old.key
    assert [version.key for version in index.versions(LAKE)] == [old.key, new.key]
    assert index.text(old.key) == LAKE_TEXT
    assert [passage.content for passage in index.passages(old.key)] == [LAKE_TEXT]
    assert {passage.key for passage in index.search("when does the lake in the valley freeze")} == {new.key}


def test_a_page_that_is_changed_back_has_three_versions(tmp_path):
    index = lexical(tmp_path)
    texts = ["The lake freezes.", "The lake does not freeze.", "The lake freezes."]
    added = [index.add_document(text, LAKE, fetch_date=f"2026-0{month}-01") for month, text in enumerate(texts, start=1)]
    assert added == [True, True, True]
    assert [index.text(version.key) for version in index.versions(LAKE)] == texts
    assert index.stats()["document_count"] == 2


def test_keys_that_collide_grow_and_earlier_ones_stay(tmp_path):
    store = EvidenceStore(tmp_path / "evidence.sqlite3")
    store.shortest_key = 1
    for number in range(40):
        store.add(source_of(f"Text number {number}.", f"https://a.example/{number}"))
    keys = {version.sha256: version.key for version in store.all_versions()}
    assert len(set(keys.values())) == 40
    assert {len(key) for key in keys.values()} > {1}
    assert all(sha256.startswith(key) and store.stored(key).sha256 == sha256 for sha256, key in keys.items())


def test_what_cannot_be_used_is_refused_and_nothing_is_stored(tmp_path):
    for changed, message in [
        ({"content": ""}, "content is empty"),
        ({"content": "half \ud83d"}, "half of a surrogate pair"),
        ({"url": ""}, "no URL is given"),
        ({"url": "lakes"}, "is not a URL"),
        ({"source_quality": "b"}, "did you mean 'B'"),
        ({"fetch_date": "yesterday"}, "not a date in ISO 8601"),
        ({"fetch_date": "0001-01-01T00:00:00+14:00"}, "not a date in ISO 8601"),
        ({"fetch_date": None}, "a date is a string"),
    ]:
        index = lexical(tmp_path)
        with pytest.raises(InputError, match=message):
            index.add_document(**{"content": LAKE_TEXT, "url": LAKE} | changed)
        assert index.sources() == []
