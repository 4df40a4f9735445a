"""The randomisation test: SciPy's and that of whole enumeration in fractions, at its level where nothing differs."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.resampling import holm, randomisation_test, refined_test

Families = list[str | None]

thirds = st.builds(Fraction, st.integers(-6, 6), st.sampled_from([1, 3, 5, 7, 10]))
few = st.lists(st.tuples(thirds, st.none() | st.sampled_from("ab")), min_size=1, max_size=7)


def alone(differences: Scores) -> Families:
    return [None] * differences.shape[1]


def by_enumeration(differences: list[Fraction], families: Families) -> Fraction:
    sums: dict[object, Fraction] = {}
    for place, (difference, family) in enumerate(zip(differences, families, strict=True)):
        key = place if family is None else family
        sums[key] = sums.get(key, Fraction(0)) + difference
    totals = [
        sum(sign * one for sign, one in zip(signs, sums.values(), strict=True)) for signs in product((1, -1), repeat=len(sums))
    ]
    return Fraction(sum(abs(total) >= abs(totals[0]) for total in totals), len(totals))


@given(queries=few)
def test_few_families_are_enumerated_and_equal_sums_count_though_their_floats_differ(
    queries: list[tuple[Fraction, str | None]],
) -> None:
    differences, families = [one for one, _ in queries], [family for _, family in queries]
    test = randomisation_test(np.array([[float(one) for one in differences]]), families)
    assert test.exact[0]
    assert test.p[0] == float(by_enumeration(differences, families))


@pytest.mark.parametrize("seed", range(8))
def test_where_all_arrangements_are_counted_p_is_scipys(seed: int) -> None:
    differences = np.random.default_rng(seed).integers(-8, 9, (1, 12)) / 8
    theirs = permutation_test((differences[0],), np.mean, permutation_type="samples", n_resamples=2**12)
    assert randomisation_test(differences, alone(differences), resamples=2**12).p[0] == theirs.pvalue


def test_sampled_p_is_scipys_within_what_sampling_leaves_open() -> None:
    draw = np.random.default_rng(4)
    differences = np.round(draw.normal(draw.uniform(0, 0.15, (6, 1)), 0.5, (6, 150)), 1)
    test = randomisation_test(differences, alone(differences))
    assert not test.exact.any()
    for ours, row in zip(test.p, differences, strict=True):
        theirs = permutation_test(
            (row,), np.mean, vectorized=True, permutation_type="samples", n_resamples=9_999, batch=1000, rng=draw
        ).pvalue
        assert ours == pytest.approx(theirs, abs=5 * np.sqrt(2 * ours * (1 - ours) / 10_000) + 2e-4)


def test_p_is_the_same_alone_and_among_others_with_either_sign_and_in_any_unit() -> None:
    differences = np.round(np.random.default_rng(6).normal(0.05, 0.4, (70, 90)), 2)
    families = [None if place % 3 else str(place % 5) for place in range(90)]
    together = randomisation_test(differences, families, resamples=500, seed=3).p
    for place in (0, 31, 32, 69):
        row = differences[place : place + 1]
        for same in (row, -row, row * 1e-9, row * 4096):
            assert randomisation_test(same, families, resamples=500, seed=3).p[0] == together[place]
    assert (randomisation_test(differences, families, resamples=500, seed=4).p != together).any()


def test_where_nothing_differs_one_in_twenty_is_below_0_05() -> None:
    differences = np.random.default_rng(8).normal(0.0, 1.0, (2000, 40))
    p = randomisation_test(differences, alone(differences), resamples=999).p
    for alpha in (0.01, 0.05, 0.2):
        assert (p <= alpha).mean() == pytest.approx(alpha, abs=4 * np.sqrt(alpha * (1 - alpha) / 2000))


def test_queries_of_one_family_taken_for_independent_would_find_differences_that_are_none() -> None:
    of_families = np.random.default_rng(9).normal(0.0, 1.0, (1000, 25))
    differences = np.repeat(of_families, 4, axis=1)
    families = [str(place // 4) for place in range(100)]
    honest = randomisation_test(differences, families, resamples=499).p
    deceived = randomisation_test(differences, alone(differences), resamples=499).p
    assert (honest <= 0.05).mean() == pytest.approx(0.05, abs=0.03)
    assert (deceived <= 0.05).mean() > 0.25
    assert honest.tolist() == randomisation_test(of_families, alone(of_families), resamples=499).p.tolist()


@given(p=st.lists(st.floats(0, 1), max_size=6))
def test_holm_is_the_closed_test_of_bonferroni(p: list[float]) -> None:
    # Marcus, Peritz and Gabriel (1976): a hypothesis falls when every intersection that it is part of does
    wanted = [
        max(
            min(1.0, size * min(p[one] for one in some))
            for size in range(1, len(p) + 1)
            for some in combinations(range(len(p)), size)
            if place in some
        )
        for place in range(len(p))
    ]
    assert holm(p) == pytest.approx(wanted)


def test_small_p_values_are_those_of_more_arrangements_or_bounds_of_the_exact_ones() -> None:
    random = np.random.default_rng(4)
    differences = random.uniform(-0.2, 1, (40, 18)) * np.linspace(0.2, 1.5, 40)[:, None] + random.normal(0, 0.2, (40, 18))
    signs = 1 - 2 * ((np.arange(2**18)[:, None] >> np.arange(18)) & 1)
    exact = (np.abs(signs @ differences.T) >= np.abs(differences.sum(axis=1)) - 1e-12).mean(axis=0)
    families = [None] * 18
    few = randomisation_test(differences, families, 2_000, seed=1).p
    further = refined_test(differences, families, 2_000, 100_000, seed=1).p
    small = few < 0.001
    assert 5 < small.sum() < 35
    assert (further[~small] == few[~small]).all()
    drawn = (further[small] * 100_001) % 1 < 1e-6  # a whole number of the arrangements
    assert further[small] == pytest.approx(np.where(drawn, exact[small], further[small]), rel=0.5, abs=3e-5)
    assert (further[small] >= exact[small] / 3).all()
    clear = refined_test(np.full((1, 60), 0.5), [None] * 60, 2_000, 100_000, seed=0).p
    assert 2.0**-59 <= clear[0] == pytest.approx(2 * np.exp(-30))
