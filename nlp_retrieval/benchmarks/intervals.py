"""How sure a mean is: bootstrap intervals (Efron, 1979) that resample families of queries, not queries.

Claims that were written from one question rise and fall together. Resampling them one by one would take them for
independent, and the interval for narrower than it is. Sums are taken of whole numbers, so a result depends neither on the
processor's order of adding nor on what else is computed beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError, GoldError

__all__ = ["bootstrap_interval", "bootstrap_intervals", "family_numbers", "family_sums", "whole_numbers"]

_AT_ONCE = 2**20  # families drawn at once
_BITS = 51  # of the largest sum; float64 holds whole numbers up to 53


def family_numbers(families: Sequence[str | None]) -> NDArray[np.int64]:
    """Number the families from 0 in order of appearance; a query without one is a family of its own.

    Args:
        families: per query.
    """
    numbers: dict[object, int] = {}
    keys = [("alone", place) if family is None else ("family", family) for place, family in enumerate(families)]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def family_sums(values: Scores, numbers: NDArray[np.int64]) -> Scores:
    """Return ``[rows, families]``, the sum of the values of each family's queries.

    Args:
        values: ``[rows, queries]``.
        numbers: per query, the number of its family.
    """
    if numbers[-1] == len(numbers) - 1:  # numbered in order of appearance: every query stands alone
        return values
    return np.stack([np.bincount(numbers, row) for row in values])


def whole_numbers(sums: Scores) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return whole numbers and exponents: ``sums`` is, to the nearest, each row of numbers times 2 to its exponent.

    Sums of as many members of a row as there are, with repeats or without, are exact in int64 and in float64, whatever
    the order of adding.

    Args:
        sums: ``[rows, families]``, finite.
    """
    _, largest = np.frexp(np.abs(sums).max(axis=1))
    exponents = largest + (sums.shape[1].bit_length() - _BITS)
    return np.rint(np.ldexp(sums, -exponents[:, None])).astype(np.int64), exponents


def bootstrap_interval(
    values: Scores, families: Sequence[str | None], resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Return the percentile interval of the mean of ``values`` over resampled families.

    Args:
        values: ``[queries]``, a measure per query, or the difference of two systems.
        families: per query; None for a query that stands alone.
        resamples: how many samples of families, with replacement, are drawn.
        level: how much of their means lies within.
        seed: of the draws, 0 or more; the same seed gives the same interval.

    Raises:
        GoldError: there are no queries, or not one family for each.
        ConfigurationError: ``resamples`` is below 1, ``level`` not between 0 and 1, or ``seed`` below 0.
    """
    low, high = bootstrap_intervals(values[None], families, resamples, level, seed)[0].tolist()
    return low, high


def bootstrap_intervals(
    values: Scores, families: Sequence[str | None], resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> Scores:
    """Return the percentile interval of each row's mean, ``[rows, 2]``; all rows have the same resamples.

    Args:
        values: ``[rows, queries]``, finite; the interval of a row is the same whatever the other rows are.
        families: as in :func:`bootstrap_interval`, as are the other arguments and what is raised.
        resamples: how many samples of families are drawn.
        level: how much of their means lies within.
        seed: of the draws.
    """
    if resamples < 1 or not 0 < level < 1 or seed < 0:
        raise ConfigurationError(
            f"resamples={resamples}, level={level}, seed={seed}; draw at least 1, take a level between 0 and 1, "
            "and a seed of 0 or more"
        )
    if values.shape[1] == 0 or values.shape[1] != len(families):
        raise GoldError(
            f"{values.shape[1]} values and {len(families)} families; give one of each for every query, and at least one"
        )
    numbers = family_numbers(families)
    whole, exponents = whole_numbers(family_sums(values, numbers))
    sizes = np.bincount(numbers)
    columns = np.vstack([whole, sizes]).T.astype(np.float64)
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, len(values)))
    step = max(1, _AT_ONCE // len(sizes))
    for first in range(0, resamples, step):
        drawn = generator.integers(len(sizes), size=(min(step, resamples - first), len(sizes)))
        drawn += np.arange(len(drawn))[:, None] * len(sizes)
        times = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
        sums = times @ columns
        means[first : first + len(drawn)] = sums[:, :-1] / sums[:, -1:]
    bounds = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.ldexp(bounds.T, exponents[:, None])
