"""Evaluation: 10 runs of 1,000 queries with 1,000 results each, all seven measures at five cutoffs."""

from __future__ import annotations

import numpy as np

from bench.common import Data, Row, best_of_each

_CUTOFFS = [5, 10, 20, 100, 1000]
_RUNS, _QUERIES, _DEPTH, _ITEMS = 10, 1000, 1000, 31_857


def measure(data: Data) -> list[Row]:
    """Ours, and ir-measures on one of the runs as the check."""
    del data
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG

    from nlp_retrieval.core.models import Gold
    from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator

    draw = np.random.default_rng(0)
    gold = []
    for query in range(_QUERIES):
        rows = draw.choice(_ITEMS, draw.integers(2, 51), replace=False)
        gold.append(Gold(query_id=f"q{query}", relevance={f"w{row}": int(draw.integers(1, 4)) for row in rows}))
    runs = [np.stack([draw.permutation(_ITEMS)[:_DEPTH] for _ in range(_QUERIES)]) for _ in range(_RUNS)]
    evaluator = RetrievalEvaluator(gold, [f"w{row}" for row in range(_ITEMS)], None, _CUTOFFS)
    (seconds,) = best_of_each(3, lambda: [evaluator.evaluate(run).means() for run in runs])
    names = {
        f"{name}@{k}": measure @ k
        for k in _CUTOFFS
        for name, measure in (("precision", P), ("recall", R), ("ndcg", nDCG), ("map", AP), ("mrr", RR))
    }
    theirs = ir_measures.evaluator(list(names.values()), {one.query_id: one.relevance for one in gold})
    as_dicts = {
        f"q{query}": {f"w{row}": float(_DEPTH - rank) for rank, row in enumerate(rows)}
        for query, rows in enumerate(runs[0].tolist())
    }
    expected: dict[object, float] = {}
    (oracle,) = best_of_each(1, lambda: expected.update(theirs.calc_aggregate(as_dicts)))
    means = evaluator.evaluate(runs[0]).means()
    off = max(abs(means[name] - expected[measure]) for name, measure in names.items())
    detail = f"{seconds:.2f} s; ir-measures {oracle * _RUNS:.1f} s for five of the seven; largest difference {off:.0e}"
    return [Row("evaluation, 10 runs x 1,000 queries x 1,000 results", "at most 0.5 s", detail, seconds <= 0.5)]
