"""Intervals: Clopper and Pearson's for shares, hold the mean as often as they say, and wider where queries belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.resampling import bootstrap_interval, bootstrap_intervals, whole_numbers

VALUES = np.random.default_rng(2).beta(2.0, 1.0, 120)
ALONE: list[str | None] = [None] * len(VALUES)
MEASURE = (0.0, 1.0)


def interval(
    values: Scores, families: Sequence[str | None] = ALONE, bounds: tuple[float, float] = MEASURE, **settings: Any
) -> tuple[float, float]:
    return bootstrap_interval(values, families, bounds=bounds, **settings)


@pytest.mark.parametrize(("found", "queries"), [(5, 5), (0, 5), (10, 10), (19, 20), (4, 10), (140, 144), (1, 1), (990, 1000)])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(found: int, queries: int, level: float) -> None:
    shares = np.repeat([1.0, 0.0], [found, queries - found])
    low = beta.ppf((1 - level) / 2, found, queries - found + 1) if found else 0.0
    high = beta.ppf((1 + level) / 2, found + 1, queries - found) if found < queries else 1.0
    assert interval(shares, [None] * queries, level=level) == pytest.approx((low, high), abs=0.012)


@pytest.mark.parametrize("families", [5, 20])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("mean", [0.8, 0.99])
def test_of_a_hundred_intervals_at_least_95_hold_the_mean_with_few_families_too(families: int, size: int, mean: float) -> None:
    draw = np.random.default_rng(8)
    of_families = draw.beta(2 * mean, 2 * (1 - mean), (2000, families))
    rows = np.repeat(of_families if size == 1 else draw.random((2000, families)) < mean, size, axis=1).astype(np.float64)
    names = [str(place // size) for place in range(families * size)]
    low, high = bootstrap_intervals(rows, names, resamples=2000, bounds=np.array([MEASURE])).T
    held = ((low <= mean) & (mean <= high)).mean()
    assert held >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 2000)


def test_families_of_very_different_sizes_are_allowed_for() -> None:
    draw = np.random.default_rng(9)
    sizes = np.array([1] * 9 + [30])
    held = []
    for _ in range(300):
        chosen = sizes[draw.integers(0, 10, 20)]
        share = np.repeat((draw.random(20) < 0.8).astype(np.float64), chosen)
        names = [str(number) for number in np.repeat(np.arange(20), chosen)]
        low, high = interval(share, names, resamples=500)
        held.append(low <= 0.8 <= high)
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)


def test_the_interval_of_families_is_that_of_weighting_them_in_a_loop() -> None:
    draw = np.random.default_rng(3)
    families = [f"f{number}" for number in draw.integers(0, 20, len(VALUES))]
    groups = [VALUES[[place for place, family in enumerate(families) if family == one]] for one in dict.fromkeys(families)]
    larger = sum(len(group) ** 2 for group in groups) / len(VALUES)
    ends = []
    for bound in MEASURE:
        weights = draw.dirichlet(np.ones(len(groups) + 1), 10_000)
        sums = weights @ [*(group.sum() for group in groups), bound * larger]
        ends.append(sums / (weights @ [*map(len, groups), larger]))
    wanted = np.quantile(ends[0], 0.025), np.quantile(ends[1], 0.975)
    assert interval(VALUES, families) == pytest.approx(wanted, abs=0.01)


def test_an_interval_is_the_same_alone_and_among_others() -> None:
    draw = np.random.default_rng(4)
    scale = 10.0 ** draw.integers(-12, 12, (40, 1))
    values, bounds = draw.uniform(-1.0, 1.0, (40, 70)) * scale, np.hstack([-scale, scale])
    families: list[str | None] = [None if place % 3 else str(place % 7) for place in range(70)]
    together = bootstrap_intervals(values, families, resamples=700, bounds=bounds).tolist()
    assert together == [
        list(interval(row, families, (low, high), resamples=700)) for row, (low, high) in zip(values, bounds, strict=True)
    ]


@given(
    row=st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40),
    times=st.lists(st.integers(0, 39), min_size=1, max_size=40),
)
def test_whole_numbers_are_the_values_within_rounding_and_their_sums_are_exact(row: list[float], times: list[int]) -> None:
    (whole,), (exponent,) = whole_numbers(np.array([row]))
    assert np.ldexp(whole.astype(float), exponent) == pytest.approx(np.array(row), abs=max(map(abs, row)) * 2**-43)
    drawn = [int(whole[at % len(row)]) for at in times[: len(row)]]
    assert int(np.array(drawn, np.float64).sum()) == sum(drawn)
    assert abs(sum(drawn)) <= 2**51
