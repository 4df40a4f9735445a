"""Evaluation of rankings: all measures from one search, at the largest cutoff.

Definitions are those of trec_eval and ir-measures, and are tested against them. Gold with a grade of 0 or less is
not relevant and gives no gain. A query that found nothing, or that has no relevant document, scores 0 and counts. Nothing
depends on the corpus, or on the lists of other queries: what is divided by comes from the gold, the cutoff, and the
query's own list. The evaluator looks up the rank of each gold document instead of the grade of each hit, because there are
far fewer of them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, offsets_of
from nlp_retrieval.core.models import Gold
from nlp_retrieval.core.tables import AsTable, html_table
from nlp_retrieval.errors import EngineError, GoldError, ItemError, RetrievalWarning
from nlp_retrieval.evaluation.gold import GoldMissing, judged_documents, missing_gold, rows_of
from nlp_retrieval.evaluation.measures import (
    Measure,
    by_ir_measures,
    check_relevant_from,
    cutoffs_of,
    grades_note,
    measure_among,
    measures_at,
    read_measures,
)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(AsTable):
    """The measures of one run, query by query; as a table, a row per query, with ``qid`` and a column per measure.

    Args:
        query_ids: in the order of the gold.
        per_query: ``[queries]`` by measure name, each in 0..1, in the order in which the measures were given.
        empty_queries: how many queries found nothing; they score 0 and count.
        without_relevant: how many have no relevant document; they score 0 and count.
        unjudged: how many further queries have results and no judgements; they do not count.
        unasked: how many further queries have judgements and were not asked; they do not count.
        relevant_from: the lowest grade of a relevant document.

    Examples:
        >>> evaluator = RetrievalEvaluator(gold, ["whale", "krill", "fox"], None, measures=["mrr@10"])
        >>> evaluation = evaluator.evaluate_lists([[0], [1, 2]])
        >>> evaluation.query_ids, evaluation.per_query["mrr@10"].tolist(), evaluation.means()
        (['q1', 'q2'], [1.0, 0.5], {'mrr@10': 0.75})
    """

    query_ids: list[str]
    per_query: dict[str, Scores]
    empty_queries: int = 0
    without_relevant: int = 0
    unjudged: int = 0
    unasked: int = 0
    relevant_from: int = 1

    def __getitem__(self, measure: str) -> float:
        """Return the mean of a measure, by any of its names: ``"ndcg@10"``, ``"nDCG@10"``.

        Raises:
            ConfigurationError: it was not measured.
        """
        return self.means()[measure_among(measure, list(self.per_query), "the evaluation")]

    def to_arrow(self) -> pa.Table:
        measures = {name: pa.array(values) for name, values in self.per_query.items()}
        return pa.table({"qid": pa.array(self.query_ids, pa.string())} | measures)

    @property
    def _note(self) -> str:
        """The queries behind the means."""
        counts = f"{len(self.query_ids):,} {'query' if len(self.query_ids) == 1 else 'queries'}"
        relevant = "a relevant document, which score 0" if self.relevant_from == 1 else "a relevant document"
        for count, what in ((self.empty_queries, "results, which score 0"), (self.without_relevant, relevant)):
            counts += f", {count:,} of them without {what}" if count else ""
        for count, what in ((self.unjudged, "without judgements"), (self.unasked, "judged and not asked")):
            counts += f"; {count:,} more {what}, which do not count" if count else ""
        return counts + grades_note(self.relevant_from)

    def __repr__(self) -> str:
        return f"<{', '.join(f'{name} {value:.4f}' for name, value in self.means().items())}: {self._note}>"

    def _repr_html_(self) -> str:
        rows = [[Measure.parse(name).label, f"{value:.4f}"] for name, value in self.means().items()]
        return html_table(["measure", "mean"], rows, self._note)

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
    MRR@k is 0 if the first relevant hit is beyond k. RBP@k is (1 - p) times the sum of p to the power of the ranks, from 0, of
    the relevant hits (Moffat and Zobel, 2008). A measure without a cutoff counts all hits; precision then divides by how many
    they are, as SetP and SetF of ir-measures. Other measures are those of ir-measures.

    Gold that names a title is found by the first hit with that title. Further hits with the same title (the chunks of
    one page) are not counted again; titles of one query that are equal in normalised form count as one, with the highest
    of their grades.

    Args:
        gold: one per query; rankings are given in this order.
        item_ids: row r of the corpus is ``item_ids[r]``.
        titles: by row, empty for an item without one; None if the corpus has no titles.
        k_values: cutoffs, in any order: seven measures are computed at each. Left out if ``measures`` are given.
        gold_missing: treatment of relevant documents that the corpus lacks. ``"error"``: they raise an error. ``"count"``:
            they count as not found. ``"drop"``: they are removed from the gold; a query that has no others scores 0.
        measures: names of measures, such as ``["ndcg@10", "R@100"]``; see :meth:`Measure.read`.
        relevant_from: the lowest grade of a relevant document; lower grades above 0 count only in graded measures.

    Raises:
        GoldError: no gold, two for one query, no relevant gold at all, gold that is not in the corpus if that is an error,
            or none of it in the corpus because it names titles instead of ids, or the reverse.
        QueryError: ``k_values`` is empty or holds something other than integers above 0.
        ConfigurationError: a measure does not exist.
        ItemError: there are not as many titles as items.

    Examples:
        >>> evaluator = RetrievalEvaluator(gold, [item.item_id for item in items], None, measures=["ndcg@10", "recall@2"])
        >>> evaluator.evaluate_lists([[0, 1], [1, 2]]).means()  # the numbers of the items found, for each query
        {'ndcg@10': 0.815..., 'recall@2': 1.0}
    """

    def __init__(
        self,
        gold: Sequence[Gold],
        item_ids: Sequence[str],
        titles: Sequence[str] | None,
        k_values: Sequence[int] = (),
        gold_missing: GoldMissing = "error",
        *,
        measures: Sequence[str | Measure] | None = None,
        relevant_from: int = 1,
    ) -> None:
        self.measures = measures_at(k_values) if measures is None else read_measures(measures)
        self.k_values, self.relevant_from = cutoffs_of(self.measures), check_relevant_from(relevant_from)
        self._foreign = [measure for measure in self.measures if measure.foreign]
        own = [measure.cutoff for measure in self.measures if not measure.foreign]
        self._cuts = {k: _NOWHERE if k is None else k for k in dict.fromkeys(own)}
        if titles is not None and len(titles) != len(item_ids):
            raise ItemError(f"{len(titles)} titles for {len(item_ids)} items; give one for each row, empty where there is none")
        judged = judged_documents(gold, relevant_from)
        wanted = [{key: pair for key, pair in documents.items() if pair[0] > 0} for documents in judged]
        places = rows_of(set(chain.from_iterable(judged)), item_ids, titles)
        self.missing = missing_gold(gold, wanted, places, item_ids, titles)
        if self.missing is not None and gold_missing == "error":
            raise GoldError(f"{self.missing.said}; {self.missing.cure}")
        if gold_missing == "drop":
            wanted = [{key: pair for key, pair in documents.items() if key in places} for documents in wanted]
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
        self._counts = self._grades >= relevant_from
        self._relevant = self._sums(self._counts, self._counts)
        best_first = np.lexsort((-self._grades, self._owner))
        place = np.arange(len(self._owner)) - self._unit_offsets[self._owner]
        gains = self._grades[best_first] * _discounts(place)
        self._ideal = {k: self._sums(place < cut, gains) for k, cut in self._cuts.items()}
        self._rejected: list[dict[str, tuple[list[int], int]]] = [
            {name: (places.get(key, []), grade) for key, (grade, name) in documents.items() if grade <= 0}
            for documents in judged
        ]

    def evaluate_lists(self, lists: Sequence[Sequence[int]]) -> Evaluation:
        """Score rankings of unequal length, given as lists of item rows, best first, in the order of the gold."""
        return self.evaluate_ragged(
            offsets_of([len(ranking) for ranking in lists]), np.fromiter(chain.from_iterable(lists), np.int64)
        )

    def evaluate_ragged(self, offsets: NDArray[np.integer], rows: NDArray[np.integer]) -> Evaluation:
        """Score rankings stored consecutively, as in a ``Hits``.

        Args:
            offsets: ``[queries + 1]``; query i owns ``offsets[i]:offsets[i + 1]`` of ``rows``.
            rows: item rows, best first.

        Raises:
            EngineError: not one ranking per query, a row outside the corpus, or a row twice in one ranking.
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
        values = self._measures(positions, np.maximum(lengths, 1))
        if self._foreign:
            values |= self._by_ir_measures(positions, offsets, rows)
        ordered = {str(measure): values[str(measure)] for measure in self.measures}
        empty, without_relevant = int((lengths == 0).sum()), int((self._relevant == 0).sum())
        return Evaluation(list(self.query_ids), ordered, empty, without_relevant, relevant_from=self.relevant_from)

    def qrels(self) -> dict[str, dict[str, int]]:
        """Return the gold as grades by item id, for other tools; documents missing from the corpus keep their name.

        A title shared by several rows counts as one document here, but as several in tools that know only ids.
        """
        units = np.repeat(np.arange(len(self._owner)), np.diff(self._row_offsets))
        qrels: dict[str, dict[str, int]] = {query_id: {} for query_id in self.query_ids}
        for query_id, rejected in zip(self.query_ids, self._rejected, strict=True):
            for name, (rows, grade) in rejected.items():
                qrels[query_id] |= dict.fromkeys([self._item_ids[row] for row in rows] or [name], grade)
        for unit, row in zip(units.tolist(), self._rows.tolist(), strict=True):
            name = self._item_ids[row] if row < len(self._item_ids) else self._names[unit]
            qrels[self.query_ids[self._owner[unit]]][name] = int(self._grades[unit])
        return qrels

    def _positions(self, offsets: NDArray[np.integer], rows: NDArray[np.integer]) -> Rows:
        """Per unit, its first position in its query's ranking, from 0; ``_NOWHERE`` if it is not there."""
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
        position = np.where(gold_place >= start, gold_place - start, _NOWHERE)
        return np.minimum.reduceat(position, self._row_offsets[:-1])

    def _refuse_duplicate(self, offsets: NDArray[np.integer], rows: NDArray[np.integer], at: int) -> None:
        query = int(np.searchsorted(offsets, at, side="right")) - 1
        begin, row = int(offsets[query]), int(rows[at])
        ranks = np.flatnonzero(rows[begin : offsets[query + 1]] == row) + 1
        raise EngineError(
            f"the ranking of query {self.query_ids[query]!r} holds row {row} (item {self._item_ids[row]!r}) "
            f"at ranks {', '.join(map(str, ranks))}; a ranking holds an item once"
        )

    def _measures(self, positions: Rows, lengths: Rows) -> dict[str, Scores]:
        order = np.lexsort((positions, self._owner))
        position = positions[order]
        gain = self._grades[order] * _discounts(position)
        counts, owner = self._counts[order], self._owner
        so_far = np.cumsum(counts)
        before = np.concatenate([[0], so_far])[self._unit_offsets[:-1]]
        precision_there = (so_far - before[owner]) / (position + 1)
        relevant = np.maximum(self._relevant, 1)  # without relevant gold: 0 of 1
        first = np.full(len(relevant), _NOWHERE)
        first[owner[counts][::-1]] = position[counts][::-1]
        measures: dict[str, Scores] = {}
        for k, cut in self._cuts.items():
            near = position < cut
            inside = near & counts
            hits = self._sums(inside, inside)
            depth = lengths if k is None else k
            values = {
                "precision": hits / depth,
                "recall": hits / relevant,
                "f1": 2 * hits / (depth + relevant),
                "perfect_recall": (hits == relevant).astype(np.float64),
                "ndcg": self._sums(near, gain) / np.where(self._ideal[k] > 0, self._ideal[k], 1),
                "map": self._sums(inside, precision_there) / relevant,
                "mrr": np.where(first < cut, 1 / (first + 1), 0.0),
            }
            for measure in (measure for measure in self.measures if measure.cutoff == k and not measure.foreign):
                p = measure.persistence
                values[measure.family] = values[measure.family] if p is None else (1 - p) * self._sums(inside, p**position)
                measures[str(measure)] = values[measure.family]
        return measures

    def _by_ir_measures(self, positions: Rows, offsets: NDArray[np.integer], rows: NDArray[np.integer]) -> dict[str, Scores]:
        """The measures of ir-measures; documents are named by their position, because a title may be that of several items.

        Queries are named by their number, because some programs behind ir-measures do not read names with spaces.
        """
        names = list(map(str, range(len(self.query_ids))))
        qrels: dict[str, dict[str, int]] = {name: {} for name in names}
        rankings: dict[str, list[str]] = {}
        for query, query_id in enumerate(names):
            ranking = rows[offsets[query] : offsets[query + 1]].tolist()
            rankings[query_id] = list(map(str, range(len(ranking))))
            place_of = {row: str(place) for place, row in enumerate(ranking)}
            for number, (judged_rows, grade) in enumerate(self._rejected[query].values()):
                listed = [place_of[row] for row in judged_rows if row in place_of]
                qrels[query_id] |= dict.fromkeys(listed or [f"rejected-{number}"], grade)
        for unit, (query, place) in enumerate(zip(self._owner.tolist(), positions.tolist(), strict=True)):
            name = str(place) if place < len(rankings[names[query]]) else f"gold-{unit}"
            qrels[names[query]][name] = int(self._grades[unit])
        return by_ir_measures(self._foreign, qrels, rankings, self.relevant_from)

    def _sums(self, inside: Mask, values: NDArray[np.generic]) -> Scores:
        """Per query, the sum of ``values`` over the units that are ``inside``, best first."""
        return np.bincount(self._owner[inside], values[inside], minlength=len(self.query_ids)).astype(np.float64)


