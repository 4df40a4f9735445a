"""Confidence intervals of means of bounded values, with at least the stated coverage, even for few queries.

Families of queries are weighted at random (the Bayesian bootstrap, Rubin, Annals of Statistics 1981), and one hypothetical
family is added, with the lowest possible value for the lower end and the highest for the upper end (Gaffke,
Mathematical Methods of Statistics 2005; Learned-Miller and Thomas, 2019, https://arxiv.org/abs/1905.06208). For shares
of independent queries this is the exact interval of Clopper and Pearson (Biometrika 1934), and for any bounded values no
case of too low coverage is known. Resampling only the observed values has far too low coverage:
if five queries all succeed, such an interval is a point. ``python -m bench DATA coverage`` measures both.

Claims written from the same question are correlated. Treating them as independent would make the
interval too narrow: families are weighted, and the hypothetical one is as large as the family of
a query drawn at random. Sums are of integers, so a result depends neither on the processor's order of adding nor on
what else is computed at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError, GoldError

__all__ = ["bootstrap_interval", "bootstrap_intervals", "family_numbers", "family_sums", "whole_numbers"]

_AT_ONCE = 2**20  # weights per batch
_BITS = 51  # of the largest sum; float64 holds whole numbers up to 53
_PER_ONE = 2**10  # a weight is a whole number of these parts of the mean weight
_WEIGHT_BITS = 15  # of a weight: an exponential number drawn in 32 bits is below 2**5
_ROUNDING = 2.0**-40


def family_numbers(families: Sequence[str | None]) -> NDArray[np.int64]:
    """Number the families from 0 in order of appearance; a query without one is its own family.

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
    if numbers[-1] == len(numbers) - 1:  # numbered in order of appearance: every query is its own family
        return values
    return np.stack([np.bincount(numbers, row) for row in values])


def whole_numbers(sums: Scores, spare_bits: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return integers and exponents: ``sums`` is, rounded, each row of integers times 2 to the power of its exponent.

    Sums of as many members of a row as there are, with repeats or without, are exact in int64 and in float64, whatever
    the order of adding.

    Args:
        sums: ``[rows, families]``, finite.
        spare_bits: members of such sums may be multiplied by integers of this many bits.
    """
    _, largest = np.frexp(np.abs(sums).max(axis=1))
    exponents = largest + (sums.shape[1].bit_length() + spare_bits - _BITS)
    return np.rint(np.ldexp(sums, -exponents[:, None])).astype(np.int64), exponents


def bootstrap_interval(
    values: Scores,
    families: Sequence[str | None],
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    *,
    bounds: tuple[float, float],
) -> tuple[float, float]:
    """Return the interval of the mean of ``values``; see the module for the method.

    Args:
        values: ``[queries]``, a measure per query, or the difference of two systems.
        families: per query; None for a query without a family.
        resamples: how often the families are weighted.
        level: minimum coverage of the interval.
        seed: seed of the weights, 0 or more; the same seed gives the same interval.
        bounds: the lowest and the highest value that a query can have: 0 and 1 for a measure, -1 and 1 for a difference.

    Raises:
        GoldError: there are no queries, not one family per query, or a value is outside the bounds.
        ConfigurationError: ``resamples`` is below 1, ``level`` not between 0 and 1, or ``seed`` below 0.
    """
    low, high = bootstrap_intervals(values[None], families, resamples, level, seed, bounds=np.array([bounds]))[0].tolist()
    return low, high


def bootstrap_intervals(
    values: Scores,
    families: Sequence[str | None],
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
    *,
    bounds: Scores,
) -> Scores:
    """Return the interval of each row's mean, ``[rows, 2]``; the families have the same weights in all rows.

    Args:
        values: ``[rows, queries]``, finite; the interval of a row does not depend on the other rows.
        families: as in :func:`bootstrap_interval`, as are the other arguments and the errors.
        resamples: how often the families are weighted.
        level: minimum coverage of an interval.
        seed: seed of the weights.
        bounds: ``[rows, 2]`` or ``[1, 2]``.
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
    lowest, highest = np.broadcast_to(bounds, (len(values), 2)).T
    _check_bounds(values, lowest, highest)
    numbers = family_numbers(families)
    whole, exponents = whole_numbers(family_sums(values, numbers), _WEIGHT_BITS)
    sizes = np.bincount(numbers)
    unseen = float((sizes**2).sum() / sizes.sum())  # queries of the hypothetical family
    low, high = (unseen * np.ldexp(end, -exponents) for end in (lowest, highest))
    columns = np.vstack([whole, sizes]).T.astype(np.float64)
    generator = np.random.default_rng(seed)
    lower = np.empty((len(values), resamples))
    upper = np.empty_like(lower)
    step = max(1, _AT_ONCE // (len(sizes) + 1))
    for first in range(0, resamples, step):
        drawn = generator.standard_exponential((min(step, resamples - first), len(sizes) + 1), np.float32)
        weights = np.floor(drawn * _PER_ONE).astype(np.float64) + 1
        sums, of_unseen = (weights[:, :-1] @ columns).T, weights[:, -1]
        part, queries = slice(first, first + len(drawn)), sums[-1] + of_unseen * unseen
        lower[:, part] = (sums[:-1] + low[:, None] * of_unseen) / queries
        upper[:, part] = (sums[:-1] + high[:, None] * of_unseen) / queries
    ends = [np.quantile(lower, (1 - level) / 2, axis=1), np.quantile(upper, (1 + level) / 2, axis=1)]
    found: Scores = np.ldexp(np.stack(ends, axis=1), exponents[:, None])
    return found


def _check_bounds(values: Scores, lowest: Scores, highest: Scores) -> None:
    """Raise an error for values outside the bounds by more than rounding."""
    slack = _ROUNDING * (highest - lowest)
    outside = (values < (lowest - slack)[:, None]) | (values > (highest + slack)[:, None])
    if outside.any():
        row, query = np.argwhere(outside)[0].tolist()
        raise GoldError(
            f"the value {values[row, query]} of query {query}, counted from 0, is outside its bounds, {lowest[row]:g} to "
            f"{highest[row]:g}; give the bounds of the measure"
        )
