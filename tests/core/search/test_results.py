"""Results of one search stand alone: what a caller does to one is seen in no other, and in no later search."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

ITEMS = [
    SearchableItem(item_id="fox", content="the red fox", metadata={"year": 1, "of": {"tags": ["a", {"b": 2}]}, "title": "Fox"}),
    SearchableItem(item_id="whale", content="the blue whale of the sea", metadata={"year": 2}),
]
QUERIES = ["red fox", "fox and whale", "red"]


def test_hits_of_one_item_are_equal_and_share_nothing_that_can_be_changed(tmp_path: Path) -> None:
    searcher = Searcher([Bm25Retriever()])
    searcher.index(ITEMS, tmp_path)
    before = searcher.search(QUERIES, 2)
    hits = [hit.item for found in before for hit in found if hit.item.item_id == "fox"]
    assert [hit == ITEMS[0] for hit in hits] == [True] * 3
    changed = hits[1].metadata
    changed["year"] = 99
    changed["of"]["tags"][1]["b"] = 99  # type: ignore[index, call-overload]
    changed["of"]["tags"].append("c")  # type: ignore[index, call-overload, union-attr]
    assert [hit == ITEMS[0] for hit in hits] == [True, False, True]
    assert [hit.item == ITEMS[0] for found in searcher.search(QUERIES, 1) for hit in found] == [True] * 3
