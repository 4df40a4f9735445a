"""The rules of fusions: every candidate of every retriever once, best first, with finite scores."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import ClassVar

import numpy as np

from nlp_retrieval.core.candidates import CandidateBatch, Hits, offsets_of
from nlp_retrieval.core.search.joining import BaseFusion
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.verdict import broken, close

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


class FusionRules(ComponentRules):
    """Rules of components that merge the lists of several retrievers."""

    component: ClassVar[type[BaseFusion]]

    def make(self) -> BaseFusion:
        return self.component()

    def fused(self, names: list[str]) -> list[Ranked]:
        """Fuse the lists of queries, and check the resulting batch."""
        return _lists_of(self.make().fuse(_batches(names)))

    def test_every_candidate_comes_once(self) -> None:
        for name, found in zip(LISTS, self.fused(list(LISTS)), strict=True):
            wanted = {row for ranked in LISTS[name].values() for row, _ in ranked}
            if sorted(row for row, _ in found) != sorted(wanted):
                broken(
                    "every candidate of every retriever is fused, once", self.make(), f"{name}: {found}, not {sorted(wanted)}"
                )

    def test_the_best_comes_first_and_ties_are_broken_by_row(self) -> None:
        for name, found in zip(LISTS, self.fused(list(LISTS)), strict=True):
            if not np.isfinite([score for _, score in found]).all():
                broken("fused scores are finite", self.make(), f"{name}: {found}")
            if found != sorted(found, key=lambda pair: (-pair[1], pair[0])):
                broken("fused lists are best first, ties by row", self.make(), f"{name}: {found}")

    def test_what_all_rank_first_comes_first(self) -> None:
        for name in ("the same list twice", "a list of one"):
            (found,) = self.fused([name])
            if found[0][0] != LISTS[name]["one"][0][0]:
                broken("an item that every retriever ranks first comes first", self.make(), f"{name}: {found}")

    def test_a_list_does_not_depend_on_the_rest_of_the_batch(self) -> None:
        for name, within in zip(LISTS, self.fused(list(LISTS)), strict=True):
            (alone,) = self.fused([name])
            same = [row for row, _ in alone] == [row for row, _ in within]
            if not same or not all(close(a[1], b[1], self.tolerance) for a, b in zip(alone, within, strict=True)):
                broken("a query gets the same list alone and within a batch", self.make(), f"{name}: {alone} and {within}")

    def test_the_same_call_twice_gives_the_same_answer(self) -> None:
        if (one := self.fused(list(LISTS))) != (other := self.fused(list(LISTS))):
            broken("the same call twice gives the same answer", self.make(), f"{one}, then {other}")

    def test_signals_are_kept_and_the_fused_score_joins_them(self) -> None:
        fused = self.make().fuse(_batches(list(LISTS)))
        if not np.array_equal(fused.signals.get("fusion.score", np.zeros(0)), fused.scores):
            broken("the signal fusion.score holds the fused score", self.make(), f"signals: {sorted(fused.signals)}")
        owner, names = fused.owner, list(LISTS)
        for label in ("one", "other"):
            told = fused.signals.get(f"{label}.score", np.full(len(fused.rows), np.nan))
            for at, row in enumerate(fused.rows.tolist()):
                wanted = dict(LISTS[names[owner[at]]][label]).get(row, np.nan)
                if not (told[at] == wanted or (np.isnan(told[at]) and np.isnan(wanted))):
                    broken(
                        "the signals of every retriever are kept",
                        self.make(),
                        f"{names[owner[at]]}, row {row}: {label}.score is {told[at]}, and was {wanted}",
                    )

    def test_what_comes_in_is_left_as_it_is(self) -> None:
        batches, before = _batches(list(LISTS)), _batches(list(LISTS))
        self.make().fuse(batches)
        for label, batch in batches.items():
            if not (np.array_equal(batch.rows, before[label].rows) and np.array_equal(batch.scores, before[label].scores)):
                broken("the incoming lists are not changed", self.make(), f"{label!r} differs after the call")


def _batches(names: list[str]) -> dict[str, CandidateBatch]:
    batches = {}
    for label in ("one", "other"):
        lists = [LISTS[name][label] for name in names]
        hits = Hits.from_lists(
            [(np.array([row for row, _ in one], np.int64), np.array([score for _, score in one], np.float64)) for one in lists]
        )
        batch = CandidateBatch(
            offsets_of([len(one) for one in lists]), hits.rows, hits.scores, np.zeros(len(hits.rows), np.int32)
        )
        signals = {f"{label}.score": batch.scores.copy(), f"{label}.rank": batch.ranks.astype(np.float64)}
        batches[label] = CandidateBatch(batch.offsets, batch.rows, batch.scores, batch.subquery, signals)
    return batches


def _lists_of(batch: CandidateBatch) -> list[Ranked]:
    pairs = list(zip(batch.rows.tolist(), batch.scores.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in pairwise(batch.offsets.tolist())]
