"""Significance: 9 comparisons over 1,000 queries with 10,000 resamples, and all comparisons of a whole benchmark."""

from __future__ import annotations

import numpy as np

from bench.common import Data, Row, best_of_each, noted

_SYSTEMS, _QUERIES, _RESAMPLES, _MEASURES = 10, 1000, 10_000, 35


def measure(data: Data) -> list[Row]:
    """Ours and SciPy's on the same differences, in turn."""
    del data
    from scipy.stats import permutation_test

    from nlp_retrieval.evaluation.comparison import compare
    from nlp_retrieval.evaluation.resampling import randomisation_test

    draw = np.random.default_rng(0)
    values = np.round(np.clip(draw.normal(0.6, 0.3, (_SYSTEMS, _QUERIES)) + np.linspace(0, 0.06, _SYSTEMS)[:, None], 0, 1), 2)
    differences = values[1:] - values[0]
    ours: list[float] = []
    theirs: list[float] = []

    def test() -> None:
        ours[:] = randomisation_test(differences, [None] * _QUERIES, _RESAMPLES).p

    def by_scipy() -> None:
        theirs[:] = [
            permutation_test(
                (row,), np.mean, vectorized=True, permutation_type="samples", n_resamples=_RESAMPLES, batch=1000, rng=1
            ).pvalue
            for row in differences
        ]

    seconds, scipy_seconds = best_of_each(3, test, by_scipy)
    off = max(abs(one - other) for one, other in zip(ours, theirs, strict=True))
    per_query = {
        f"system {number}": {f"measure {which}": row for which in range(_MEASURES)} for number, row in enumerate(values)
    }
    (whole,) = best_of_each(3, lambda: compare(per_query, "system 0", resamples=_RESAMPLES))
    detail = f"{seconds:.3f} s; SciPy {scipy_seconds:.1f} s; largest difference of p {off:.4f}, both being sampled"
    return [
        Row("paired randomisation, 9 comparisons x 10,000 resamples x 1,000 queries", "at most 0.1 s", detail, seconds <= 0.1),
        noted(
            "compare: the same in 35 measures, with intervals over families, effect sizes and Holm's correction",
            f"{whole:.2f} s for {_MEASURES * (_SYSTEMS - 1)} comparisons",
        ),
    ]
