"""Evaluation: 10 runs of 1,000 queries with 1,000 results each, all seven measures at five cutoffs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.common import Data, Row, best_of_each
from nlp_retrieval import Gold

_CUTOFFS = [5, 10, 20, 100, 1000]
RUNS, QUERIES, DEPTH, _ITEMS = 10, 1000, 1000, 31_857


def judged_runs() -> tuple[list[Gold], list[str], list[NDArray[np.int64]]]:
    """Random gold, the item ids by row, and random runs, ``[queries, depth]`` rows each."""
    draw = np.random.default_rng(0)
    gold = []
    for query in range(QUERIES):
        rows = draw.choice(_ITEMS, draw.integers(2, 51), replace=False)
        gold.append(Gold(query_id=f"q{query}", relevance={f"w{row}": int(draw.integers(1, 4)) for row in rows}))
    runs = [np.stack([draw.permutation(_ITEMS)[:DEPTH] for _ in range(QUERIES)]) for _ in range(RUNS)]
    return gold, [f"w{row}" for row in range(_ITEMS)], runs


def as_scores(run: NDArray[np.int64]) -> dict[str, dict[str, float]]:
    """A run as other tools take it: scores by query and item."""
    return {
        f"q{query}": {f"w{row}": float(DEPTH - rank) for rank, row in enumerate(rows)}
        for query, rows in enumerate(run.tolist())
    }


def measure(data: Data) -> list[Row]:
    """Ours, and ir-measures on one of the runs as the check."""
    del data
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG

    from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator

    gold, ids, runs = judged_runs()
    evaluator = RetrievalEvaluator(gold, ids, None, _CUTOFFS)
    (seconds,) = best_of_each(3, lambda: [evaluator.evaluate(run).means() for run in runs])
    names = {
        f"{name}@{k}": measure @ k
        for k in _CUTOFFS
        for name, measure in (("precision", P), ("recall", R), ("ndcg", nDCG), ("map", AP), ("mrr", RR))
    }
    theirs = ir_measures.evaluator(list(names.values()), {one.query_id: one.relevance for one in gold})
    expected: dict[object, float] = {}
    (oracle,) = best_of_each(1, lambda: expected.update(theirs.calc_aggregate(as_scores(runs[0]))))
    means = evaluator.evaluate(runs[0]).means()
    off = max(abs(means[name] - expected[measure]) for name, measure in names.items())
    detail = f"{seconds:.2f} s; ir-measures {oracle * RUNS:.1f} s for five of the seven; largest difference {off:.0e}"
    return [Row("evaluation, 10 runs x 1,000 queries x 1,000 results", "at most 0.5 s", detail, seconds <= 0.5)]
