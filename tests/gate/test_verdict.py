"""The verdict keeps its error rate, finds losses, and sees every group."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nlp_retrieval.gate.verdict import judge, overall

RNG = np.random.default_rng(7)


def verdicts(differences, families=None, groups=None, looks=1):
    before = np.full(len(differences), 0.5)
    groups = {"": np.ones(len(differences), bool)} if groups is None else groups
    families = [None] * len(differences) if families is None else families
    return judge(
        {"ndcg@10": before}, {"ndcg@10": before + differences}, {"ndcg@10": 0.03}, families, groups, level=0.05, looks=looks
    )


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        (np.zeros(20), "no worse"),
        (np.full(200, 0.2), "no worse"),
        (np.tile([0.02, -0.02], 200), "no worse"),
        (np.full(200, -0.2), "worse"),
        (np.tile([0.3, -0.3], 20), "cannot tell"),
        (np.full(5, -0.4), "fell"),  # five families cannot be significant over 100 looks
    ],
)
def test_the_four_verdicts(differences, verdict):
    (each,) = verdicts(differences, looks=100)
    assert each.verdict == verdict == overall([each])
    assert (each.more > 0) == (verdict in ("fell", "cannot tell"))


@pytest.mark.parametrize("mean", [-0.05, 0.05])
def test_p_is_that_of_an_independent_permutation_test(mean):
    differences = RNG.normal(mean, 0.2, 12)
    (each,) = verdicts(differences)
    expected = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", alternative="less", n_resamples=10**6
    )
    assert each.p == pytest.approx(expected.pvalue, abs=2**-12)  # a gain's p leaves out the arrangement that was measured


def test_an_unchanged_truth_raises_no_more_false_alarms_than_the_level():
    alarms = sum(verdicts(RNG.normal(0, 0.12, 150) * (RNG.random(150) < 0.4))[0].verdict == "worse" for _ in range(120))
    assert alarms / 120 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)


def test_families_count_once():
    differences = np.repeat(RNG.normal(-0.05, 0.2, 12), 10)
    alone, together = verdicts(differences)[0], verdicts(differences, families=[str(number // 10) for number in range(120)])[0]
    assert together.p > alone.p
    assert together.low < alone.low


def test_a_group_that_became_worse_is_seen_beside_a_mean_that_did_not():
    differences = np.concatenate([np.full(40, -0.4), np.full(160, 0.15)])
    few = np.arange(200) < 40
    every, group = verdicts(differences, groups={"": np.ones(200, bool), "hops=3": few})
    assert (every.verdict, group.verdict, group.group, overall([every, group])) == ("no worse", "worse", "hops=3", "worse")
