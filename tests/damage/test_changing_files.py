"""An open reader finds the same, whatever the package itself writes to its index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nlp_retrieval import RetrievalResult, SearchableItem, Searcher, verify_index

from .collection import QUERIES, files_of, pages, retrievers


def told(results: list[list[RetrievalResult]]) -> list[list[tuple[str, str, float]]]:
    return [[(hit.item.item_id, hit.item.content, hit.score) for hit in hits] for hits in results]


@pytest.mark.soak
def test_open_readers_find_the_same_whatever_is_written(index: Path, tmp_path: Path) -> None:
    own = Path(shutil.copytree(index, tmp_path / "own"))
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
    shutil.rmtree(own)
    assert {label: told(reader.search(QUERIES, 10)) for label, reader in readers.items()} == found
