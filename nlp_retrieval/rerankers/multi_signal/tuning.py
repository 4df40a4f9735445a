"""Fitting the weights of several signals to judged queries, and measuring the contribution of each signal.

Weights are shares of 1 on a grid of tenths, plus the present weights; the best on average are taken. Reported measures are out
of fold: the queries of a group (a country) are ranked by weights fitted without that group. The contribution of a signal is the
difference between the fit with all signals and the fit without it, both out of fold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from nlp_retrieval.core.candidates import Hits, Rows, Scores, top_k_positions
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import Stages
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import ConfigurationError, GoldError, nearest
from nlp_retrieval.evaluation.evaluator import Evaluation, RetrievalEvaluator
from nlp_retrieval.evaluation.gold import gold_of
from nlp_retrieval.evaluation.tuning import TuningReport, best_row, fitted_by_fold, folds_of, gold_among
from nlp_retrieval.rerankers.multi_signal.features import SIGNALS, weighted_mean
from nlp_retrieval.rerankers.multi_signal.reranker import MultiSignalReranker

_PARTS = 10


@dataclass(frozen=True, kw_only=True)
class SignalTuningReport(TuningReport):
    """Result of fitting the weights of signals.

    Args:
        measure: that was maximised.
        without: out-of-fold measures, fitted without one of the signals, by signal.
        missing: signals that no candidate has; they have the weight 0.

    Examples:
        >>> searcher = Searcher(["bm25"], reranker=MultiSignalReranker(transformer_weight=0, word_vectors_weight=0))
        >>> report = searcher.index(items, "index")
        >>> tuned = tune_signals(searcher, queries, gold, folds=2)
        >>> tuned.measure, tuned.weights["fuzzy"]
        ('ndcg@10', 1.0)
    """

    measure: str
    without: dict[str, Evaluation]
    missing: list[str]

    def worth(self, signal: str, measure: str) -> tuple[float, float, float]:
        """Return the loss of a measure without a signal, and its interval over groups."""
        return self.difference(self.out_of_fold, self.without[signal], measure)


def tune_signals(
    searcher: Searcher,
    queries: Sequence[Query],
    gold: Sequence[Gold],
    k_values: Sequence[int] = (5, 10),
    by: str | None = None,
    folds: int = 5,
    seed: int = 0,
    where_from: Mapping[str, str] | None = None,
    *,
    measures: Sequence[str] | None = None,
    main: str | None = None,
) -> SignalTuningReport:
    """Fit the weights of a searcher's ``multi_signal`` by cross-validation over groups of queries.

    Args:
        searcher: opened, with a reranker ``multi_signal``; its depth decides which candidates are scored.
        queries: judged queries.
        gold: one per query.
        k_values: cutoffs of the report, if ``measures`` are not given.
        by: the metadata of the queries that puts them into groups, such as ``country``; by default the subject of the
            profile where every query has it, and their ``family`` otherwise.
        folds: at least 2; at most as many as there are groups.
        seed: of the assignment of groups to folds.
        where_from: filter of each query: the key of its own metadata by the key of the items', whose values must be equal.
        measures: names of the measures of the report.
        main: the measure to maximise; by default nDCG at the largest cutoff.

    Raises:
        ConfigurationError: the searcher has no such reranker.
        GoldError: gold that is missing, repeated or not in the corpus, metadata that a query lacks, or too few groups.
        IndexMissingError: the searcher is not opened.

    Examples:
        >>> searcher = Searcher(["bm25"], reranker=MultiSignalReranker(transformer_weight=0, word_vectors_weight=0))
        >>> report = searcher.index(items, "index")
        >>> tune_signals(searcher, queries, gold, folds=2).weights
        {'transformer': 0.0, 'word_vectors': 0.0, 'patterns': 0.0, 'fuzzy': 1.0}
    """
    reranker = searcher.reranker
    if not isinstance(reranker, MultiSignalReranker) or searcher.scope != "pooled":
        raise ConfigurationError("tune_signals needs a searcher with scope: pooled and a reranker multi_signal")
    judged = gold_of(queries, gold)
    groups = _groups(queries, by, reranker.profile.subject)
    fold_of = folds_of(groups, folds, seed)
    items = searcher.opened.items
    item_ids, titles = items.ids(), items.titles()
    evaluator = RetrievalEvaluator(judged, item_ids, titles if any(titles) else None, k_values, measures=measures)
    pools = _pools(searcher, reranker, queries, where_from)
    measure = main or f"ndcg@{evaluator.k_values[-1]}"
    present = [name for name in SIGNALS if any(not np.isnan(pool.columns[name]).all() for pool in pools if len(pool.rows))]
    if not present:
        raise GoldError("no signal could be computed for any candidate, so there is nothing to fit")
    grid = list(_grid(present, reranker.weights))
    evaluations = [_evaluated(evaluator, pools, weights) for weights in grid]
    table = np.stack([evaluation.per_query[measure] for evaluation in evaluations])

    def best(chosen: Rows, without: str = "") -> int:
        return best_row(table, chosen, np.array([weights.get(without, 0.0) == 0 for weights in grid]))

    def out_of_fold(without: str = "") -> tuple[list[int], Evaluation]:
        points = fitted_by_fold(lambda chosen: best(chosen, without), fold_of)
        return points, _joined(evaluations, np.array(points)[fold_of])

    points, joined = out_of_fold()
    return SignalTuningReport(
        measure=measure,
        weights=grid[best(np.arange(len(queries)))],
        fold_weights=[grid[point] for point in points],
        before=_evaluated(evaluator, pools, reranker.weights),
        out_of_fold=joined,
        without={name: out_of_fold(name)[1] for name in present} if len(present) > 1 else {},
        groups=groups,
        folds=fold_of,
        missing=[name for name in SIGNALS if name not in present],
        unreachable=gold_among(judged, item_ids, titles, [pool.rows for pool in pools])[1],
    )


class _Pool(NamedTuple):
    """One query's candidates: their rows, ascending, and their signals."""

    rows: Rows
    columns: dict[str, Scores]


