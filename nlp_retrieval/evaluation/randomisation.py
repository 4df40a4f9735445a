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
from nlp_retrieval.evaluation.bootstrap import family_numbers, family_sums, whole_numbers

__all__ = ["ROUNDING", "Randomisation", "holm", "randomisation_test"]

ROUNDING = 2.0**-40
"""Values smaller than this share of the values they were computed from are rounding errors, and count as 0."""

_EQUAL = 34  # two sums are equal that differ by less than 2**-34 of all absolute differences together
_AT_ONCE = 2**14  # arrangements
_COMPARISONS_AT_ONCE = 32
_Words = NDArray[np.uint64]  # per arrangement, 64 families: bit i set where family i keeps its sign


@dataclass(frozen=True)
class Randomisation:
    """Results of the test, in the order of the comparisons.

    Args:
        p: two-sided.
        exact: whether all arrangements were counted instead of a sample.
        differing: number of families in which the two systems differ; only their signs matter.
    """

    p: Scores
    exact: NDArray[np.bool_]
    differing: NDArray[np.int64]


def randomisation_test(
    differences: Scores, families: Sequence[str | None], resamples: int = 10_000, seed: int = 0
) -> Randomisation:
    """Test for each comparison whether the mean of its differences is 0.

    If a comparison's differing families have at most ``resamples`` arrangements, all are counted. Otherwise
    ``resamples`` are drawn, the same for all comparisons, and p is (b + 1) / (resamples + 1), where b of them are as extreme
    as the observed one, which is also an arrangement (Phipson and Smyth, 2010).

    Args:
        differences: ``[comparisons, queries]``, finite.
        families: per query; None for a query without a family.
        resamples: how many arrangements are drawn.
        seed: seed of the draws, 0 or more; the same seed gives the same p, independent of the other comparisons.

    Raises:
        GoldError: there are no queries, or not one family per query.
        ConfigurationError: ``resamples`` is below 1, or ``seed`` below 0.
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
    for place in np.flatnonzero(exact).tolist():
        (families_that_differ,) = np.nonzero(whole[place])
        every = _every(len(families_that_differ))
        p[place] = _as_extreme(whole[place : place + 1, families_that_differ], every)[0] / 2.0 ** differing[place]
    sampled = np.flatnonzero(~exact)
    for first in range(0, len(sampled), _COMPARISONS_AT_ONCE):
        places = sampled[first : first + _COMPARISONS_AT_ONCE]
        extreme = _as_extreme(whole[places], _random(resamples, whole.shape[1], seed))
        p[places] = (extreme + 1) / (resamples + 1)
    return Randomisation(p, exact, differing)


def holm(p: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's step-down method (1979).

    Calling those at most alpha significant keeps the chance of any false positive at most alpha, however the comparisons
    depend on one another.

    Args:
        p: one per comparison.
    """
    adjusted = [1.0] * len(p)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        highest = max(highest, min(1.0, (len(p) - rank) * p[place]))
        adjusted[place] = highest
    return adjusted


def _whole_differences(differences: Scores, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """``[comparisons, families]``, each family's sum as an integer in the comparison's own unit."""
    sums = family_sums(differences, numbers)
    rounding = np.abs(sums) <= ROUNDING * family_sums(np.abs(differences), numbers)
    return whole_numbers(np.where(rounding, 0.0, sums))[0]


def _every(n_families: int) -> Iterator[Iterable[_Words]]:
    """All arrangements of fewer than 64 families, in blocks."""
    for first in range(0, 2**n_families, _AT_ONCE):
        yield [np.arange(first, min(first + _AT_ONCE, 2**n_families), dtype=np.uint64)]


def _random(resamples: int, n_families: int, seed: int) -> Iterator[Iterable[_Words]]:
    """Randomly drawn arrangements, in blocks; each block gives 64 families at a time."""
    source = np.random.PCG64(seed)
    for first in range(0, resamples, _AT_ONCE):
        size = min(_AT_ONCE, resamples - first)
        yield (source.random_raw(size) for _ in range(0, n_families, 64))


def _as_extreme(whole: NDArray[np.int64], blocks: Iterable[Iterable[_Words]]) -> NDArray[np.int64]:
    """Count per comparison the arrangements whose sum is at least as far from 0 as the observed one.

    With ``kept`` as the sum of the families that keep their sign, the sum of the arrangement is 2 * kept - observed. It is
    added up eight families at a time, by a table of their 256 sums.

    Args:
        whole: ``[comparisons, families]``.
        blocks: per block of arrangements and per 64 families, their words.
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
