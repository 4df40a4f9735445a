"""The index directory: old state or new one, never a mixture; damage is named; writers and readers do not meet."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from attacks.planting import write_forged

from core.engines import TermCount, TermShare, documents
from nlp_retrieval import Searcher
from nlp_retrieval.core.index.build import build_index
from nlp_retrieval.core.index.generation import MANIFEST_FILE, read_manifest, verify_index
from nlp_retrieval.errors import (
    IndexConflictError,
    IndexDamagedError,
    IndexMismatchError,
    IndexMissingError,
    IndexWriteError,
)

ALPHA = documents(["alpha one", "alpha beta", "gamma"])
OTHER = documents(["alpha other", "delta"])


def test_a_tilde_is_the_home_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Searcher([TermCount()]).index(ALPHA, "~/indexes/alpha")
    assert Searcher([TermCount()]).open(tmp_path / "indexes" / "alpha").search("beta")[0][0].item == ALPHA[1]


class Fails(TermCount):
    """An engine whose build breaks after it wrote a part."""

    name = "fails"

    def build(self, items, folder):
        (folder / "part.json").write_text("half")
        raise RuntimeError("broken on purpose")


class Interrupted(TermCount):
    name = "interrupted"

    def build(self, items, folder):
        (folder / "part.json").write_text("half")
        raise KeyboardInterrupt


def found(path, query="alpha", retriever=None):
    """The ids that a fresh reader finds."""
    return [hit.item.item_id for hit in (retriever or TermCount()).retrieve([[query]], path, 10)[0]]


def contents(path):
    """The content of what a fresh reader finds."""
    return [hit.item.content for hit in TermCount().retrieve([["alpha"]], path, 10)[0]]


def names(path) -> set[str]:
    return {entry.name for entry in Path(path).iterdir()}


def named_by_manifest(path) -> set[str]:
    return set(read_manifest(Path(path)).folders) | {MANIFEST_FILE, ".lock"}


def state(path) -> dict[str, bytes]:
    """Every file and its content, but for the lock."""
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file() and f.name != ".lock"}


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "indexes" / "wiki"


@pytest.fixture
def built(path) -> Path:
    TermCount().index(ALPHA, path)
    return path


# building


def test_the_first_time_builds_and_the_second_time_finds(path):
    first = TermCount().index(ALPHA, path)
    assert (first.path, first.n_items, first.built, first.reused) == (path, 3, ["terms"], [])
    before = state(path)
    second = TermCount().index(ALPHA, path)
    assert (second.n_items, second.built, second.reused) == (3, [], ["terms"])
    assert state(path) == before
    assert read_manifest(path).generation == 1


def test_another_retriever_over_the_same_items_joins(built):
    report = TermShare().index(ALPHA, built)
    assert (report.built, report.reused) == (["share"], [])
    assert read_manifest(built).generation == 2
    assert found(built) == ["d0", "d1"]
    assert found(built, retriever=TermShare()) == ["d0", "d1"]


def test_other_items_are_refused_and_nothing_changes(built):
    before = state(built)
    with pytest.raises(IndexConflictError, match=r"holds an index of 3 other items \(now given: 2\).*replace=True"):
        TermCount().index(OTHER, built)
    assert state(built) == before
    assert names(built) == named_by_manifest(built)


def test_other_items_take_the_place_when_they_are_to_replace(built):
    TermShare().index(ALPHA, built)
    report = TermCount().index(OTHER, built, replace=True)
    assert report.built == ["terms"]
    assert contents(built) == ["alpha other"]
    assert read_manifest(built).generation == 3
    assert names(built) == named_by_manifest(built)
    with pytest.raises(IndexMissingError, match="share"):
        found(built, retriever=TermShare())


# builds that break


def test_a_name_that_no_folder_can_have_is_an_error_of_writing(tmp_path):
    with pytest.raises(IndexWriteError, match="File name too long; choose another path"):
        TermCount().index(ALPHA, tmp_path / ("a" * 300))


@pytest.mark.parametrize("engine", [Fails, Interrupted])
def test_a_build_that_breaks_leaves_the_old_state_and_no_scratch(built, engine):
    before = state(built)
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        engine().index(ALPHA, built)
    assert state(built) == before
    assert found(built) == ["d0", "d1"]
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        build_index(OTHER, built, [TermCount(), engine()], replace=True)
    assert contents(built) == ["alpha one", "alpha beta"]
    assert names(built) == named_by_manifest(built)


def test_what_killed_writers_left_is_removed_and_no_other_file(built):
    for left in (".manifest.json.0123abcd", ".manifest.json.swp"):
        (built / left).touch()
    TermShare().index(ALPHA, built)
    assert names(built) == named_by_manifest(built) | {".manifest.json.swp"}


# readers beside writers


def test_a_retriever_that_searches_alone_holds_one_generation_only(path):
    retriever = TermCount()
    for text in ("alpha 1", "alpha 2", "alpha 3", "alpha 4"):
        retriever.index(documents([text]), path, replace=True)
        assert [hit.item.content for hit in retriever.retrieve([["alpha"]], path, 1)[0]] == [text]
    del retriever
    current = TermCount()
    current.retrieve([["alpha"]], path, 1)
    TermShare().index(documents(["alpha 4"]), path)
    assert names(path) == named_by_manifest(path)


# damage


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x40
    file.write_bytes(content)


@pytest.mark.parametrize("damaged", ["the items", "one retriever"])
def test_to_replace_what_is_damaged_keeps_the_other_retrievers(built, damaged):
    TermShare().index(ALPHA, built)
    manifest = read_manifest(built)
    (segment,) = manifest.corpus.segments if damaged == "the items" else manifest.retrievers[0].segments
    flip(built / segment.folder / next(iter(segment.files)), -1)
    report = TermCount().index(ALPHA, built, replace=True)
    assert (report.built == []) == (damaged == "the items")
    assert manifest.retrievers[1] in read_manifest(built).retrievers
    assert verify_index(built) == []
    assert found(built, retriever=TermShare()) == found(built) == ["d0", "d1"]


# what is there and what is asked for


def test_another_configuration_names_field_values_and_cure(built):
    with pytest.raises(IndexMismatchError, match=r"min_length: indexed with 1, now 4") as caught:
        TermCount(min_length=4).retrieve([["alpha"]], built, 1)
    assert str(built) in str(caught.value)
    assert "index again" in str(caught.value)


# the manifest


@pytest.mark.parametrize("content", ["", "{}", "[" * 100_000, '{"checksum":"x","a":NaN}'])
def test_what_is_no_manifest_is_damage_that_replace_cures(built, content):
    (built / MANIFEST_FILE).write_text(content, "latin-1")
    with pytest.raises(IndexDamagedError, match=r"manifest\.json"):
        found(built)
    with pytest.raises(IndexDamagedError):
        TermCount().index(ALPHA, built)
    TermCount().index(ALPHA, built, replace=True)
    assert found(built) == ["d0", "d1"]
    assert names(built) == named_by_manifest(built)


def test_every_flipped_byte_of_a_manifest_is_damage(built):
    file = built / MANIFEST_FILE
    whole = file.read_bytes()
    for place in range(0, len(whole) - 1, 7):
        flipped = bytearray(whole)
        flipped[place] ^= 0x01
        file.write_bytes(flipped)
        with pytest.raises(IndexDamagedError):
            read_manifest(built)


def test_an_index_of_another_version_is_to_be_built_again(built):
    write_forged(built, json.loads((built / MANIFEST_FILE).read_text()) | {"format": 99})
    with pytest.raises(IndexDamagedError, match=r"made by another version .*; index again with replace=True"):
        found(built)
    TermCount().index(ALPHA, built, replace=True)
    assert found(built) == ["d0", "d1"]


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_in_place_of_a_manifest_is_refused_and_not_waited_for(built, kind):
    (built / MANIFEST_FILE).unlink()
    if kind == "pipe":
        os.mkfifo(built / MANIFEST_FILE)
    else:
        (built / MANIFEST_FILE).symlink_to("/dev/zero")
    with pytest.raises(IndexDamagedError, match=r"manifest\.json is missing or unreadable \(not a regular file\)"):
        found(built)


def test_joining_copies_no_damage(built):
    searcher = Searcher([TermCount()]).open(built)
    searcher.add(documents(["alpha new"], "n"), auto_compact=False)
    flip(next(built.glob("items-*/items.arrow")), -40)
    with pytest.raises(IndexDamagedError, match=r"items\.arrow is (damaged: SHA-256|not an items file)"):
        searcher.compact()
