"""How sure a mean is: bootstrap intervals (Efron, 1979) that resample families of queries, not queries.

Claims that were written from one question rise and fall together. Resampling them one by one would take them for
independent, and the interval for narrower than it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError, GoldError

__all__ = ["bootstrap_interval", "family_numbers"]

_AT_ONCE = 1000


def family_numbers(families: Sequence[str | None]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number the families from 0 in order of appearance; a query without one is a family of its own.

    Args:
        families: per query.
    """
    numbers: dict[object, int] = {}
    keys = [("alone", place) if family is None else ("family", family) for place, family in enumerate(families)]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def bootstrap_interval(
    values: Scores, families: Sequence[str | None], resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile interval of the mean of ``values`` over resampled families.

    Args:
        values: ``[queries]``, a measure per query, or the difference of two systems.
        families: per query; None for a query that stands alone.
        resamples: how many samples of families, with replacement, are drawn.
        level: how much of their means lies within.
        seed: of the draws; the same seed gives the same interval.

    Raises:
        GoldError: there are no queries, or not one family for each.
        ConfigurationError: ``resamples`` is below 1, or ``level`` not between 0 and 1.
    """
    if resamples < 1 or not 0 < level < 1:
        raise ConfigurationError(f"resamples={resamples}, level={level}; draw at least 1, and take a level between 0 and 1")
    if len(values) == 0 or len(values) != len(families):
        raise GoldError(
            f"{len(values)} values and {len(families)} families; give one of each for every query, and at least one"
        )
    numbers = family_numbers(families)
    sums, sizes = np.bincount(numbers, values), np.bincount(numbers).astype(np.float64)
    generator = np.random.default_rng(seed)
    means = []
    for first in range(0, resamples, _AT_ONCE):
        drawn = generator.integers(len(sums), size=(min(_AT_ONCE, resamples - first), len(sums)))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
