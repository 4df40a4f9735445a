"""Comparisons of systems: counts by hand, effect and interval over families, and words that say no more than the test."""

from __future__ import annotations

from dataclasses import replace
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.comparison import Comparison, compare, compare_pairs, limits, sentence, turned, verdict
from nlp_retrieval.evaluation.resampling import bootstrap_interval, holm, randomisation_test

Systems = dict[str, dict[str, Scores]]

DRAW = np.random.default_rng(1)
BASE = np.round(DRAW.uniform(0, 1, 200), 2)
SYSTEMS: Systems = {
    "bm25": {"recall@5": BASE, "ndcg@10": BASE / 2},
    "dense": {"recall@5": np.round(BASE + DRAW.normal(0, 0.2, 200), 2), "ndcg@10": BASE / 2},
    "hybrid": {"recall@5": np.round(BASE + DRAW.normal(0.1, 0.2, 200), 2), "ndcg@10": BASE / 2 + 0.1},
}
FAMILIES: list[str | None] = [None if place % 4 == 0 else f"f{place // 8}" for place in range(200)]


def two(system: list[float], baseline: list[float]) -> Systems:
    return {"system": {"recall@5": np.array(system)}, "baseline": {"recall@5": np.array(baseline)}}


def test_a_comparison_holds_what_the_single_statistics_give() -> None:
    found = compare(SYSTEMS, "bm25", FAMILIES, resamples=2000, level=0.9, seed=7)
    assert [(one.measure, one.system, one.baseline) for one in found] == [
        ("recall@5", "dense", "bm25"),
        ("recall@5", "hybrid", "bm25"),
        ("ndcg@10", "dense", "bm25"),
        ("ndcg@10", "hybrid", "bm25"),
    ]
    dense, hybrid = found[:2]
    difference = SYSTEMS["hybrid"]["recall@5"] - BASE
    assert hybrid.difference == pytest.approx(difference.mean())
    span = float(np.ptp([SYSTEMS["hybrid"]["recall@5"], BASE]))
    assert hybrid.interval == pytest.approx(bootstrap_interval(difference, FAMILIES, 2000, 0.9, 7, bounds=(-span, span)))
    assert hybrid.p == randomisation_test(difference[None], FAMILIES, 2000, 7).p[0]
    assert [dense.p_holm, hybrid.p_holm] == holm([dense.p, hybrid.p])
    assert (hybrid.wins, hybrid.ties, hybrid.losses) == (
        (difference > 0.001).sum(),
        (np.abs(difference) <= 0.001).sum(),
        (difference < -0.001).sum(),
    )
    assert (hybrid.queries, hybrid.families, hybrid.comparisons, hybrid.level) == (200, 75, 2, 0.9)


def test_every_two_systems_are_compared_and_corrected_together_and_each_pair_reads_the_same_from_both_sides() -> None:
    pairs = compare_pairs(SYSTEMS, "recall@5", FAMILIES, seed=7, resamples=2000)
    assert pairs is not None
    for pair in pairs.comparisons:
        difference = SYSTEMS[pair.system]["recall@5"] - SYSTEMS[pair.baseline]["recall@5"]
        assert pair.difference == pytest.approx(difference.mean())
        assert pair.p == randomisation_test(difference[None], FAMILIES, 2000, 7).p[0]
    assert [pair.p_holm for pair in pairs.comparisons] == holm([pair.p for pair in pairs.comparisons])
    both = pairs.both_ways()
    assert len(both) == 3 * 2
    for (system, other), pair in both.items():
        assert (pair.system, pair.baseline, both[other, system]) == (system, other, turned(pair))


def test_systems_that_are_equal_but_for_rounding_tie_everywhere() -> None:
    values = DRAW.uniform(0, 1, 50)
    (same,) = compare(two(list(values), list(values * (1 + 2e-16) + 1e-16)), "baseline")
    assert (same.difference, same.p, same.p_holm) == (0, 1, 1)
    assert same.interval == pytest.approx((-0.07, 0.07), abs=0.01)
    assert (same.wins, same.ties, same.losses, same.differing, same.effect_size) == (0, 50, 0, 0, None)
    assert verdict(same) == "not distinguishable"
    assert "the two are equal in all queries" in sentence(same)


steps = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.sampled_from([None, "a", "b"])), min_size=1, max_size=20)


