"""The rules of rerankers: they reorder and cut, without adding or losing anything else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from nlp_retrieval.core.candidates import Hits
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.joining import BaseFusion
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.testing.component_rules import BatchRules, ComponentRules
from nlp_retrieval.testing.verdict import (
    ITEMS,
    QUERIES,
    SILENT,
    TWINS,
    close,
    difference,
    ids_of,
    pairs_of,
    shown,
    without_warnings,
)

Lists = list[list[RetrievalResult]]


Asked = tuple[str, list[RetrievalResult]]


class ListRerankerRules(BatchRules[BaseReranker]):
    """Rules of components that reorder candidates against the query, including those whose scores depend on the whole list."""

    @property
    def batch(self) -> list[Asked]:
        """Each query with candidates as from a retriever: rotated, so that each has another order."""
        return [(query, _ranked([*ITEMS[turn:], *ITEMS[:turn]])) for turn, query in enumerate(QUERIES)]

    def answers(self, batch: list[Asked], k: int = 1000) -> Lists:
        """Rerank; by default nothing is cut."""
        with without_warnings():
            owner = BaseReranker if self.shared.is_adapted else type(self.shared)
            return owner.rerank(self.shared, [query for query, _ in batch], [results for _, results in batch], k)

    def apart(self, first: list[RetrievalResult], other: list[RetrievalResult], tolerance: float) -> str | None:
        return difference(first, other, tolerance)

    def each(self) -> Iterator[tuple[str, list[RetrievalResult], list[RetrievalResult]]]:
        """Yield every query, its candidates, and what comes out."""
        for (query, candidates), actual in zip(self.batch, self.whole, strict=True):
            yield query, candidates, actual

    def test_candidates_are_reordered_and_none_is_added_or_lost(self) -> None:
        for query, candidates, actual in self.each():
            before, after = ids_of(candidates), ids_of(actual)
            seen = f"{query!r}: lost {sorted({*before} - {*after})}, added {sorted({*after} - {*before})} of {len(before)}"
            self.require(sorted(after) == sorted(before), "a reranker reorders and cuts: what comes in goes out, once", seen)

    def test_a_shorter_list_is_the_beginning_of_a_longer_one(self) -> None:
        for k in (1, 2, 5):
            for (query, _, longer), actual in zip(self.each(), self.answers(self.batch, k), strict=True):
                seen = f"{query!r}, k={k}: {pairs_of(actual)}; of {pairs_of(longer)}"
                self.require(ids_of(actual) == ids_of(longer)[:k], "the k best come back", seen)

    def test_scores_are_finite_the_best_comes_first_and_ties_keep_the_incoming_order(self) -> None:
        for query, candidates, actual in self.each():
            incoming = ids_of(candidates)
            seen = f"{query!r}: {pairs_of(actual)}; in: {incoming}"
            self.require(all(math.isfinite(result.score) for result in actual), "scores are finite", seen)
            keys = [(-result.score, incoming.index(result.item.item_id)) for result in actual]
            self.require(keys == sorted(keys), "best first; results with equal scores keep their order", seen)

    def test_signals_are_kept_and_the_own_score_joins_them(self) -> None:
        name = f"{self.shared.name}.score"
        for query, candidates, actual in self.each():
            before = {result.item.item_id: result for result in candidates}
            for result in actual:
                was = before[result.item.item_id]
                is_kept = result.item == was.item and was.signals.items() <= result.signals.items()
                seen = f"{query!r}: {shown(was)} {shown(was.signals)} became {shown(result)} {shown(result.signals)}"
                self.require(is_kept, "item and signals of a candidate are kept", seen)
                is_told = math.isfinite(result.signals.get(name, math.nan))
                self.require(is_told, f"the reranker's own score is the signal {name!r}, and finite", seen)

    def test_empty_lists_stay_empty(self) -> None:
        first, (query, _), last = self.batch[:3]
        lengths = [len(results) for results in self.answers([first, (query, []), last])]
        is_kept = lengths == [len(first[1]), 0, len(last[1])] and self.answers([(query, [])]) == [[]]
        self.require(is_kept, "an empty list stays empty, and the others their length", lengths)

    def test_queries_that_say_nothing_are_survived(self) -> None:
        candidates = self.batch[0][1]
        for query, actual in zip(SILENT, self.answers([(query, candidates) for query in SILENT]), strict=True):
            is_kept = sorted(ids_of(actual)) == sorted(ids_of(candidates))
            self.require(is_kept, "a query without a word loses no candidate", f"{query!r}: {ids_of(actual)}")


class RerankerRules(ListRerankerRules):
    """Rules of components that score each candidate against the query by itself."""

    def test_items_that_are_alike_score_alike(self) -> None:
        name = f"{self.shared.name}.score"
        for query, _, actual in self.each():
            scores = [result.signals[name] for result in actual if result.item.item_id in TWINS]
            are_close = all(close(scores[0], score, self.tolerance) for score in scores)
            self.require(are_close, "items that differ only in their ids get equal scores", f"{query!r}: {scores} for {TWINS}")

    def test_a_score_does_not_depend_on_the_other_candidates(self) -> None:
        name = f"{self.shared.name}.score"
        for query, candidates, actual in self.each():
            (fewer,) = self.answers([(query, candidates[::-3])])
            scores = {result.item.item_id: result.signals[name] for result in actual}
            for result in fewer:
                wanted, score = scores[result.item.item_id], result.signals[name]
                seen = f"{query!r}, {result.item.item_id!r}: {wanted!r}, and {score!r} among fewer candidates"
                self.require(close(score, wanted, self.tolerance), "a pair of query and item has one score in any list", seen)


def _ranked(items: list[SearchableItem]) -> list[RetrievalResult]:
    """Results with scores and signals as from a retriever; every third score equals the one before."""
    return [
        RetrievalResult(
            item=item,
            score=float(len(items) - position + (position % 3 == 2)),
            signals={"retriever.score": float(len(items) - position), "retriever.rank": position + 1.0},
        )
        for position, item in enumerate(items)
    ]


# The rules of fusions: every candidate of every retriever once, best first, with finite scores.


Ranked = list[tuple[int, float]]

LISTS: Mapping[str, Mapping[str, Ranked]] = {
    "both found some": {"one": [(3, 9.0), (1, 4.0), (7, 4.0)], "other": [(1, 0.9), (3, 0.5), (4, 0.1)]},
    "the same list twice": {"one": [(2, 5.0), (0, 3.0)], "other": [(2, 5.0), (0, 3.0)]},
    "nothing in common": {"one": [(5, 2.0), (6, 1.0)], "other": [(0, 8.0), (9, 7.0)]},
    "one found nothing": {"one": [], "other": [(8, 1.5), (2, 0.5)]},
    "nobody found anything": {"one": [], "other": []},
    "all scores equal": {"one": [(1, 2.0), (4, 2.0), (6, 2.0)], "other": [(1, 2.0), (4, 2.0), (6, 2.0)]},
    "a list of one": {"one": [(6, 0.0)], "other": [(6, 0.0)]},
    "far apart": {"one": [(0, 1e300), (1, -1e300)], "other": [(1, 1e-300), (0, 0.0), (2, -5.0)]},
    "negative scores": {"one": [(7, -1.0), (3, -2.0)], "other": [(3, -10.0), (7, -20.0)]},
}
"""Hits of two retrievers, as row and score, by the special property of the query."""


class FusionRules(ComponentRules[BaseFusion]):
    """Rules of components that merge the lists of several retrievers."""

    def fused(self, names: list[str]) -> list[Ranked]:
        """Fuse the lists of queries, and check the resulting batch."""
        return _lists_of(self.make().fuse(_batches(names)))

    def test_every_candidate_comes_once_the_best_first_and_ties_by_row(self) -> None:
        for name, actual in zip(LISTS, self.fused(list(LISTS)), strict=True):
            wanted = sorted({row for ranked in LISTS[name].values() for row, _ in ranked})
            seen = f"{name}: {actual}, not {wanted}"
            is_whole = sorted(row for row, _ in actual) == wanted
            self.require(is_whole, "every candidate of every retriever is fused, once", seen)
            self.require(np.isfinite([score for _, score in actual]).all(), "fused scores are finite", seen)
            is_sorted = actual == sorted(actual, key=lambda pair: (-pair[1], pair[0]))
            self.require(is_sorted, "fused lists are best first, ties by row", seen)

    def test_what_all_rank_first_comes_first(self) -> None:
        for name in ("the same list twice", "a list of one"):
            (actual,) = self.fused([name])
            is_first = actual[0][0] == LISTS[name]["one"][0][0]
            self.require(is_first, "an item that every retriever ranks first comes first", f"{name}: {actual}")

    def test_a_list_does_not_depend_on_the_rest_of_the_batch(self) -> None:
        for name, within in zip(LISTS, self.fused(list(LISTS)), strict=True):
            (alone,) = self.fused([name])
            is_same = [row for row, _ in alone] == [row for row, _ in within]
            is_same = is_same and all(close(a[1], b[1], self.tolerance) for a, b in zip(alone, within, strict=True))
            self.require(is_same, "a query gets the same list alone and within a batch", f"{name}: {alone} and {within}")

    def test_the_same_call_twice_gives_the_same_answer(self) -> None:
        first, other = self.fused(list(LISTS)), self.fused(list(LISTS))
        self.require(first == other, "the same call twice gives the same answer", f"{first}, then {other}")

    def test_signals_are_kept_and_the_fused_score_joins_them(self) -> None:
        fused = self.make().fuse(_batches(list(LISTS)))
        is_told = np.array_equal(fused.signals.get("fusion.score", np.zeros(0)), fused.scores)
        self.require(is_told, "the signal fusion.score holds the fused score", f"signals: {sorted(fused.signals)}")
        owner, names = fused.owner, list(LISTS)
        for label in ("one", "other"):
            kept = fused.signals.get(f"{label}.score", np.full(len(fused.rows), np.nan))
            wanted = [dict(LISTS[names[owner[at]]][label]).get(row, np.nan) for at, row in enumerate(fused.rows.tolist())]
            is_kept = np.array_equal(kept, wanted, equal_nan=True)
            self.require(is_kept, "the signals of every retriever are kept", f"{label}.score is {kept}, and was {wanted}")

    def test_what_comes_in_is_left_as_it_is(self) -> None:
        batches, before = _batches(list(LISTS)), _batches(list(LISTS))
        self.make().fuse(batches)
        for label, batch in batches.items():
            was = before[label]
            is_same = np.array_equal(batch.rows, was.rows) and np.array_equal(batch.scores, was.scores)
            self.require(is_same, "the incoming lists are not changed", f"{label!r} differs after the call")


def _batches(names: list[str]) -> dict[str, Hits]:
    batches = {}
    for label in ("one", "other"):
        lists = [LISTS[name][label] for name in names]
        hits = Hits.from_lists(
            [
                (np.array([row for row, _ in first], np.int64), np.array([score for _, score in first], np.float64))
                for first in lists
            ]
        )
        signals = {f"{label}.score": hits.scores.copy(), f"{label}.rank": hits.ranks.astype(np.float64)}
        batches[label] = replace(hits, signals=signals)
    return batches


def _lists_of(batch: Hits) -> list[Ranked]:
    pairs = list(zip(batch.rows.tolist(), batch.scores.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in pairwise(batch.offsets.tolist())]
