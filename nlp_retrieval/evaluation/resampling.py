"""Significance tests: Fisher's paired randomisation test (Fisher, 1935) and Holm's correction (1979).

If two systems do not differ, each query's difference could equally have the other sign. The p-value is the share of
sign arrangements whose mean is at least as far from 0 as the observed one (Smucker, Allan and Carterette, CIKM 2007). The
queries of a family change sign together. The test is exact if both signs of a difference are equally likely,
whatever its distribution; with few queries, it calls a skewed one with mean 0 significant more often than stated.
Studentising changes nothing, because the sum of squares is the same in every arrangement. Sums are of integers,
and means within rounding of the observed one count as equal to it, so p depends only on the seed and the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError, GoldError

ROUNDING = 2.0**-40
"""Values smaller than this share of the values they were computed from are rounding errors, and count as 0."""

_EQUAL = 34  # two sums are equal that differ by less than 2**-34 of all absolute differences together
_ARRANGEMENTS_AT_ONCE = 2**14
_COMPARISONS_AT_ONCE = 32
_SMALL = 0.001  # below this p-value, more arrangements are drawn if many tests are corrected together
_Words = NDArray[np.uint64]  # per arrangement, 64 families: bit i set where family i keeps its sign


@dataclass(frozen=True)
class Randomisation:
    """Results of the test, in the order of the comparisons."""

    p: Scores
    exact: NDArray[np.bool_]
    differing: NDArray[np.int64]


def randomisation_test(
    differences: Scores, families: Sequence[str | None], resamples: int = 10_000, seed: int = 0
) -> Randomisation:
    """Test for each row of ``[comparisons, queries]`` differences whether its mean is 0; a family of None is a query alone.

    If a comparison's differing families have at most ``resamples`` arrangements, all are counted. Otherwise
    ``resamples`` are drawn, the same for all comparisons, and p is (b + 1) / (resamples + 1), where b of them are as extreme
    as the observed one, which is also an arrangement (Phipson and Smyth, 2010).
    """
    if resamples < 1 or seed < 0:
        raise ConfigurationError(f"resamples={resamples}, seed={seed}; draw at least 1, with a seed of 0 or more")
    if differences.shape[1] == 0 or differences.shape[1] != len(families):
        raise GoldError(
            f"differences of {differences.shape[1]} queries and {len(families)} families; give one of each for every "
            "query, and at least one"
        )
    whole = _whole_differences(differences, family_numbers(families))
    differing = np.count_nonzero(whole, axis=1)
    exact = differing < resamples.bit_length()  # 2**differing <= resamples
    p = np.empty(len(whole))
    for row in np.flatnonzero(exact).tolist():
        (families_that_differ,) = np.nonzero(whole[row])
        every = _every(len(families_that_differ))
        p[row] = _as_extreme(whole[row : row + 1, families_that_differ], every)[0] / 2.0 ** differing[row]
    sampled = np.flatnonzero(~exact)
    for first in range(0, len(sampled), _COMPARISONS_AT_ONCE):
        places = sampled[first : first + _COMPARISONS_AT_ONCE]
        extreme = _as_extreme(whole[places], _random(resamples, whole.shape[1], seed))
        p[places] = (extreme + 1) / (resamples + 1)
    return Randomisation(p, exact, differing)


def refined_test(differences: Scores, families: Sequence[str | None], resamples: int, most: int, seed: int) -> Randomisation:
    """Test as :func:`randomisation_test` does, and draw more arrangements where p is small.

    If p is below 0.001 after ``resamples`` arrangements, ``most`` are drawn. None are needed if Hoeffding's inequality (1963)
    shows that p is smaller than they could: the share of sums of signed differences as far from 0 as the observed one, s, is
    at most 2 exp(-s^2 / 2 sum of squares), and p is this bound.
    """
    first = randomisation_test(differences, families, resamples, seed)
    if most <= resamples:
        return first
    p = first.p.copy()
    sums = family_sums(differences, family_numbers(families))
    bounds = 2 * np.exp(-(sums.sum(axis=1) ** 2) / (2 * np.maximum((sums**2).sum(axis=1), np.finfo(np.float64).tiny)))
    small = ~first.exact & (p < _SMALL)
    p[small] = np.maximum(bounds[small], np.finfo(np.float64).tiny)
    unclear = np.flatnonzero(small & (bounds > 1 / (most + 1)))
    if len(unclear):
        p[unclear] = randomisation_test(differences[unclear], families, most, seed).p
    return Randomisation(p, first.exact, first.differing)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's step-down method (1979)."""
    adjusted = [1.0] * len(p)
    highest = 0.0
    for rank, position in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        highest = max(highest, min(1.0, (len(p) - rank) * p[position]))
        adjusted[position] = highest
    return adjusted