_NOWHERE = 2**40
"""Position of a document that is not in a ranking: beyond every cutoff and every list."""


def _discounts(places: Rows) -> Scores:
    """Discounts of nDCG at positions from 0, the same to the last bit on every machine; 0 at :data:`_NOWHERE`."""
    listed = places < _NOWHERE
    table = np.array([1 / math.log2(place + 2) for place in range(int(places[listed].max(initial=-1)) + 1)] + [0.0])
    return table[np.where(listed, places, -1)]


def evaluate_rankings(
    gold: Sequence[Gold],
    rankings: Sequence[Sequence[str]],
    titles: Mapping[str, str],
    measures: Sequence[str | Measure],
    relevant_from: int = 1,
) -> Evaluation:
    """Score rankings of item ids, without their corpus."""
    row_of = {item_id: row for row, item_id in enumerate(dict.fromkeys(chain.from_iterable(rankings)))}
    names = [titles.get(item_id, "") for item_id in row_of] if any(titles.values()) else None
    evaluator = RetrievalEvaluator(
        gold, list(row_of), names, gold_missing="count", measures=measures, relevant_from=relevant_from
    )
    if evaluator.missing is not None and evaluator.missing.all and any(rankings):
        warnings.warn(
            f"no result is relevant to its query, so every figure is 0 (the first result: {next(iter(row_of))!r}; judged: "
            f"{evaluator.missing.first!r}); are both of the same collection, and by ids alike?",
            RetrievalWarning,
            stacklevel=3,
        )
    return evaluator.evaluate_lists([[row_of[item_id] for item_id in ranking] for ranking in rankings])
