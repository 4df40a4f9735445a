"""Figures of verdicts, with intervals by resampling whole families."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.evaluation.resampling import family_numbers

_RESAMPLES = 1000

Figure = Callable[[NDArray[np.int64]], float]


def mean_of(values: Sequence[float]) -> Figure:
    """The mean of a value over rows."""
    array = np.asarray(values, np.float64)
    return lambda rows: float(array[rows].mean()) if len(rows) else float("nan")


def with_interval(figure: Figure, families: Sequence[str]) -> str:
    """A figure over all rows, and its 95% interval over families, as text."""
    numbers = family_numbers(list(families))
    members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
    rng = np.random.default_rng(0)
    drawn = [
        figure(np.concatenate([members[number] for number in rng.integers(0, len(members), len(members))]))
        for _ in range(_RESAMPLES)
    ]
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return f"{figure(np.arange(len(numbers))):.3f} [{low:.2f}, {high:.2f}]"
