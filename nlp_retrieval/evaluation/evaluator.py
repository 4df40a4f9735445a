"""Evaluation of rankings: seven measures at every cutoff, from one search at the largest.

Definitions are those of trec_eval and ir-measures, and are tested against them. Gold with a grade of 0 or less is
not relevant and gives no gain. A query that found nothing, or that has no relevant document, scores 0 and counts. The
evaluator looks up the rank of each gold
document instead of the grade of each hit, because there are far fewer gold documents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, offsets_of
from nlp_retrieval.core.models import Gold
from nlp_retrieval.errors import EngineError, GoldError, ItemError, QueryError
from nlp_retrieval.evaluation.gold import GoldMissing, missing_gold, relevant_documents, rows_of

# A measure with its cutoff as a value: parsed from ``recall@5``, printed as that, with a label and a sort key.

LABELS = {
    "perfect_recall": "Perfect recall",
    "recall": "Recall",
    "ndcg": "nDCG",
    "mrr": "MRR",
    "map": "MAP",
    "precision": "Precision",
    "f1": "F1",
    "answer_em": "Answer EM",
    "answer_f1": "Answer F1",
    "sp_em": "Facts EM",
    "sp_f1": "Facts F1",
    "sp_recall": "Facts recall",
    "joint_em": "Joint EM",
    "joint_f1": "Joint F1",
}
"""Display names of families of measures, in display order."""


@dataclass(frozen=True)
class Measure:
    """A measure, by its family and its cutoff.

    Args:
        family: ``recall``, ``ndcg``, ...; a family of another tool keeps its own name.
        cutoff: how many results count; None for a measure without a cutoff.
    """

    family: str
    cutoff: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the measure written as a text; without a valid cutoff, all of it is the family."""
        family, _, cutoff = text.rpartition("@")
        if family and cutoff.isascii() and cutoff.isdecimal() and cutoff == str(int(cutoff)):
            return cls(family, int(cutoff))
        return cls(text)

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @property
    def family_label(self) -> str:
        """Display name of the family: ``nDCG``."""
        return LABELS.get(self.family, self.family)

    @property
    def label(self) -> str:
        """Heading: ``nDCG @10``."""
        return self.family_label if self.cutoff is None else f"{self.family_label} @{self.cutoff}"

    @property
    def order(self) -> tuple[int, str, int]:
        """Return the sort key of measures for display: families in the order of ``LABELS``, then cutoffs."""
        known = list(LABELS)
        family_position = known.index(self.family) if self.family in LABELS else len(known)
        return family_position, self.family, self.cutoff or 0


MEASURES = ("precision", "recall", "f1", "perfect_recall", "ndcg", "map", "mrr")
"""The families of measures, in storage order."""