def _whole_differences(differences: Scores, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[comparisons, families]``, each family's sum as an integer in the comparison's own unit."""
    sums = family_sums(differences, numbers)
    rounding = np.abs(sums) <= ROUNDING * family_sums(np.abs(differences), numbers)
    return whole_numbers(np.where(rounding, 0.0, sums))[0]


def _every(n_families: int) -> Iterator[Iterable[_Words]]:
    """All arrangements of fewer than 64 families, in blocks."""
    for first in range(0, 2**n_families, _ARRANGEMENTS_AT_ONCE):
        yield [np.arange(first, min(first + _ARRANGEMENTS_AT_ONCE, 2**n_families), dtype=np.uint64)]


def _random(resamples: int, n_families: int, seed: int) -> Iterator[Iterable[_Words]]:
    """Randomly drawn arrangements, in blocks; each block gives 64 families at a time."""
    source = np.random.PCG64(seed)
    for first in range(0, resamples, _ARRANGEMENTS_AT_ONCE):
        size = min(_ARRANGEMENTS_AT_ONCE, resamples - first)
        yield (source.random_raw(size) for _ in range(0, n_families, 64))


def _as_extreme(whole: NDArray[np.int64], blocks: Iterable[Iterable[_Words]]) -> NDArray[np.int64]:
    """Count per comparison the arrangements whose sum is at least as far from 0 as the observed one.

    With ``kept`` as the sum of the families that keep their sign, the sum of the arrangement is 2 * kept - observed. It is
    added up eight families at a time, by a table of their 256 sums.
    """
    observed = whole.sum(axis=1)
    equal = (np.abs(whole).sum(axis=1) >> _EQUAL) + whole.shape[1]  # the second term for rounding to integers
    needed = np.abs(observed) - equal
    by_family = np.zeros((-(-whole.shape[1] // 8) * 8, len(whole)), np.int64)
    by_family[: whole.shape[1]] = whole.T
    extreme = np.zeros(len(whole), np.int64)
    for words in blocks:
        kept: NDArray[np.int64] | int = 0
        for first, word in zip(range(0, len(by_family), 64), words, strict=False):
            octets = word.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
            for octet, group in zip(octets.T, by_family[first : first + 64].reshape(-1, 8, len(whole)), strict=False):
                kept += _sums_of_subsets(group).take(octet, axis=0)
        extreme += (np.abs(2 * kept - observed) >= needed).sum(axis=0)
    return extreme


def _sums_of_subsets(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[256, comparisons]``: entry b is the sum of those of the ``[8, comparisons]`` numbers whose bit is set in b."""
    sums = np.zeros((256, group.shape[1]), np.int64)
    for bit, numbers in enumerate(group):
        sums[1 << bit : 2 << bit] = sums[: 1 << bit] + numbers
    return sums


# Confidence intervals of means of bounded values, with at least the stated coverage, even for few queries.
#
# Families of queries are weighted at random (the Bayesian bootstrap, Rubin, Annals of Statistics 1981), and one hypothetical
# family is added, with the lowest possible value for the lower end and the highest for the upper end (Gaffke,
# Mathematical Methods of Statistics 2005; Learned-Miller and Thomas, 2019, https://arxiv.org/abs/1905.06208). For shares
# of independent queries this is the exact interval of Clopper and Pearson (Biometrika 1934), and for any bounded values no
# case of too low coverage is known. Resampling only the observed values has far too low coverage:
# if five queries all succeed, such an interval is a point. ``python -m bench DATA coverage`` measures both.
#
# Claims written from the same question are correlated. Treating them as independent would make the
# interval too narrow: families are weighted, and the hypothetical one is as large as the family of
# a query drawn at random. Sums are of integers, so a result depends neither on the processor's order of adding nor on
# what else is computed at the same time.

_WEIGHTS_AT_ONCE = 2**20
_BITS = 51  # of the largest sum; float64 holds whole numbers up to 53
_PER_ONE = 2**10  # a weight is a whole number of these parts of the mean weight
_WEIGHT_BITS = 15  # of a weight: an exponential number drawn in 32 bits is below 2**5


def family_numbers(families: Sequence[str | None]) -> NDArray[np.int64]:
    """Number the families from 0 in order of appearance; a query without one is its own family."""
    numbers: dict[object, int] = {}
    keys = [("alone", position) if family is None else ("family", family) for position, family in enumerate(families)]
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def family_sums(values: Scores, numbers: NDArray[np.int64]) -> Scores:
    """Return ``[rows, families]``, the sum of the values of each family's queries."""
    if numbers[-1] == len(numbers) - 1:  # numbered in order of appearance: every query is its own family
        return values
    return np.stack([np.bincount(numbers, row) for row in values])


def whole_numbers(sums: Scores, spare_bits: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return integers and exponents: ``sums`` is, rounded, each row of integers times 2 to the power of its exponent.

    Sums of as many members of a row as there are, with repeats or without, are exact in int64 and in float64, whatever
    the order of adding.
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
    """Return the interval of the mean of ``values``; see the module for the method."""
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
    """Return ``[rows, 2]``: the interval of the mean of each row of ``[rows, queries]`` values, within ``[rows, 2]`` bounds."""
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
    step = max(1, _WEIGHTS_AT_ONCE // (len(sizes) + 1))
    for first in range(0, resamples, step):
        drawn = generator.standard_exponential((min(step, resamples - first), len(sizes) + 1), np.float32)
        weights = np.floor(drawn * _PER_ONE).astype(np.float64) + 1
        sums, of_unseen = (weights[:, :-1] @ columns).T, weights[:, -1]
        part, queries = slice(first, first + len(drawn)), sums[-1] + of_unseen * unseen
        lower[:, part] = (sums[:-1] + low[:, None] * of_unseen) / queries
        upper[:, part] = (sums[:-1] + high[:, None] * of_unseen) / queries
    ends = [np.quantile(lower, (1 - level) / 2, axis=1), np.quantile(upper, (1 + level) / 2, axis=1)]
    intervals: Scores = np.ldexp(np.stack(ends, axis=1), exponents[:, None])
    return intervals


def _check_bounds(values: Scores, lowest: Scores, highest: Scores) -> None:
    """Raise an error for values outside the bounds by more than rounding."""
    slack = ROUNDING * (highest - lowest)
    outside = (values < (lowest - slack)[:, None]) | (values > (highest + slack)[:, None])
    if outside.any():
        row, query = np.argwhere(outside)[0].tolist()
        raise GoldError(
            f"the value {values[row, query]} of query {query}, counted from 0, is outside its bounds, {lowest[row]:g} to "
            f"{highest[row]:g}; give the bounds of the measure"
        )
