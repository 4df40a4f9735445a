"""Bootstrap intervals: those of SciPy where every query stands alone, and wider where queries belong together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap

from nlp_retrieval.benchmarks.intervals import bootstrap_interval, bootstrap_intervals, family_numbers, whole_numbers
from nlp_retrieval.errors import ConfigurationError, GoldError

VALUES = np.random.default_rng(2).normal(0.1, 1.0, 120)
ALONE: list[str | None] = [None] * len(VALUES)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_the_interval_of_queries_that_stand_alone_is_scipys(level: float) -> None:
    wanted = bootstrap((VALUES,), np.mean, confidence_level=level, method="percentile", random_state=0).confidence_interval
    assert bootstrap_interval(VALUES, ALONE, level=level) == pytest.approx((wanted.low, wanted.high), abs=0.01)


def test_the_interval_of_families_is_that_of_resampling_them_in_a_loop() -> None:
    draw = np.random.default_rng(3)
    families = [f"f{number}" for number in draw.integers(0, 20, len(VALUES))]
    groups = [VALUES[[place for place, family in enumerate(families) if family == one]] for one in dict.fromkeys(families)]
    means = [np.concatenate([groups[at] for at in draw.integers(0, len(groups), len(groups))]).mean() for _ in range(10_000)]
    assert bootstrap_interval(VALUES, families) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.015)


def test_repeating_every_query_in_its_family_changes_nothing_and_as_if_they_stood_alone_makes_it_narrower() -> None:
    names = [str(place) for place in range(len(VALUES))]
    once = bootstrap_interval(VALUES, names)
    four_times = bootstrap_interval(np.tile(VALUES, 4), names * 4)
    deceived = bootstrap_interval(np.tile(VALUES, 4), ALONE * 4)
    assert four_times == pytest.approx(once, abs=1e-9)
    assert deceived[1] - deceived[0] == pytest.approx((once[1] - once[0]) / 2, rel=0.1)


def test_one_seed_gives_one_interval_and_another_a_near_one() -> None:
    assert bootstrap_interval(VALUES, ALONE, seed=5) == bootstrap_interval(VALUES, ALONE, seed=5)
    assert bootstrap_interval(VALUES, ALONE, seed=5) != bootstrap_interval(VALUES, ALONE, seed=6)
    assert bootstrap_interval(VALUES, ALONE, seed=5) == pytest.approx(bootstrap_interval(VALUES, ALONE, seed=6), abs=0.01)


def test_an_interval_is_the_same_alone_and_among_others() -> None:
    draw = np.random.default_rng(4)
    values = draw.normal(0.0, 1.0, (40, 70)) * 10.0 ** draw.integers(-12, 12, (40, 1))
    families: list[str | None] = [None if place % 3 else str(place % 7) for place in range(70)]
    together = bootstrap_intervals(values, families, resamples=700).tolist()
    assert together == [list(bootstrap_interval(row, families, resamples=700)) for row in values]


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bootstrap_interval(VALUES, ALONE, resamples=999)
    monkeypatch.setattr("nlp_retrieval.benchmarks.intervals._AT_ONCE", 7 * len(VALUES))
    assert bootstrap_interval(VALUES, ALONE, resamples=999) == whole


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


def test_one_family_has_one_mean() -> None:
    assert bootstrap_interval(VALUES, ["f"] * len(VALUES)) == pytest.approx((VALUES.mean(), VALUES.mean()))
    assert bootstrap_interval(np.array([0.25]), [None]) == (0.25, 0.25)


def test_a_wider_level_holds_a_narrower_one() -> None:
    bounds = [bootstrap_interval(VALUES, ALONE, level=level) for level in (0.5, 0.8, 0.99)]
    assert bounds[2][0] < bounds[1][0] < bounds[0][0] < VALUES.mean() < bounds[0][1] < bounds[1][1] < bounds[2][1]


@given(families=st.lists(st.none() | st.sampled_from(["a", "b", "", "0", "None"]), max_size=12))
def test_families_are_numbered_in_order_of_appearance_and_a_query_without_one_stands_alone(families: list[str | None]) -> None:
    keys: list[object] = []
    for place, family in enumerate(families):
        key = family if family is not None else place
        if key not in keys:
            keys.append(key)
    wanted = [keys.index(family if family is not None else place) for place, family in enumerate(families)]
    assert family_numbers(families).tolist() == wanted


@pytest.mark.parametrize(("values", "families"), [([], []), ([1.0], []), ([1.0], ["a", "b"])])
def test_no_queries_or_not_a_family_for_each_are_an_error(values: list[float], families: list[str | None]) -> None:
    with pytest.raises(GoldError, match=f"{len(values)} values and {len(families)} families"):
        bootstrap_interval(np.array(values), families)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"resamples": 0}, {"level": 0.0}, {"level": 1.0}, {"level": 95.0}])
def test_draws_and_levels_out_of_range_are_an_error(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(wrong))}="):
        bootstrap_interval(VALUES, ALONE, **wrong)  # type: ignore[arg-type]


def test_a_number_of_draws_that_fills_no_whole_batch_is_drawn() -> None:
    assert bootstrap_interval(VALUES, ALONE, resamples=1500) == pytest.approx(bootstrap_interval(VALUES, ALONE), abs=0.03)
    low, high = bootstrap_interval(VALUES, ALONE, resamples=1)
    assert low == high
