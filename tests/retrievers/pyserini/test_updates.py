"""Lucene after updates: additions score as if they had been there from the start, and what is deleted is never found."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import pytest

from nlp_retrieval import PyseriniRetriever, SearchableItem, Searcher
from nlp_retrieval.errors import RetrievalWarning

_DRAW = random.Random(3)
_WORDS = [f"word{number}" for number in range(60)]
ITEMS = [
    SearchableItem(
        item_id=f"d{number}",
        content=" ".join(_DRAW.choices(_WORDS, k=number % 12)),  # every twelfth is empty
        metadata={"part": number % 3, "rare": number % 29 == 0},
    )
    for number in range(230)
]
QUERIES = [" ".join(_DRAW.choices(_WORDS, k=1 + number % 4)) for number in range(40)]
SETTINGS = [{}, {"rm3": True}]

Lists = list[list[tuple[str, float]]]


def found(searcher: Searcher, k: int = 300, **settings: object) -> Lists:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)  # a query may match nothing that fulfils a filter
        lists = searcher.search(QUERIES, k, **settings)  # type: ignore[arg-type]
    return [[(hit.item.item_id, hit.score) for hit in hits] for hits in lists]


def at_once(items: list[SearchableItem], path: Path, settings: dict[str, object]) -> Lists:
    searcher = Searcher([PyseriniRetriever(**settings)])  # type: ignore[arg-type]
    searcher.index(items, path)
    return found(searcher)


@pytest.mark.parametrize("settings", SETTINGS, ids=["bm25", "rm3"])
def test_additions_score_as_if_built_at_once_and_deletions_do_after_compaction(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    searcher = Searcher([PyseriniRetriever(**settings)])  # type: ignore[arg-type]
    searcher.index(ITEMS[:200], tmp_path / "index")
    searcher.add(ITEMS[200:229], auto_compact=False)
    searcher.add(ITEMS[229:], auto_compact=False)
    assert found(searcher) == at_once(ITEMS, tmp_path / "all", settings)
    searcher.delete([item.item_id for item in ITEMS[::7]], auto_compact=False)
    left = [item for item in ITEMS if item not in ITEMS[::7]]
    assert {item_id for hits in found(searcher) for item_id, _ in hits} <= {item.item_id for item in left}
    if not settings:  # feedback reads deleted items too, so that other terms join the queries
        matching = [{item_id for item_id, _ in hits} for hits in at_once(left, tmp_path / "some", settings)]
        assert [{item_id for item_id, _ in hits} for hits in found(searcher)] == matching
        assert [hits[:5] for hits in found(searcher)] == found(searcher, 5)
    searcher.compact()
    assert found(searcher) == at_once(left, tmp_path / "left", settings)
