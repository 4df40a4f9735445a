"""Evaluation and tests beside other tools: 10 runs of 1,000 queries with 1,000 results, on data that each has in its own form.

Needs ``pip install ranx``. PyTerrier's way (every measure of every run by ir-measures, then a paired test for each measure and
run) is written out here with the packages that it uses, so that it needs no Java.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.common import Data, Row, best_of_each, noted
from bench.evaluation import DEPTH, QUERIES, RUNS, as_scores, judged_runs

_CUTOFFS = (10, 100, 1000)
_TESTED = "ndcg@10"
_RESAMPLES = 10_000


def measure(data: Data) -> list[Row]:
    """Ours, ranx and PyTerrier's way, in turn; compiled loops are warm."""
    del data
    try:
        import ranx  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        return [noted("evaluation and tests beside ranx", "not measured: pip install ranx")]
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG
    from scipy.stats import ttest_rel

    from nlp_retrieval.evaluation.comparison import compare
    from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator

    gold, ids, runs = judged_runs()
    qrels = {one.query_id: one.relevance for one in gold}
    dicts = [as_scores(run) for run in runs]
    per_query: dict[str, dict[str, Any]] = {}

    def ours_evaluates() -> None:
        evaluator = RetrievalEvaluator(gold, ids, None, _CUTOFFS)
        per_query.update({f"run {number}": evaluator.evaluate(run).per_query for number, run in enumerate(runs)})

    ranx_names = [f"{name}@{k}" for name in ("precision", "recall", "ndcg", "map", "mrr") for k in _CUTOFFS]
    ranx_qrels = ranx.Qrels(qrels)
    ranx_runs = [ranx.Run(one, name=f"run {number}") for number, one in enumerate(dicts)]
    scores: dict[str, dict[str, Any]] = {}

    def ranx_evaluates() -> None:
        for run in ranx_runs:
            scores[run.name] = ranx.evaluate(ranx_qrels, run, ranx_names, return_mean=False)

    measures = [measure @ k for measure in (P, R, nDCG, AP, RR) for k in _CUTOFFS]
    theirs = ir_measures.evaluator(measures, qrels)

    def pyterrier_evaluates() -> None:
        found: list[dict[Any, list[float]]] = []
        for one in dicts:
            values: dict[Any, list[float]] = {measure: [] for measure in measures}
            for metric in theirs.iter_calc(one):
                values[metric.measure].append(metric.value)
            found.append(values)
        for values in found[1:]:
            for measure in measures:
                ttest_rel(found[0][measure], values[measure])

    def ours_tests() -> None:
        one_measure = {run: {_TESTED: values[_TESTED]} for run, values in per_query.items()}
        compare(one_measure, None, [None] * QUERIES, _RESAMPLES)

    def ranx_tests() -> None:
        ranx.compare(ranx_qrels, ranx_runs, [_TESTED], stat_test="fisher", n_permutations=_RESAMPLES)

    ours_evaluates()
    ranx_evaluates()
    off = max(
        abs(float(np.mean(values[name])) - float(np.mean(per_query[run][name])))
        for run, values in scores.items()
        for name in ranx_names
        if not name.startswith("map")
    )
    ours, other = best_of_each(3, ours_evaluates, ranx_evaluates)
    loops, other_tests = best_of_each(1, pyterrier_evaluates, ranx_tests)
    (tests,) = best_of_each(3, ours_tests)
    what = f"{RUNS} runs x {QUERIES:,} queries x {DEPTH:,} results"
    version = getattr(ranx, "__version__", "")
    return [
        Row(
            f"evaluation, {what}",
            "ahead of ranx and of PyTerrier's way",
            f"{ours:.2f} s (seven measures at {len(_CUTOFFS)} cutoffs, gold read too); ranx {version} {other:.2f} s (five); "
            f"ir-measures and t-tests in a loop {loops:.1f} s (five); largest difference of a mean to ranx {off:.0e}",
            ours < min(other, loops),
        ),
        Row(
            f"paired randomisation of every two of {RUNS} runs in one measure, {_RESAMPLES:,} resamples",
            "ahead of ranx",
            f"{tests:.2f} s, intervals, effect sizes and Holm's correction too; "
            f"ranx.compare {other_tests:.1f} s, evaluation counted",
            tests < other_tests,
        ),
    ]