class _Recording(Stages):
    """Keeps the signals of every candidate, and passes nothing on."""

    pool = _Pool(np.zeros(0, np.int64), {name: np.zeros(0) for name in SIGNALS})

    def reranked(self, reranker: BaseReranker, nlqs: Sequence[str], batch: Hits, generation: Generation, label: str) -> Hits:
        ranked = reranker.rerank_rows(nlqs, batch, generation.items, label)
        nothing = np.full(len(ranked.rows), np.nan)
        order = np.argsort(ranked.rows, kind="stable")
        columns = {name: ranked.signals.get(f"{label}.{name}", nothing)[order] for name in SIGNALS}
        self.pool = _Pool(ranked.rows[order], columns)
        return batch.head(0)


def _pools(
    searcher: Searcher, reranker: MultiSignalReranker, queries: Sequence[Query], where_from: Mapping[str, str] | None
) -> list[_Pool]:
    """The candidates of every query, with every signal that can be computed."""
    equal = {f"{name}_weight": 1.0 for name in SIGNALS}
    every = type(reranker)(**(reranker._arguments | equal | {"min_similarity": 0.0, "n_per_document": None}))
    every.warned.update(SIGNALS)  # the report lists the missing ones
    probe = Searcher(searcher.retrievers, searcher.processor, searcher.fusion, every, "pooled", searcher.depth)
    probe.open(searcher.opened.path)
    pools = []
    for query in queries:  # one by one: a query without content makes no list, and another query's pool is not its own
        recording = _Recording()
        where = {field: _metadata(query, key) for field, key in (where_from or {}).items()}
        with changed_context(stages=recording):
            probe.search([query.text], 1, where=where or None)
        pools.append(recording.pool)
    return pools


def _grid(present: Sequence[str], usual: Mapping[str, float]) -> Iterator[dict[str, float]]:
    """Yield the weights to try: all shares of 1 in tenths, and the usual ones."""
    n_signals = len(present)
    for bars in combinations(range(_PARTS + n_signals - 1), n_signals - 1):
        ends = [-1, *bars, _PARTS + n_signals - 1]
        shares = [(last - first - 1) / _PARTS for first, last in pairwise(ends)]
        yield dict.fromkeys(SIGNALS, 0.0) | dict(zip(present, shares, strict=True))
    total = sum(usual[name] for name in present)
    if total > 0:
        yield dict.fromkeys(SIGNALS, 0.0) | {name: usual[name] / total for name in present}


def _evaluated(evaluator: RetrievalEvaluator, pools: Sequence[_Pool], weights: Mapping[str, float]) -> Evaluation:
    used = [name for name in SIGNALS if weights[name] > 0]
    lists = []
    for pool in pools:
        mean = weighted_mean({name: pool.columns[name] for name in used}, weights, len(pool.rows))
        scored = np.flatnonzero(~np.isnan(mean))
        lists.append(pool.rows[scored[top_k_positions(mean[scored], evaluator.k_values[-1])]].tolist())
    return evaluator.evaluate_lists(lists)


def _joined(evaluations: Sequence[Evaluation], points: Rows) -> Evaluation:
    """Each query as its point of the grid ranks it."""
    first = evaluations[0]
    per_query = {
        measure: np.stack([evaluation.per_query[measure] for evaluation in evaluations])[points, np.arange(len(points))]
        for measure in first.per_query
    }
    return Evaluation(first.query_ids, per_query)


def _groups(queries: Sequence[Query], by: str | None, subject: str) -> list[str | None]:
    if by is None and not all(isinstance(query.metadata.get(subject), str) for query in queries):
        return [query.family for query in queries]
    return [str(_metadata(query, by or subject)) for query in queries]


def _metadata(query: Query, key: str) -> object:
    if query.metadata.get(key) is None:
        raise GoldError(f"the query {query.query_id!r} has no {key!r} in its metadata; {nearest(key, query.metadata)}")
    return query.metadata[key]
