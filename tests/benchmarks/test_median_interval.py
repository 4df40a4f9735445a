"""The interval of a median holds the true one as often as it says, whatever the distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import quantile_test

from nlp_retrieval.benchmarks.timing import median_interval


@pytest.mark.parametrize("n", [6, 7, 20, 81, 200])
def test_it_is_that_of_the_sign_test(n: int) -> None:
    values = np.random.default_rng(n).lognormal(0, 1, n)
    found = quantile_test(values, q=0.0, p=0.5).confidence_interval(0.95)
    interval = median_interval(values)
    assert interval is not None
    assert interval == pytest.approx((found.low, found.high))
