"""Evaluation and tests of significance: 10 runs of 1,000 queries with 1,000 results each, against ir-measures and SciPy."""

from __future__ import annotations

from collections.abc import Iterator

import ir_measures
import numpy as np
from ir_measures import AP, RR, P, R, nDCG
from numpy.typing import NDArray
from scipy.stats import permutation_test

from bench.common import Data, Row, best_of_each, noted
from nlp_retrieval import Gold
from nlp_retrieval.evaluation.comparison import compare
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.evaluation.resampling import randomisation_test

_CUTOFFS = [5, 10, 20, 100, 1000]
RUNS, QUERIES, DEPTH, _ITEMS = 10, 1000, 1000, 31_857
_RESAMPLES, _MEASURES = 10_000, 35
_NAMED = {"precision": P, "recall": R, "ndcg": nDCG, "map": AP, "mrr": RR}


def measure(data: Data) -> Iterator[Row]:
    """Ours and the others, in turn."""
    del data
    gold, ids, runs = _judged_runs()
    yield _evaluation(gold, ids, runs)
    yield from _significance()


def _judged_runs() -> tuple[list[Gold], list[str], list[NDArray[np.int64]]]:
    """Random gold, the item ids by row, and random runs, ``[queries, depth]`` rows each."""
    draw = np.random.default_rng(0)
    gold = []
    for query in range(QUERIES):
        rows = draw.choice(_ITEMS, draw.integers(2, 51), replace=False)
        gold.append(Gold(query_id=f"q{query}", relevance={f"w{row}": int(draw.integers(1, 4)) for row in rows}))
    runs = [np.stack([draw.permutation(_ITEMS)[:DEPTH] for _ in range(QUERIES)]) for _ in range(RUNS)]
    return gold, [f"w{row}" for row in range(_ITEMS)], runs


def _as_scores(run: NDArray[np.int64]) -> dict[str, dict[str, float]]:
    """A run as other tools take it: scores by query and item."""
    return {f"q{n}": {f"w{row}": float(DEPTH - rank) for rank, row in enumerate(rows)} for n, rows in enumerate(run.tolist())}


def _evaluation(gold: list[Gold], ids: list[str], runs: list[NDArray[np.int64]]) -> Row:
    """All seven measures at five cutoffs; ir-measures on one of the runs as the check."""
    evaluator, offsets = RetrievalEvaluator(gold, ids, None, _CUTOFFS), np.arange(QUERIES + 1) * DEPTH
    (seconds,) = best_of_each(3, lambda: [evaluator.evaluate_ragged(offsets, run.ravel()).means() for run in runs])
    names = {f"{name}@{k}": measure @ k for k in _CUTOFFS for name, measure in _NAMED.items()}
    theirs = ir_measures.evaluator(list(names.values()), {one.query_id: one.relevance for one in gold})
    expected: dict[ir_measures.Measure, float] = {}
    (oracle,) = best_of_each(1, lambda: expected.update(theirs.calc_aggregate(_as_scores(runs[0]))))
    means = evaluator.evaluate_ragged(offsets, runs[0].ravel()).means()
    off = max(abs(means[name] - expected[measure]) for name, measure in names.items())
    detail = f"{seconds:.2f} s; ir-measures {oracle * RUNS:.1f} s for five of the seven; largest difference {off:.0e}"
    return Row("evaluation, 10 runs x 1,000 queries x 1,000 results", "at most 0.5 s", detail, seconds <= 0.5)


def _significance() -> Iterator[Row]:
    """Ours and SciPy's on the same differences, and all comparisons of a whole benchmark."""
    draw = np.random.default_rng(0)
    values = np.round(np.clip(draw.normal(0.6, 0.3, (RUNS, QUERIES)) + np.linspace(0, 0.06, RUNS)[:, None], 0, 1), 2)
    differences = values[1:] - values[0]
    found: dict[str, list[float]] = {}
    settings = {"permutation_type": "samples", "n_resamples": _RESAMPLES, "batch": 1000, "rng": 1, "vectorized": True}

    def ours() -> None:
        found["ours"] = list(randomisation_test(differences, [None] * QUERIES, _RESAMPLES).p)

    def by_scipy() -> None:
        found["theirs"] = [permutation_test((row,), np.mean, **settings).pvalue for row in differences]

    seconds, scipy_seconds = best_of_each(3, ours, by_scipy)
    off = max(abs(one - other) for one, other in zip(found["ours"], found["theirs"], strict=True))
    detail = f"{seconds:.3f} s; SciPy {scipy_seconds:.1f} s; largest difference of p {off:.4f}, both being sampled"
    what = "paired randomisation, 9 comparisons x 10,000 resamples x 1,000 queries"
    yield Row(what, "at most 0.1 s", detail, seconds <= 0.1)
    per_query = {f"system {n}": {f"measure {which}": row for which in range(_MEASURES)} for n, row in enumerate(values)}
    (whole,) = best_of_each(3, lambda: compare(per_query, "system 0", resamples=_RESAMPLES))
    what = "compare: the same in 35 measures, with intervals over families, effect sizes and Holm's correction"
    yield noted(what, f"{whole:.2f} s for {_MEASURES * (RUNS - 1)} comparisons")
