"""The rules of filters: no result ever fails one, and k results come back wherever k match."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.testing.retriever_base import RetrieverChecks
from nlp_retrieval.testing.samples import FILTERS
from nlp_retrieval.testing.verdict import broken, ids_of, pairs_of, shown


class FilterRules(RetrieverChecks):
    """Rules of filters and of the masks that an engine sees."""

    order_depends_on_filter: ClassVar[bool] = False
    """Whether a filter may change the order of what passes it: True where scores depend on the other candidates."""

    def test_no_result_fails_the_filter(self) -> None:
        for where, passes in FILTERS:
            for k in (1, 3, len(self.items)):
                for query, found in self.ask_each(k, where).items():
                    failing = [result.item.item_id for result in found if not passes(result.item.metadata)]
                    if failing:
                        broken("no result fails the filter", self.opened, f"{query!r}, k={k}, where={dict(where)}: {failing}")

    def test_k_results_come_back_wherever_k_match(self) -> None:
        whole = self.ask_each()
        for where, passes in FILTERS:
            for k in (1, 2, 3, len(self.items)):
                for query, found in self.ask_each(k, where).items():
                    wanted = [result.item.item_id for result in whole[query] if passes(result.item.metadata)]
                    told = f"{query!r}, k={k}, where={dict(where)}: {pairs_of(found)}; without a filter, {wanted} pass it"
                    if len(found) != min(k, len(wanted)) or not set(ids_of(found)) <= set(wanted):
                        broken("k results come back wherever k items match query and filter", self.opened, told)
                    if not self.order_depends_on_filter and ids_of(found) != wanted[:k]:
                        broken("a filter changes nothing in the order of what passes it", self.opened, told)

    def test_the_engine_returns_only_rows_that_the_mask_allows(self) -> None:
        n, queries = len(self.items), list(self.queries)
        draw = np.random.default_rng(0)
        masks: list[Mask] = [np.zeros(n, np.bool_), np.arange(n) == n - 1, np.arange(n) % 2 == 0, draw.random(n) < 0.5]
        for allowed in masks:
            for k in (1, n):
                hits = self.searching().search_batch(queries, k, allowed.copy())
                self._check_hits(hits, k)
                if not allowed[hits.rows].all():
                    rows = np.unique(hits.rows[~allowed[hits.rows]]).tolist()
                    allows = np.flatnonzero(allowed).tolist()
                    broken(
                        "search_batch returns only rows that are allowed", self.opened, f"k={k}: rows {rows}; allowed: {allows}"
                    )

    def test_a_mask_of_all_rows_changes_nothing(self) -> None:
        n, queries = len(self.items), list(self.queries)
        for k in (2, n):
            without = self.searching().search_batch(queries, k, None)
            everything = self.searching().search_batch(queries, k, np.ones(n, np.bool_))
            self._check_hits(without, k)
            if _lists(without) != _lists(everything):
                broken(
                    "a mask that allows every row changes nothing",
                    self.opened,
                    f"k={k}: {shown(_lists(without))} without, {shown(_lists(everything))} with",
                )

    def _check_hits(self, hits: Hits, k: int) -> None:
        counts = np.diff(hits.offsets)
        if len(counts) != len(self.queries) or (len(counts) and counts.max() > k):
            broken(
                "search_batch returns one list per query, of at most k rows",
                self.opened,
                f"{len(self.queries)} queries, k={k}: lists of {counts.tolist()}",
            )


def _lists(hits: Hits) -> list[list[int]]:
    """The rows of each list, best first and ties by row: the order of rows within a list is the framework's to set."""
    bounds = zip(hits.offsets[:-1].tolist(), hits.offsets[1:].tolist(), strict=True)
    return [hits.rows[a:b][np.lexsort((hits.rows[a:b], -hits.scores[a:b]))].tolist() for a, b in bounds]
