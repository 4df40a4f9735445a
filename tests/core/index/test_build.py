"""The index directory: old state or new one, never a mixture; damage is named; writers and readers do not meet."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from soaking import mostly_soaked

from core.engines import TermCount, TermShare, documents
from nlp_retrieval.core.index.build import build_index
from nlp_retrieval.core.index.generation import open_generation, verify_index
from nlp_retrieval.core.index.manifest import MANIFEST_FILE, read_manifest
from nlp_retrieval.core.index.update import drop_retriever
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import (
    IndexConflictError,
    IndexDamagedError,
    IndexLockedError,
    IndexMismatchError,
    IndexMissingError,
    IndexWriteError,
    ItemError,
    SourceError,
)

ALPHA = documents(["alpha one", "alpha beta", "gamma"])
OTHER = documents(["alpha other", "delta"])


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
    assert (first.path, first.n_items, first.built, first.found) == (path, 3, ["terms"], [])
    before = state(path)
    second = TermCount().index(ALPHA, path)
    assert (second.n_items, second.built, second.found) == (3, [], ["terms"])
    assert state(path) == before
    assert read_manifest(path).generation == 1


def test_a_parameter_of_the_search_is_that_of_the_last_time_it_was_indexed(tmp_path):
    for k1 in (0.9, 2.0):
        Searcher([{"name": "bm25", "k1": k1}]).index([("a", "red fox")], tmp_path)
        assert [retriever.k1 for retriever in Searcher.open(tmp_path).retrievers.values()] == [k1]
    Searcher({"one": {"name": "bm25", "k1": 1.0}, "two": {"name": "bm25", "k1": 3.0}}).index([("a", "red fox")], tmp_path)
    assert [retriever.k1 for retriever in Searcher.open(tmp_path).retrievers.values()] == [1.0]
    generation = read_manifest(tmp_path).generation
    Searcher([{"name": "bm25", "k1": 1.0}]).index([("a", "red fox")], tmp_path)
    assert read_manifest(tmp_path).generation == generation


def test_folders_are_named_after_their_fingerprints(built):
    manifest = read_manifest(built)
    assert manifest.corpus.segments[0].folder == f"items-{manifest.corpus.fingerprint[:16]}"
    (record,) = manifest.retrievers
    (segment,) = record.segments
    assert segment.folder == f"terms-{record.fingerprint[:16]}"
    assert (segment.first_row, segment.end_row) == (0, 3)
    assert names(built) == {manifest.corpus.segments[0].folder, segment.folder, MANIFEST_FILE, ".lock"}


def test_another_retriever_over_the_same_items_joins(built):
    report = TermShare().index(ALPHA, built)
    assert (report.built, report.found) == (["share"], [])
    assert read_manifest(built).generation == 2
    assert found(built) == ["d0", "d1"]
    assert found(built, retriever=TermShare()) == ["d0", "d1"]


def test_two_configurations_of_one_engine_live_beside_each_other(built):
    TermCount(min_length=6).index(ALPHA, built)
    assert found(built, "alpha") == ["d0", "d1"]
    with pytest.warns(UserWarning, match="found nothing"):
        assert found(built, "alpha", TermCount(min_length=6)) == []


def test_several_builders_at_once_with_an_equal_pair(path):
    builders = [TermCount().builder(), TermShare().builder(), TermCount(boost=2.0).builder()]
    report = build_index(ALPHA, path, builders)
    assert (report.built, report.found) == (["terms", "share"], ["terms"])
    assert len(read_manifest(path).retrievers) == 2


def test_other_items_are_refused_and_nothing_changes(built):
    before = state(built)
    with pytest.raises(IndexConflictError, match=r"holds an index of 3 other items \(now given: 2\).*replace=True"):
        TermCount().index(OTHER, built)
    assert state(built) == before
    assert names(built) == named_by_manifest(built)


@pytest.mark.parametrize("items", [ALPHA[::-1], ALPHA[:2], [*ALPHA, *documents(["x"], "e")]])
def test_the_same_items_in_another_order_or_number_are_other_items(built, items):
    with pytest.raises(IndexConflictError):
        TermCount().index(items, built)


def test_other_items_take_the_place_when_they_are_to_replace(built):
    TermShare().index(ALPHA, built)
    report = TermCount().index(OTHER, built, replace=True)
    assert report.built == ["terms"]
    assert contents(built) == ["alpha other"]
    assert read_manifest(built).generation == 3
    assert names(built) == named_by_manifest(built)
    with pytest.raises(IndexMissingError, match="share"):
        found(built, retriever=TermShare())


def test_the_items_may_be_a_generator_that_is_read_once(path):
    assert TermCount().index((item for item in ALPHA), path).n_items == 3


# builds that break


@pytest.mark.parametrize("engine", [Fails, Interrupted])
def test_a_build_that_breaks_leaves_the_old_state_and_no_scratch(built, engine):
    before = state(built)
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        engine().index(ALPHA, built)
    assert state(built) == before
    assert found(built) == ["d0", "d1"]
    with pytest.raises((RuntimeError, KeyboardInterrupt)):
        build_index(OTHER, built, [TermCount().builder(), engine().builder()], replace=True)
    assert contents(built) == ["alpha one", "alpha beta"]
    assert not [name for name in names(built) if name.startswith(".scratch")]


def test_what_a_broken_build_had_published_is_swept_by_the_next(built):
    with pytest.raises(RuntimeError):
        build_index(OTHER, built, [TermCount().builder(), Fails().builder()], replace=True)
    TermShare().index(ALPHA, built)
    assert names(built) == named_by_manifest(built)


def test_a_first_build_that_breaks_leaves_no_index(path):
    with pytest.raises(RuntimeError):
        Fails().index(ALPHA, path)
    with pytest.raises(IndexMissingError):
        found(path)
    TermCount().index(ALPHA, path)
    assert names(path) == named_by_manifest(path)


@pytest.mark.parametrize(
    ("error", "raised"),
    [(ValueError("x"), ValueError), (OSError(5, "gone"), SourceError), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_a_source_that_breaks_midway_leaves_nothing(path, built, error, raised):
    def items():
        yield from OTHER
        raise error

    before = state(built)
    with pytest.raises(raised):
        TermCount().index(items(), built, replace=True)
    assert state(built) == before
    assert names(built) == named_by_manifest(built)


def test_items_that_cannot_be_indexed_leave_the_old_state(built):
    before = state(built)
    with pytest.raises(ItemError):
        TermCount().index([*ALPHA, ALPHA[0]], built, replace=True)
    assert state(built) == before


def in_another_process(script: str, *arguments: object, expect: int = 0) -> str:
    """Run a script that sees these engines; returns its standard output."""
    tests = Path(__file__).parents[2]
    preamble = f"import sys; sys.path.insert(0, {str(tests)!r})\nfrom core.engines import *\n"
    done = subprocess.run(
        [sys.executable, "-c", preamble + textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done.stdout


def test_scratch_and_folders_of_a_killed_build_are_cleared_by_the_next(built):
    in_another_process(
        """
        import os
        from nlp_retrieval.core.index.build import build_index
        class Dies(TermCount):
            name = "dies"
            def build(self, items, folder):
                (folder / "part.json").write_text("half")
                os._exit(7)
        build_index(documents(["other"]), sys.argv[1], [TermCount().builder(), Dies().builder()], replace=True)
        """,
        built,
        expect=7,
    )
    assert any(name.startswith(".scratch") for name in names(built))
    assert contents(built) == ["alpha one", "alpha beta"]
    TermShare().index(ALPHA, built)
    assert names(built) == named_by_manifest(built)


# readers beside writers


def test_a_reader_keeps_its_generation_while_the_items_are_replaced(built):
    reader = Searcher([TermCount()]).open(built)
    TermCount().index(OTHER, built, replace=True)
    assert [hit.item.content for hit in reader.search("alpha")[0]] == ["alpha one", "alpha beta"]
    assert contents(built) == ["alpha other"]
    assert reader.refresh() is True
    assert [hit.item.content for hit in reader.search("alpha")[0]] == ["alpha other"]
    assert reader.refresh() is False


def test_a_folder_that_a_reader_holds_is_swept_by_the_next_writer_after_it_left(built):
    old = set(read_manifest(built).folders)
    reader = open_generation(built)
    TermCount().index(OTHER, built, replace=True)
    assert old <= names(built)
    assert reader.items.ids() == ["d0", "d1", "d2"]
    del reader
    TermShare().index(OTHER, built)
    assert names(built) == named_by_manifest(built)


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


def test_a_live_retriever_does_not_keep_generations_that_it_left(path):
    retriever = TermCount()
    for text in ("alpha 1", "alpha 2", "alpha 3"):
        retriever.index(documents([text]), path, replace=True)
        retriever.retrieve([["alpha"]], path, 1)
    TermShare().index(documents(["alpha 3"]), path)
    retriever.retrieve([["alpha"]], path, 1)
    TermCount(2).index(documents(["alpha 3"]), path)
    assert names(path) == named_by_manifest(path)


def test_a_retriever_follows_an_index_that_was_removed_and_built_again(path):
    retriever = TermCount()
    retriever.index(documents(["alpha old"]), path)
    retriever.retrieve([["alpha"]], path, 1)
    shutil.rmtree(path)
    with pytest.raises(IndexMissingError):
        retriever.retrieve([["alpha"]], path, 1)
    retriever.index(documents(["alpha old"]), path)
    retriever.retrieve([["alpha"]], path, 1)
    shutil.rmtree(path)
    retriever.index(documents(["alpha new"]), path)
    assert [hit.item.content for hit in retriever.retrieve([["alpha"]], path, 1)[0]] == ["alpha new"]


# what is not ours


def test_foreign_files_and_folders_are_never_removed(built):
    foreign = ["notes", "items-old", "terms-backup", "wiki-2024", "items-xyz0123456789abc", ".git", "items"]
    for name in foreign:
        (built / name).mkdir()
        (built / name / "precious.txt").write_text("mine")
    (built / "items-0123456789abcdef.txt").write_text("mine")
    (built / "elsewhere").symlink_to(built.parent)
    TermCount().index(OTHER, built, replace=True)
    TermCount().index(ALPHA, built, replace=True)
    assert all((built / name / "precious.txt").read_text() == "mine" for name in foreign)
    assert (built / "items-0123456789abcdef.txt").read_text() == "mine"
    assert (built / "elsewhere").is_symlink()


# damage


def files_of(path) -> list[Path]:
    manifest = read_manifest(path)
    return sorted(path / folder.folder / name for folder in manifest.records for name in folder.files)


def flip(file: Path, place: int) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x40
    file.write_bytes(content)


SIZES = {
    "truncated": lambda file: os.truncate(file, file.stat().st_size - 1),
    "too long": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
    "missing": lambda file: file.unlink(),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
}


@pytest.mark.parametrize("damage", SIZES)
@pytest.mark.parametrize("which", [0, 1])
def test_a_file_of_another_size_is_an_error_that_names_it(built, which, damage):
    file = files_of(built)[which]
    SIZES[damage](file)
    with pytest.raises(IndexDamagedError, match="replace=True") as caught:
        found(built)
    assert str(file) in str(caught.value)
    check_verified_and_healed(built, file)


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("which", [0, 1])
def test_a_flipped_byte_is_found_by_verify_and_by_what_copies_the_file(built, which, place):
    flip(files_of(built)[which], place)
    check_verified_and_healed(built, files_of(built)[which])


def check_verified_and_healed(built, file):
    assert [str(file) in message for message in verify_index(built)] == [True]
    with pytest.raises(IndexDamagedError):
        TermCount().index(ALPHA, built)
    TermCount().index(ALPHA, built, replace=True)
    assert found(built) == ["d0", "d1"]
    assert verify_index(built) == []


def test_joining_copies_no_damage(built):
    searcher = Searcher([TermCount()]).open(built)
    searcher.add(documents(["alpha new"], "n"), auto_compact=False)
    flip(next(file for file in files_of(built) if file.name == "items.arrow"), -40)
    with pytest.raises(IndexDamagedError, match=r"items\.arrow is damaged: SHA-256"):
        searcher.compact()


@pytest.mark.parametrize("which", [0, 1])
def test_a_missing_folder_is_an_error_that_names_it_and_replace_cures_it(built, which):
    folder = built / list(read_manifest(built).folders)[which]
    shutil.rmtree(folder)
    with pytest.raises(IndexDamagedError) as caught:
        found(built)
    assert folder.name in str(caught.value)
    TermCount().index(ALPHA, built, replace=True)
    assert found(built) == ["d0", "d1"]


def test_verify_of_a_folder_without_an_index_is_an_error(tmp_path):
    with pytest.raises(IndexMissingError):
        verify_index(tmp_path)


def test_one_retrievers_damage_does_not_stop_another(built):
    TermShare().index(ALPHA, built)
    next(file for file in files_of(built) if file.parent.name.startswith("share")).unlink()
    assert found(built) == ["d0", "d1"]


# locks and permissions


def test_two_writers_are_an_error_for_the_second(built):
    errors = []

    def items():
        writer = threading.Thread(target=second)
        writer.start()
        writer.join()
        yield from ALPHA

    def second():
        try:
            TermShare().index(ALPHA, built)
        except IndexLockedError as error:
            errors.append(error)

    TermCount().index(items(), built)
    (error,) = errors
    assert str(built) in str(error)
    TermShare().index(ALPHA, built)


def test_a_lock_file_left_by_a_dead_writer_stops_nobody(built):
    (built / ".lock").write_text("left")
    assert TermShare().index(ALPHA, built).built == ["share"]


def test_a_file_where_the_folder_should_be_is_a_write_error(tmp_path):
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(IndexWriteError, match="file"):
            TermCount().index(ALPHA, path)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user may enter; those of pytest are for their owner alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_directory_is_a_write_error_and_still_searchable(open_folder):
    built = open_folder / "index"
    TermCount().index(ALPHA, built)
    before = state(built)
    for folder in (built, *(entry for entry in built.iterdir() if entry.is_dir())):
        folder.chmod(0o555)
    try:
        told = in_another_process(
            """
            import os
            if os.getuid() == 0:
                os.setgid(65534); os.setuid(65534)
            from nlp_retrieval.errors import IndexWriteError
            for path in (sys.argv[1], sys.argv[1] + "/new"):
                try:
                    TermShare().index(documents(["alpha one", "alpha beta", "gamma"]), path)
                except IndexWriteError as error:
                    print("refused:", error, isinstance(error, OSError))
            print([hit.item.item_id for hit in TermCount().retrieve([["alpha"]], sys.argv[1], 5)[0]])
            """,
            built,
        )
    finally:
        for folder in (built, *(entry for entry in built.iterdir() if entry.is_dir())):
            folder.chmod(0o755)
    lines = told.splitlines()
    assert [line.startswith("refused:") and "permission denied" in line and line.endswith("True") for line in lines[:2]] == [
        True
    ] * 2
    assert str(built) in lines[0]
    assert lines[2] == "['d0', 'd1']"
    assert state(built) == before


@pytest.mark.parametrize("limit", mostly_soaked([2_000, 0, 100, 200_000]))
def test_a_full_disk_is_a_write_error_and_leaves_nothing_half_written(built, limit):
    before = state(built)
    told = in_another_process(
        """
        import resource, signal
        from nlp_retrieval.errors import IndexWriteError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        items = documents(f"alpha text number {n} " * 20 for n in range(2000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
        try:
            TermCount().index(items, sys.argv[1], replace=True)
        except IndexWriteError as error:
            print("refused:", error)
        """,
        built,
        limit,
    )
    assert told.startswith("refused: cannot write to")
    assert state(built) == before
    assert names(built) == named_by_manifest(built)
    assert found(built) == ["d0", "d1"]


def test_an_error_of_an_engine_that_reads_is_not_called_a_write_error(built):
    class Reads(TermCount):
        name = "reads"

        def build(self, items, folder):
            Path("/nonexistent/model.bin").read_bytes()

    with pytest.raises(OSError, match=r"model\.bin") as caught:
        Reads().index(ALPHA, built)
    assert not isinstance(caught.value, IndexWriteError)


# what is there and what is asked for


def test_no_index_is_an_error_that_names_the_place(tmp_path):
    with pytest.raises(IndexMissingError, match=r"no index at .*none"):
        TermCount().retrieve([["alpha"]], tmp_path / "none", 1)


def test_another_configuration_names_field_values_and_cure(built):
    with pytest.raises(IndexMismatchError, match=r"min_length: indexed with 1, now 4") as caught:
        TermCount(min_length=4).retrieve([["alpha"]], built, 1)
    assert str(built) in str(caught.value)
    assert "index again" in str(caught.value)


def test_a_newer_format_of_the_component_is_a_mismatch(built):
    class Newer(TermCount):
        format_version = 2

    with pytest.raises(IndexMismatchError, match="format: indexed with 1, now 2"):
        Newer().retrieve([["alpha"]], built, 1)


def test_the_mismatch_speaks_of_the_configuration_that_is_most_alike(built):
    class Two(TermCount):
        name = "two"

        def __init__(self, min_length: int = 1, other: int = 1) -> None:
            self.min_length, self.other = min_length, other

    Two(1, 1).index(ALPHA, built)
    Two(2, 2).index(ALPHA, built)
    with pytest.raises(IndexMismatchError) as caught:
        Two(2, 3).retrieve([["alpha"]], built, 1)
    assert "other: indexed with 2, now 3" in str(caught.value)
    assert "min_length" not in str(caught.value)


def test_a_retriever_that_is_not_there_is_an_error_that_lists_those_that_are(built):
    with pytest.raises(IndexMissingError, match=r"no index of 'share' \(retrievers there: terms\)"):
        TermShare().retrieve([["alpha"]], built, 1)


# the manifest


def rewrite(path: Path, change) -> None:
    """Change a manifest as someone would who knows how its checksum is made."""
    content = json.loads((path / MANIFEST_FILE).read_text())
    content.pop("checksum")
    change(content)
    from nlp_retrieval.core.index.manifest import _checksum

    content["checksum"] = _checksum(content)
    (path / MANIFEST_FILE).write_text(json.dumps(content))


def test_a_manifest_edited_by_hand_is_damage(built):
    file = built / MANIFEST_FILE
    file.write_text(file.read_text().replace('"n_items":3', '"n_items":4'))
    with pytest.raises(IndexDamagedError, match=r"manifest\.json is damaged: its checksum"):
        found(built)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"checksum": null, "format": 3}',
        "\xff",
        "[" * 100_000,
        '{"checksum":"x","a":NaN}',
        '{"checksum":"x","a":"\\ud800"}',
    ],
)
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


@pytest.mark.parametrize("written", [2, 99])
def test_an_index_of_another_version_is_to_be_built_again(built, written):
    rewrite(built, lambda content: content.update(format=written))
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
    with pytest.raises(IndexDamagedError, match=r"manifest\.json cannot be read: not a regular file"):
        found(built)


@pytest.mark.parametrize("name", ["../../outside", "/etc", ".hidden", "a/b", "", "..", "a\n"])
def test_a_manifest_that_names_a_place_elsewhere_is_damage(built, name):
    rewrite(built, lambda content: content["corpus"]["segments"][0].update(folder=name))
    with pytest.raises(IndexDamagedError, match="folder"):
        found(built)


def test_a_retriever_without_a_name_is_damage(built):
    rewrite(built, lambda content: content["retrievers"][0].update(config={}))
    with pytest.raises(IndexDamagedError, match="a retriever has no name"):
        drop_retriever(built, "tokens")


def test_where_no_index_is_none_can_be_dropped(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(IndexMissingError, match="there is no index at"):
        drop_retriever(tmp_path / "file" / "index", "bm25")


def test_a_field_that_is_missing_or_unknown_is_damage_with_its_place(built):
    rewrite(built, lambda content: content["corpus"].update(surprise=1))
    with pytest.raises(IndexDamagedError, match=r"corpus\.surprise"):
        found(built)
    rewrite(built, lambda content: content.pop("corpus"))
    with pytest.raises(IndexDamagedError, match="corpus"):
        found(built)
