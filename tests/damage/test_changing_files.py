"""Files that change under an open reader: what we do ourselves it does not notice."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from cli.commands import run as run_command
from soaking import mostly_soaked

from nlp_retrieval import Bm25Retriever, JsonlLoader, RetrievalResult, SearchableItem, Searcher, verify_index
from nlp_retrieval.core import BaseRetriever

from .collection import QUERIES, IndexFile, files_of, pages, retrievers

LABELS = list(retrievers())


def told(results: list[list[RetrievalResult]]) -> list[list[tuple[str, str, float]]]:
    return [[(hit.item.item_id, hit.item.content, hit.score) for hit in hits] for hits in results]


@pytest.fixture
def own(index: Path, tmp_path: Path) -> Path:
    """A copy of the index, to be spoiled."""
    return Path(shutil.copytree(index, tmp_path / "own"))


@pytest.mark.parametrize("label", mostly_soaked(LABELS))
def test_a_file_that_is_touched_linked_copied_or_removed_is_read_on(label: str, own: Path, tmp_path: Path) -> None:
    check_read_on(retrievers()[label], files_of(own), label, own, tmp_path)


def check_read_on(retriever: BaseRetriever, files: list[IndexFile], label: str, own: Path, tmp_path: Path) -> None:
    """Check that a reader goes on with files that were touched, linked, copied or removed."""
    searcher = Searcher([retriever]).open(own)
    found = told(searcher.search(QUERIES, 10))
    for file in files:
        path = own / file.path
        os.link(path, tmp_path / "link")
        path.chmod(0o444)
        os.utime(path)
        if file.owner == label:
            shutil.copyfile(path, tmp_path / "same")
            (tmp_path / "same").replace(path)
        (tmp_path / "link").unlink()
    assert told(searcher.search(QUERIES, 10)) == found
    shutil.rmtree(own)
    assert told(searcher.search(QUERIES, 10)) == found


# what the package itself does


@pytest.mark.soak
def test_open_readers_find_the_same_whatever_is_written(own: Path) -> None:
    readers = {label: Searcher([retriever]).open(own) for label, retriever in retrievers().items()}
    found = {label: told(reader.search(QUERIES, 10)) for label, reader in readers.items()}
    states = {file.path: (own / file.path).stat() for file in files_of(own) if file.owner != "manifest"}
    writer = Searcher(retrievers()).open(own)
    for number, write in enumerate(
        [
            lambda: writer.add([SearchableItem(item_id="new", content="whale castle", metadata={"title": "New"})]),
            lambda: writer.update([pages()[7]]),
            lambda: writer.delete(["d8"]),
            writer.compact,
            lambda: writer.index(pages()[5:], own, replace=True),
        ]
    ):
        write()
        assert {label: told(reader.search(QUERIES, 10)) for label, reader in readers.items()} == found, number
        for path, before in states.items():
            now = (own / path).stat()
            assert (now.st_ino, now.st_size, now.st_mtime_ns) == (before.st_ino, before.st_size, before.st_mtime_ns), path
    assert verify_index(own) == []
    assert not any(reader.opened.is_current() for reader in readers.values())


def test_an_open_reader_finds_the_same_while_commands_write(tmp_path: Path) -> None:
    index, corpus, more = tmp_path / "index", tmp_path / "corpus.jsonl", tmp_path / "more.jsonl"
    lines = [json.dumps({"id": page.item_id, "content": page.content}) for page in pages()]
    corpus.write_text("\n".join(lines[:200]))
    more.write_text("\n".join(lines[200:]))
    Searcher([Bm25Retriever()]).index(JsonlLoader(corpus), index)
    reader = Searcher([Bm25Retriever()]).open(index)
    found = told(reader.search(QUERIES, 10))
    for command in (
        ["add", str(more), str(index)],
        ["delete", str(index), "d0", "d1"],
        ["compact", str(index)],
        ["index", str(more), str(index), "--retriever", "bm25", "--replace"],
    ):
        done = run_command(*command)
        assert done.returncode == 0, done.stderr
        assert told(reader.search(QUERIES, 10)) == found, command
