"""Every two configurations, tested as one family: nothing is called better that the corrected test does not bear out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.comparison import Pairwise, compare_pairs, turned, verdict

MEASURE = "recall@10"
LEVELS = {"bm25": 0.0, "dense": 0.02, "hybrid": 0.3, "broken": -0.3, "same": 0.0}


def per_query(levels: dict[str, float] = LEVELS, queries: int = 60) -> dict[str, dict[str, Scores]]:
    draw = np.random.default_rng(5)
    hard = draw.uniform(0.3, 0.6, queries)
    noise = {name: draw.normal(0, 0.1, queries) for name in levels}
    if "same" in levels:
        noise["same"] = noise["bm25"]
    return {
        name: {MEASURE: np.clip(hard + level + noise[name], 0, 1), "mrr@10": draw.uniform(0, 1, queries)}
        for name, level in levels.items()
    }


def pairs(queries: int = 60) -> Pairwise:
    found = compare_pairs(per_query(queries=queries), MEASURE, [None] * queries, 0)
    assert found is not None
    return found


def test_p_values_are_those_of_scipy_corrected_for_all_pairs() -> None:
    found, values = pairs(), per_query()
    for one in found.comparisons:
        difference = values[one.system][MEASURE] - values[one.baseline][MEASURE]
        if not difference.any():
            assert one.p == 1.0
            continue
        theirs = stats.permutation_test(
            (difference,), np.mean, permutation_type="samples", n_resamples=9999, random_state=np.random.default_rng(1)
        )
        assert one.p == pytest.approx(theirs.pvalue, abs=0.02)
    ascending = sorted(found.comparisons, key=lambda one: one.p)
    adjusted = 0.0
    for place, one in enumerate(ascending):
        adjusted = max(adjusted, min(1.0, (10 - place) * one.p))
        assert one.p_holm == pytest.approx(adjusted)


def test_each_pair_reads_the_same_from_both_sides() -> None:
    found = pairs()
    both = found.both_ways()
    assert len(both) == 20
    opposite = {"better": "worse", "worse": "better", "not distinguishable": "not distinguishable"}
    for (system, other), one in both.items():
        back = both[other, system]
        assert (one.system, one.baseline) == (system, other)
        assert verdict(back) == opposite[verdict(one)]
        assert (back.difference, back.wins, back.losses) == (-one.difference, one.losses, one.wins)
        assert back.interval == (-one.interval[1], -one.interval[0])
        assert turned(back) == one
