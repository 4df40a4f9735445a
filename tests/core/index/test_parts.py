"""Retrievers made of retrievers: each part keeps an index of its own, built once, shared, and opened with the whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from core.engines import TermCount, TermShare, documents
from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import IndexMismatchError, IndexMissingError

ITEMS = documents(["alpha beta", "beta gamma delta", "gamma", "alpha alpha", "delta beta"])


class Sum(BaseRetriever):
    """Adds up what its parts score, and tells what each did.

    Args:
        of: its parts.
        size: of its index.
    """

    name = "sum"
    search_only = frozenset({"of"})

    def __init__(self, of: Sequence[BaseRetriever], size: int = 1) -> None:
        self.of = of
        self.size = size

    def parts(self) -> Sequence[BaseRetriever]:
        return self.of

    def build(self, items: ItemTable, folder: Path) -> None:
        (folder / "sum.json").write_text(json.dumps(len(items)))

    def load(self, folder: Path) -> None:
        self.n_items = json.loads((folder / "sum.json").read_text())

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        scores = np.full((len(queries), len(self._opened_parts), self.n_items), np.nan)
        for place, part in enumerate(self._opened_parts):
            hits = part.search_batch(queries, self.n_items, allowed)
            owner = np.repeat(np.arange(len(queries)), np.diff(hits.offsets))
            scores[owner, place, hits.rows] = hits.scores
        lists, told = [], []
        for one in scores:
            rows = np.flatnonzero(~np.isnan(one).all(axis=0))
            total = np.nansum(one[:, rows], axis=0)
            best = np.lexsort((rows, -total))[:k]
            lists.append((rows[best], total[best]))
            told.append(one[:, rows[best]])
        joined = np.concatenate(told, axis=1) if told else np.zeros((len(self._opened_parts), 0))
        hits = Hits.from_lists(lists)
        return Hits(hits.offsets, hits.rows, hits.scores, {f"part{place}": column for place, column in enumerate(joined)})


def names_of(identities: Sequence[BaseRetriever]) -> list[str]:
    return [one.name for one in identities]


def test_parts_stand_before_what_is_made_of_them_and_each_index_once() -> None:
    inner = Sum([TermCount(), TermShare()])
    outer = Sum([inner, TermCount(boost=3.0)], size=2)
    assert names_of(with_parts([outer])) == ["terms", "share", "sum", "sum"]
    assert names_of(with_parts([TermShare(), outer, inner])) == ["share", "terms", "sum", "sum"]
    assert names_of(with_parts([TermCount(), TermCount(min_length=2), Sum([TermCount(boost=2.0)])])) == [
        "terms",
        "terms",
        "sum",
    ]
    assert with_parts([]) == []


def test_a_part_that_another_configuration_uses_is_built_once(tmp_path: Path) -> None:
    searcher = Searcher([TermCount(), Sum([TermCount(boost=2.0), TermShare()])])
    assert searcher.index(ITEMS, tmp_path).built == ["terms", "share", "sum"]
    again = Sum([TermShare(), TermCount()]).index(ITEMS, tmp_path)
    assert (again.built, again.found) == ([], ["share", "terms", "sum"])
    other = Sum([TermCount(min_length=3)]).index(ITEMS, tmp_path)
    assert (other.built, other.found) == (["terms"], ["sum"])


def test_a_part_without_an_index_is_missing_and_one_of_another_configuration_does_not_fit(tmp_path: Path) -> None:
    Sum([TermCount()]).index(ITEMS, tmp_path)
    with pytest.raises(IndexMissingError, match=r"no index of 'share' \(retrievers there: sum, terms\)"):
        Sum([TermCount(), TermShare()]).retrieve([["alpha"]], tmp_path, 3)
    with pytest.raises(IndexMismatchError, match=r"terms index .*min_length: indexed with 1, now 2"):
        Sum([TermCount(min_length=2)]).retrieve([["alpha"]], tmp_path, 3)
