"""The interval of a median holds the true one as often as it says, whatever the distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, quantile_test

from nlp_retrieval.benchmarks.timing import median_interval


@pytest.mark.parametrize("n", [6, 7, 20, 81, 200])
def test_it_is_that_of_the_sign_test(n: int) -> None:
    values = np.random.default_rng(n).lognormal(0, 1, n)
    found = quantile_test(values, q=0.0, p=0.5).confidence_interval(0.95)
    interval = median_interval(values)
    assert interval is not None
    assert interval == pytest.approx((found.low, found.high))


def test_its_ends_are_as_near_as_the_level_allows() -> None:
    for n in range(6, 60):
        low, high = median_interval(np.arange(n, dtype=float)) or (-1.0, -1.0)
        assert low + high == n - 1
        assert 2 * binom.cdf(low, n, 0.5) <= 0.05
        assert 2 * binom.cdf(low + 1, n, 0.5) > 0.05


@pytest.mark.parametrize("n", range(6))
def test_of_few_values_there_is_none(n: int) -> None:
    assert median_interval(np.arange(n, dtype=float)) is None
