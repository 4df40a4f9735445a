"""A searcher whose index is updated, and beside it a plain list of what it must hold."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval import RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.core.search.retriever import BaseRetriever


class UpdatedCollection:
    """Items in the order of their rows, in an index and in a list."""

    def __init__(self, retriever: BaseRetriever, texts: Sequence[str], path: Path) -> None:
        self.items = [self._item(f"d{number}", text) for number, text in enumerate(texts)]
        self.searcher = Searcher([retriever])
        self.searcher.index(self.items, path)
        self._made = len(texts)

    def add(self, texts: Sequence[str]) -> list[str]:
        """Add items; returns their ids."""
        added = [self._item(f"d{self._made + number}", text) for number, text in enumerate(texts)]
        self._made += len(added)
        self.searcher.add(added, auto_compact=False)
        self.items += added
        return [item.item_id for item in added]

    def put(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Update items of these ids; those that are not there come, or come back."""
        put = [self._item(item_id, text) for item_id, text in zip(ids, texts, strict=True)]
        self.searcher.update(put, auto_compact=False)
        self.items = [item for item in self.items if item.item_id not in ids] + put

    def delete(self, ids: Sequence[str]) -> None:
        """Delete items."""
        self.searcher.delete(ids, auto_compact=False)
        self.items = [item for item in self.items if item.item_id not in ids]

    def change_at_random(self, draw: random.Random, texts: Sequence[str], steps: int) -> Iterator[str]:
        """Add, update, delete, and now and then compact; yields after each step what it was."""
        for _ in range(steps):
            kind = draw.choice(["add", "add", "put", "delete", "delete", "compact"])
            if kind == "add":
                self.add(draw.choices(texts, k=draw.choice([1, 1, 7])))
            elif kind == "put":
                ids = list(dict.fromkeys(f"d{draw.randrange(self._made)}" for _ in range(3)))
                self.put(ids, draw.choices(texts, k=len(ids)))
            elif kind == "delete" and len(self.items) > 1:
                there = [item.item_id for item in self.items]
                begin = draw.randrange(len(there))
                wanted = draw.choice([there[begin : begin + 9], draw.sample(there, min(4, len(there) - 1))])
                self.delete(wanted[: len(there) - 1])
            elif kind == "compact":
                self.searcher.compact()
            yield kind

    def built_at_once(self, path: Path, retriever: BaseRetriever) -> Searcher:
        """A searcher over an index of what is there now."""
        searcher = Searcher([retriever])
        searcher.index(self.items, path)
        return searcher

    def files(self, pattern: str = "*.npy") -> dict[str, bytes]:
        """The files of the retriever's first segment."""
        return files_of(self.searcher, pattern)

    @staticmethod
    def _item(item_id: str, text: str) -> SearchableItem:
        return SearchableItem(item_id=item_id, content=text, metadata={"even": int(item_id[1:]) % 2 == 0})


def files_of(searcher: Searcher, pattern: str = "*.npy") -> dict[str, bytes]:
    """The files of the first segment of a searcher's retriever, by their names."""
    generation = searcher.opened
    (record,) = generation.manifest.retrievers
    folder = generation.path / record.segments[0].folder
    return {file.name: file.read_bytes() for file in sorted(folder.glob(pattern))}


def found_by(searcher: Searcher, query: str, k: int, **settings: object) -> list[tuple[str, float]]:
    """Ids and scores."""
    (hits,) = searcher.search([query], k, **settings)  # type: ignore[arg-type]
    return [(hit.item.item_id, hit.score) for hit in hits]


def check_against(
    collection: UpdatedCollection, hits: Sequence[RetrievalResult], score: Callable[[str], float], k: int, tolerance: float
) -> None:
    """Hold hits to what scoring every item by hand gives: ids in order, ties by row, and scores."""
    by_hand = [score(item.content) for item in collection.items]
    order = sorted((row for row in range(len(by_hand)) if np.isfinite(by_hand[row])), key=lambda row: (-by_hand[row], row))
    wanted = order[:k]
    assert [hit.item.item_id for hit in hits] == [collection.items[row].item_id for row in wanted]
    assert [hit.item.content for hit in hits] == [collection.items[row].content for row in wanted]
    np.testing.assert_allclose([hit.score for hit in hits], [by_hand[row] for row in wanted], atol=tolerance)