def measure_names(k_values: Sequence[int]) -> list[str]:
    """Return ``["precision@1", "recall@1", ..., "mrr@10"]``: for each k, ascending, every measure.

    Raises:
        QueryError: ``k_values`` is empty or holds something other than integers above 0.
    """
    return [str(Measure(family, k)) for k in _cutoffs(k_values) for family in MEASURES]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The measures of one run, query by query.

    Args:
        query_ids: in the order of the gold.
        per_query: ``[queries]`` by measure name, each in 0..1, in the order of :func:`measure_names`.
        empty_queries: how many queries found nothing.
    """

    query_ids: list[str]
    per_query: dict[str, Scores]
    empty_queries: int = 0

    def means(self, mask: Mask | None = None) -> dict[str, float]:
        """Return the mean of every measure, the same to the last bit on every machine.

        Args:
            mask: ``[queries]``, the queries to average over; None for all.

        Raises:
            GoldError: the mask selects no query, or does not have one element per query.
        """
        if mask is not None and (mask.dtype != np.bool_ or mask.shape != (len(self.query_ids),)):
            raise GoldError(
                f"the mask is {mask.dtype} {mask.shape}; it must be one bool for each of {len(self.query_ids)} queries"
            )
        count = len(self.query_ids) if mask is None else int(mask.sum())
        if count == 0:
            raise GoldError("no query is in this group, so it has no mean; leave the group out")
        # fsum, because numpy's order of adding depends on the processor, and results.json is compared byte by byte.
        return {
            name: math.fsum((values if mask is None else values[mask]).tolist()) / count
            for name, values in self.per_query.items()
        }


class RetrievalEvaluator:
    """Scores rankings of item rows against gold.

    Precision@k divides by k, however few hits there are. F1@k uses one query's precision and recall. Perfect recall@k
    is 1 if all relevant gold is among the first k. nDCG@k has the grade as gain and log2(rank + 1) as discount, and
    the ideal uses all gold (Järvelin and Kekäläinen, 2002). MAP@k divides by all relevant gold, including beyond k.
    MRR@k is 0 if the first relevant hit is beyond k.

    Gold that names a title is found by the first hit with that title. Further hits with the same title (the chunks of
    one page) are not counted again; titles of one query that are equal in normalised form count as one, with the highest
    of their grades.

    Args:
        gold: one per query; :meth:`evaluate` takes rankings in this order.
        item_ids: row r of the corpus is ``item_ids[r]``.
        titles: by row, empty for an item without one; None if the corpus has no titles.
        k_values: the cutoffs, in any order.
        gold_missing: treatment of relevant documents that the corpus lacks. ``"error"``: they raise an error. ``"count"``:
            they count as not found. ``"drop"``: they are removed from the gold; a query that has no others scores 0.

    Raises:
        GoldError: no gold, two for one query, no relevant gold at all, gold that is not in the corpus if that is an error,
            or none of it in the corpus because it names titles instead of ids, or the reverse.
        QueryError: ``k_values`` is empty or holds something other than integers above 0.
        ItemError: there are not as many titles as items.
    """

    def __init__(
        self,
        gold: Sequence[Gold],
        item_ids: Sequence[str],
        titles: Sequence[str] | None,
        k_values: Sequence[int],
        gold_missing: GoldMissing = "error",
    ) -> None:
        self.k_values = _cutoffs(k_values)
        if titles is not None and len(titles) != len(item_ids):
            raise ItemError(f"{len(titles)} titles for {len(item_ids)} items; give one for each row, empty where there is none")
        wanted = relevant_documents(gold)
        places = rows_of(set(chain.from_iterable(wanted)), item_ids, titles)
        self.missing = missing_gold(gold, wanted, places, item_ids, titles)
        if self.missing is not None and (gold_missing == "error" or self.missing.confused):
            raise GoldError(f"{self.missing.said}; {self.missing.cure}")
        if gold_missing == "drop":
            wanted = [{key: grade for key, grade in documents.items() if key in places} for documents in wanted]
        nowhere = len(item_ids)  # row for documents that are not in the corpus; no ranking contains it
        gold_places = [places.get(key, [nowhere]) for key in chain.from_iterable(wanted)]
        self._names = [name for documents in wanted for _, name in documents.values()]
        self.query_ids = [wanted.query_id for wanted in gold]
        self._item_ids = item_ids

        # A unit is one relevant document of one query; a title shared by several rows is one unit with several rows.
        self._unit_offsets = offsets_of([len(documents) for documents in wanted])
        self._owner = np.repeat(np.arange(len(gold)), np.diff(self._unit_offsets))
        self._grades = np.array([grade for documents in wanted for grade, _ in documents.values()], np.float64)
        self._row_offsets = offsets_of([len(rows) for rows in gold_places])
        self._rows = np.fromiter(chain.from_iterable(gold_places), np.int64)
        self._relevant = np.diff(self._unit_offsets).astype(np.float64)
        # A position from 0 that no cutoff reaches means "not found"; it need not be beyond the corpus.
        self._nowhere = min(self.k_values[-1], len(item_ids))
        self._cuts = {k: min(k, self._nowhere) for k in self.k_values}
        self._discount = np.array([1 / math.log2(place + 2) for place in range(self._nowhere)] + [0.0])
        best_first = np.lexsort((-self._grades, self._owner))
        place = np.minimum(self._nth, self._nowhere)
        gains = self._grades[best_first] * self._discount[place]
        self._ideal = {k: self._sums(place < cut, gains) for k, cut in self._cuts.items()}

    def evaluate(self, rows: NDArray[np.integer]) -> Evaluation:
        """Score a matrix of rankings.

        Args:
            rows: ``[queries, depth]`` item rows, best first, in the order of the gold; -1 is an empty slot and
                takes up no rank.

        Raises:
            EngineError: not one ranking per query, a row outside the corpus, or a row twice in one ranking.
        """
        if rows.ndim != 2 or rows.dtype.kind not in "iu":
            raise EngineError(f"rankings are integers [queries, depth], not {rows.dtype} {list(rows.shape)}")
        filled = rows != -1
        if filled.all():
            return self.evaluate_ragged(np.arange(len(rows) + 1) * rows.shape[1], rows.ravel())
        return self.evaluate_ragged(offsets_of(filled.sum(axis=1)), rows[filled])

    def evaluate_lists(self, lists: Sequence[Sequence[int]]) -> Evaluation:
        """Score rankings of unequal length, given as lists of item rows, best first, in the order of the gold.

        Raises:
            EngineError: as :meth:`evaluate`.
        """
        return self.evaluate_ragged(
            offsets_of([len(ranking) for ranking in lists]), np.fromiter(chain.from_iterable(lists), np.int64)
        )

    def evaluate_ragged(self, offsets: NDArray[np.integer], rows: NDArray[np.integer]) -> Evaluation:
        """Score rankings stored consecutively, as in a ``CandidateBatch``.

        Args:
            offsets: ``[queries + 1]``; query i owns ``offsets[i]:offsets[i + 1]`` of ``rows``.
            rows: item rows, best first.

        Raises:
            EngineError: as :meth:`evaluate`.
        """
        lengths = np.diff(offsets)
        if len(lengths) != len(self.query_ids):
            raise EngineError(
                f"{len(lengths)} rankings for {len(self.query_ids)} queries; give an empty one where nothing was found"
            )
        if offsets[0] != 0 or offsets[-1] != len(rows) or (lengths < 0).any():
            raise EngineError(f"the offsets run from {offsets[0]} to {offsets[-1]}, not in order from 0 to {len(rows)}")
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self._item_ids)):
            wrong = rows[(rows < 0) | (rows >= len(self._item_ids))][0]
            raise EngineError(f"a ranking names row {wrong}; the corpus has rows 0..{len(self._item_ids) - 1}")
        positions = self._positions(offsets, rows.astype(np.int64, copy=False))
        return Evaluation(list(self.query_ids), self._measures(positions), int((lengths == 0).sum()))

    def qrels(self) -> dict[str, dict[str, int]]:
        """Return the relevant gold as grades by item id, for other tools; documents missing from the corpus keep their name.

        A title shared by several rows counts as one document here, but as several in tools that know only ids.
        """
        units = np.repeat(np.arange(len(self._owner)), np.diff(self._row_offsets))
        qrels: dict[str, dict[str, int]] = {query_id: {} for query_id in self.query_ids}
        for unit, row in zip(units.tolist(), self._rows.tolist(), strict=True):
            name = self._item_ids[row] if row < len(self._item_ids) else self._names[unit]
            qrels[self.query_ids[self._owner[unit]]][name] = int(self._grades[unit])
        return qrels

    def _positions(self, offsets: NDArray[np.integer], rows: NDArray[np.integer]) -> Rows:
        """Per unit, its first position in its query's ranking, from 0; ``_nowhere`` if beyond the cutoffs."""
        place = np.arange(len(rows))
        last_place = np.full(len(self._item_ids) + 1, -1, np.int64)  # the last one is for documents not in the corpus
        seen = np.empty(len(rows), np.int64)
        gold_place = np.empty(len(self._rows), np.int64)
        # One table for all queries fits in the processor's cache: seven times as fast as numpy.isin over pairs of
        # query and row. It need not be cleared, because places of earlier queries are smaller than a query's own.
        gold_offsets = self._row_offsets[self._unit_offsets]
        for begin, end, gold_begin, gold_end in zip(
            offsets[:-1].tolist(),
            offsets[1:].tolist(),
            gold_offsets[:-1].tolist(),
            gold_offsets[1:].tolist(),
            strict=True,
        ):
            ranking = rows[begin:end]
            last_place[ranking] = place[begin:end]
            seen[begin:end] = last_place[ranking]
            gold_place[gold_begin:gold_end] = last_place[self._rows[gold_begin:gold_end]]
        if (seen != place).any():
            self._refuse_duplicate(offsets, rows, int(np.flatnonzero(seen != place)[0]))
        start = np.repeat(offsets[:-1], np.diff(gold_offsets))
        position = np.where(gold_place >= start, gold_place - start, self._nowhere)
        return np.minimum(np.minimum.reduceat(position, self._row_offsets[:-1]), self._nowhere)

    def _refuse_duplicate(self, offsets: NDArray[np.integer], rows: NDArray[np.integer], at: int) -> None:
        query = int(np.searchsorted(offsets, at, side="right")) - 1
        begin, row = int(offsets[query]), int(rows[at])
        ranks = np.flatnonzero(rows[begin : offsets[query + 1]] == row) + 1
        raise EngineError(
            f"the ranking of query {self.query_ids[query]!r} holds row {row} (item {self._item_ids[row]!r}) "
            f"at ranks {', '.join(map(str, ranks))}; a ranking holds an item once"
        )

    def _measures(self, positions: Rows) -> dict[str, Scores]:
        order = np.argsort(self._owner * (self._nowhere + 1) + positions)
        position = positions[order]
        gain = self._grades[order] * self._discount[position]
        precision_there = (self._nth + 1) / (position + 1)
        judged, relevant = self._relevant > 0, np.maximum(self._relevant, 1)  # without relevant gold: 0 of 1
        first = np.full(len(judged), self._nowhere)
        first[judged] = position[self._unit_offsets[:-1][judged]]
        measures: dict[str, Scores] = {}
        for k, cut in self._cuts.items():
            inside = position < cut
            hits = self._sums(inside, inside)
            values = (
                hits / k,
                hits / relevant,
                2 * hits / (k + relevant),
                (hits == relevant).astype(np.float64),
                self._sums(inside, gain) / np.where(self._ideal[k] > 0, self._ideal[k], 1),
                self._sums(inside, precision_there) / relevant,
                np.where(first < cut, 1 / (first + 1), 0.0),
            )
            measures.update((str(Measure(family, k)), value) for family, value in zip(MEASURES, values, strict=True))
        return measures

    @property
    def _nth(self) -> Rows:
        """Per unit, in any order grouped by query, how many units of its query come before it."""
        return np.arange(len(self._owner)) - self._unit_offsets[self._owner]

    def _sums(self, inside: Mask, values: NDArray[np.generic]) -> Scores:
        """Per query, the sum of ``values`` over the units that are ``inside``, best first."""
        return np.bincount(self._owner[inside], values[inside], minlength=len(self.query_ids)).astype(np.float64)


def _cutoffs(k_values: Sequence[int]) -> list[int]:
    """Each k once, ascending."""
    if len(k_values) == 0:
        raise QueryError("k_values is empty; give the cutoffs to measure at, such as [5, 10, 20]")
    for k in k_values:
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise QueryError(f"k_values holds {k!r}; a cutoff is an integer above 0")
    return sorted({int(k) for k in k_values})