@settings(max_examples=50)
@given(queries=steps, shift=st.integers(-40, 40))
def test_swapping_the_systems_turns_every_sign_and_shifting_both_changes_nothing(
    queries: list[tuple[int, int, str | None]], shift: int
) -> None:
    system, baseline, families = (list(column) for column in zip(*queries, strict=True))
    values = two([one / 8 for one in system], [one / 8 for one in baseline])
    (there,) = compare(values, "baseline", families, resamples=300)
    (back,) = compare(values, "system", families, resamples=300)
    (moved,) = compare({name: {"recall@5": values[name]["recall@5"] + shift} for name in values}, "baseline", families, 300)
    assert moved == there
    assert (back.difference, back.wins, back.losses, back.p) == (-there.difference, there.losses, there.wins, there.p)
    assert back.effect_size == (None if there.effect_size is None else pytest.approx(-there.effect_size))
    assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]))
    seen = turned(there)
    assert (seen.interval, seen.effect_size) == (pytest.approx(back.interval), pytest.approx(back.effect_size))
    assert replace(seen, interval=back.interval, effect_size=back.effect_size) == back
    assert there.wins + there.ties + there.losses == there.queries
    assert there.least_p <= there.p <= there.p_holm <= 1


def test_effect_size_is_cohens_d_z_of_queries_that_stand_alone_and_of_families_of_one_size() -> None:
    difference = SYSTEMS["hybrid"]["recall@5"] - BASE
    alone = compare(SYSTEMS, "bm25", resamples=10)[1]
    assert alone.effect_size == pytest.approx(difference.mean() / stdev(difference))
    in_fours = compare(SYSTEMS, "bm25", [str(place // 4) for place in range(200)], resamples=10)[1]
    means = difference.reshape(50, 4).mean(axis=1)
    assert in_fours.effect_size == pytest.approx(mean(means) / stdev(means))


def certain(**changes: object) -> Comparison:
    usual = Comparison(
        measure="recall@5", system="hybrid", baseline="bm25", difference=0.032, interval=(0.011, 0.054), level=0.95,
        p=0.0004, p_holm=0.0036, comparisons=9, effect_size=0.21, wins=120, ties=800, losses=80, exact=False,
        resamples=10_000, queries=1000, families=1000, differing=200,
    )  # fmt: skip
    return replace(usual, **changes)  # type: ignore[arg-type]


def test_a_sentence_holds_the_numbers_and_calls_nothing_better_that_the_test_does_not() -> None:
    assert sentence(certain()) == (
        "hybrid is better than bm25 in Recall@5: +0.0320 (95% interval +0.0110 to +0.0540), p = 0.0036 corrected for "
        "9 comparisons, d_z = 0.21; 120 queries won, 800 tied, 80 lost."
    )
    unsure = sentence(certain(p=0.01, p_holm=0.06))
    assert unsure.startswith("hybrid and bm25 are not distinguishable in Recall@5: +0.0320 ")
    assert "better" not in unsure
    assert sentence(certain(difference=-0.01)).startswith("hybrid is worse than bm25 in Recall@5: -0.0100 ")
    assert "p = 0.0036, d_z" in sentence(certain(comparisons=1))


def test_it_is_said_where_families_or_resamples_are_too_few_for_any_difference() -> None:
    (five,) = compare(two([1.0] * 5, [0.0] * 5), "baseline")
    assert (five.p, five.least_p, verdict(five)) == (0.0625, 0.0625, "not distinguishable")
    assert sentence(five).endswith("(5 queries are too few: no p-value can be below 0.0625, and 0.05 is needed).")
    assert certain(p=0.5, resamples=99).least_p == pytest.approx(0.01)
    (six,) = compare(two([1.0] * 6, [0.0] * 6), "baseline")
    assert (limits(six), verdict(six)) == ("", "better")
    (grouped,) = compare(two([1.0] * 20, [0.0] * 20), "baseline", ["a", "b", "c", "d"] * 5)
    assert limits(grouped).startswith("4 families of queries are too few")
    many = certain(families=8, differing=8, exact=True, p=1 / 128, p_holm=9 / 128)
    assert "8 families of queries are too few" in limits(many)
    assert "9 comparisons need one of 0.00556" in limits(many)
    (three,) = compare(two([1.0] * 3 + [0.0] * 97, [0.0] * 100), "baseline")
    assert limits(three) == "the two differ in 3 queries only, where p cannot be below 0.25"
    assert limits(certain(resamples=99)).startswith("99 resamples are too few")
    assert limits(certain(resamples=5, differing=6, p=0.5)).startswith("5 resamples are too few")
    assert "draw at least 180" in limits(certain(resamples=99))
    assert limits(certain(resamples=180)) == ""


@pytest.mark.parametrize(
    ("systems", "message"),
    [
        ({}, "0 system"),
        ({"bm25": {"recall@5": BASE}}, "1 system.*bm25"),
        ({"bm25": {}, "dense": {}}, "'bm25' has no measures"),
        ({"bm25": {"recall@5": BASE}, "dense": {"recall@10": BASE}}, "only one has recall@10, recall@5"),
    ],
)
def test_systems_that_cannot_be_compared_are_an_error(systems: Systems, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        compare(systems)
