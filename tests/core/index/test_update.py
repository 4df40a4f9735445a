"""Updates of an index in place: all of an update is seen or none, what is deleted is gone, and joining changes no answer."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import pytest
from attacks.planting import write_forged

from core.engines import TermCount, documents
from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.core.files import atomic as durable
from nlp_retrieval.core.index.generation import MANIFEST_FILE, open_generation, read_manifest, verify_index
from nlp_retrieval.core.search.base_searcher import drop_retriever
from nlp_retrieval.errors import (
    IndexDamagedError,
    IndexMismatchError,
    IndexMissingError,
    IndexWriteError,
    ItemError,
    RetrievalWarning,
)

TEXTS = ["alpha beta", "beta gamma", "gamma delta", "delta alpha alpha"]


def item(item_id: str, content: str, **metadata: object) -> SearchableItem:
    return SearchableItem(item_id=item_id, content=content, metadata=metadata)


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    found = Searcher([TermCount()])
    found.index(documents(TEXTS), tmp_path / "index")
    return found


def ids(searcher: Searcher, query: str, **settings: object) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # that nothing was found is what some tests look for
        return [hit.item.item_id for hit in searcher.search(query, 100, **settings)[0]]  # type: ignore[arg-type]


def folders(searcher: Searcher) -> set[str]:
    return {path.name for path in searcher.opened.path.iterdir() if path.is_dir()}


def test_a_retriever_that_cannot_be_made_again_is_named_and_nothing_changes(searcher: Searcher) -> None:
    before = read_manifest(searcher.opened.path)
    stranger = Searcher([Bm25Retriever()])
    stranger.index(documents(TEXTS), searcher.opened.path)
    with pytest.raises(IndexMismatchError, match="cannot be kept up to date: terms: there is no retriever"):
        stranger.add([item("n", "omega")])
    assert before is not None
    assert ids(stranger, "omega") == []


class Failing(TermCount):
    """Cannot take up more items."""

    name = "failing"

    def extend(self, *parts: object, **more: object) -> None:
        raise RuntimeError("no more")


def test_a_retriever_that_fails_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    searcher = Searcher([TermCount(), Failing()])
    searcher.index(documents(TEXTS), tmp_path)
    before, there = read_manifest(tmp_path), folders(searcher)
    with pytest.raises(RuntimeError, match="no more"):
        searcher.add([item("n", "omega")])
    assert read_manifest(tmp_path) == before
    assert folders(searcher) == there
    assert ids(searcher, "omega") == []


def test_segments_that_cannot_be_joined_are_told_of_and_the_update_stands(tmp_path: Path) -> None:
    class NotJoining(TermCount):
        def join(self, *parts: object) -> None:
            raise IndexWriteError("the disk is full")

    searcher = Searcher([NotJoining()])
    searcher.index(documents(TEXTS), tmp_path)
    with pytest.warns(RetrievalWarning, match=r"was updated, but its segments could not be joined \(the disk is full\)"):
        report = searcher.add([item("n", "omega"), item("m", "omega")])
    assert (report.n_items, report.segments) == (6, 2)
    assert ids(searcher, "omega") == ["n", "m"]
    assert folders(searcher) - {"xdg-cache"} == set(searcher.opened.manifest.folders)


def test_what_is_no_id_is_not_deleted(searcher: Searcher) -> None:
    with pytest.raises(ItemError, match=r"an item id is a string; found RetrievalResult\("):
        searcher.delete(searcher.search("alpha")[0])  # type: ignore[arg-type]


def test_all_is_joined_once_a_quarter_was_deleted_or_half_as_much_was_added(tmp_path: Path) -> None:
    searcher = Searcher([TermCount()])
    searcher.index(documents([f"text {number}" for number in range(100)]), tmp_path)
    searcher.delete([f"d{number}" for number in range(25)])
    assert len(searcher.opened.items) == 100
    searcher.delete(["d25"])
    assert len(searcher.opened.items) == 74
    searcher.add([item(f"n{number}", "text") for number in range(37)])
    assert len(searcher.opened.manifest.corpus.segments) == 1


def test_a_manifest_whose_segments_do_not_line_up_is_damaged(searcher: Searcher) -> None:
    searcher.add([item("n", "omega")], auto_compact=False)
    content = json.loads((searcher.opened.path / MANIFEST_FILE).read_text())
    content["corpus"]["segments"][1].update({"first_row": 1})
    write_forged(searcher.opened.path, content)
    with pytest.raises(IndexDamagedError, match=r"are not consecutive|are not those of the items"):
        open_generation(searcher.opened.path)


def test_an_update_that_is_interrupted_after_it_was_published_stands(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = searcher.opened.path
    whole = durable.sync

    def interrupted(folder: Path) -> None:
        whole(folder)
        generation = read_manifest(path)
        if folder == path and generation is not None and generation.generation == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(durable, "sync", interrupted)
    with pytest.raises((KeyboardInterrupt, OSError, IndexWriteError)):
        searcher.add([item("n", "omega")], auto_compact=False)
    monkeypatch.undo()
    assert ids(Searcher([TermCount()]).open(path), "omega") == ["n"]
    assert verify_index(path) == []


def test_a_retriever_is_dropped_with_its_files_and_where_there_is_no_index_no_folder_is_made(
    searcher: Searcher, tmp_path: Path
) -> None:
    path = searcher.opened.path
    before = folders(searcher)
    Searcher([Bm25Retriever()]).index(documents(TEXTS), path)
    assert drop_retriever(path, "bm25") == ["terms"]
    of_languages = (Bm25Retriever(language=language) for language in ("en", "de", "fr"))
    Searcher([TermCount(), *of_languages]).index(documents(TEXTS), tmp_path / "three")
    with pytest.raises(RetrievalWarning, match="terms is dropped"):  # an error here
        drop_retriever(tmp_path / "three", "terms")
    assert drop_retriever(tmp_path / "three", "bm25") == ["bm25", "bm25-2"]
    assert folders(searcher) == before
    with pytest.raises(IndexMissingError):
        drop_retriever(tmp_path / "none" / "index", "bm25")
    assert not (tmp_path / "none").exists()


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["LinkGraphRetriever([Bm25Retriever()])", "FaissRetriever(encoder=HashedWords())"])
def test_an_index_of_many_segments_and_few_open_files_is_not_called_damaged(tmp_path: Path, engine: str) -> None:
    """At any number of files that may be open, an index opens, is searched and read, or says what it lacks."""
    script = f"""
        import os, resource, sys
        from hashed_words import HashedWords
        from nlp_retrieval import Bm25Retriever, FaissRetriever, LinkGraphRetriever, SearchableItem, Searcher
        searcher = Searcher([{engine}])
        item = lambda name: SearchableItem(item_id=name, content="alpha beta " + name, metadata={{"title": "Omega " + name}})

        def build():
            searcher.index([item(f"d{{n}}") for n in range(5)], sys.argv[1])
            for n in range(3):
                searcher.add([item(f"n{{n}}")], auto_compact=False)
            searcher.search(["alpha"], k=3)

        def look(left):
            used = len(os.listdir("/proc/self/fd"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + left, used + left))
            try:
                searcher.open(sys.argv[1])
                searcher.search(["alpha"], k=3)
                assert len(list(searcher.opened.items.stream())) == 8
                print("read", flush=True)
            except Exception as error:
                print(type(error).__name__, error, flush=True)

        for do, *given in (build,), *((look, left) for left in (1, 6, 11, 18, 26, 34, 200)):
            if (child := os.fork()) == 0:  # which has imported what the others have, and opened nothing
                do(*given)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    """
    tests = Path(__file__).parents[2]
    code = f"import sys; sys.path.insert(0, {str(tests)!r})\n{textwrap.dedent(script)}"
    said = subprocess.run(
        [sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(said) == 7
    assert said[-1] == "read"
    for text in said:
        assert text == "read" or ("IndexStateError" in text and "ulimit -n" in text), text
