"""K-means in whole numbers (Lloyd, 1982): the same centroids on any number of threads and on any CPU.

Matrix products use BLAS, whose order of additions depends on the CPU and the number of threads. Vectors are therefore
rounded to whole units first, with so few units to a length that every product and every partial sum stays below 2**24,
where float32 is exact in any order. Sums of members are exact in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.encoders.base import Vectors

Numbers = NDArray[np.int64]

_MOST_UNITS = 2**12
_SCORES_AT_ONCE = 2**22
_NARROW, _NARROW_AT_ONCE = 32, 2**18  # cheap scores are best read while they are in the cache
_ROWS_AT_ONCE = 16_384


def units_of(dimension: int, most: int = _MOST_UNITS) -> float:
    """Return how many units a vector of length 1 has: as many as keep its length within ``most`` after rounding each component.

    Args:
        dimension: of the vector.
        most: at most 2**12.
    """
    return float(most - math.ceil(math.sqrt(dimension) / 2))


def units_per_length(longest: float, dimension: int, most: int = _MOST_UNITS) -> float:
    """Return how many units a length of 1 has, so that the longest vector stays within ``most``; see :func:`units_of`.

    Args:
        longest: length of the longest vector; 1 is returned for 0.
        dimension: of the vectors.
        most: at most 2**12.
    """
    return float(np.float32(units_of(dimension, most) / longest * (1 - 2e-7))) if longest > 0 else 1.0


def directions(vectors: NDArray[np.floating]) -> Vectors:
    """Vectors scaled to length 1, in whole units; a zero vector stays zero.

    Examples:
        >>> directions(np.array([[3.0, 4.0], [0.0, 0.0]])).round(2).tolist()
        [[2457.0, 3276.0], [0.0, 0.0]]
    """
    exact = vectors.astype(np.float64)
    lengths = np.sqrt(np.square(exact).sum(axis=1, keepdims=True))
    return np.rint(exact / np.where(lengths > 0, lengths, 1.0) * units_of(vectors.shape[1])).astype(np.float32)


def best_products(vectors: Vectors, others: Vectors) -> tuple[Numbers, Vectors]:
    """For each vector, the other with the largest inner product (of equal ones the lowest number), and this product.

    Args:
        vectors: ``[vectors, dimension]``, in whole units.
        others: ``[others, dimension]``, in whole units.
    """
    centroids, best = np.zeros(len(vectors), np.int64), np.zeros(len(vectors), np.float32)
    size = max(1, (_SCORES_AT_ONCE if vectors.shape[1] > _NARROW else _NARROW_AT_ONCE) // len(others))
    for first in range(0, len(vectors), size):
        part = slice(first, first + size)
        products = vectors[part] @ others.T
        centroids[part] = products.argmax(axis=1)
        best[part] = np.take_along_axis(products, centroids[part, None], axis=1)[:, 0]
    return centroids, best


def spherical_kmeans(sample: Vectors, count: int, seed: int, rounds: int) -> Vectors:
    """Return ``[count, dimension]`` centroids of length 1, in whole units.

    Args:
        sample: ``[vectors, dimension]`` in whole units, of length at most 2**12; at least ``count`` vectors.
        count: number of centroids.
        seed: seed for drawing the initial vectors.
        rounds: number of rounds.
    """
    centroids = directions(_initial_centroids(sample, count, seed))
    for _ in range(rounds):
        numbers, products = best_products(sample, centroids)
        centroids = directions(_update_centroids(sample, numbers, products, centroids))
    return centroids


def kmeans_by_product(sample: Vectors, count: int, seed: int, rounds: int) -> Vectors:
    """Return ``[count, dimension]`` means, in whole units; each vector belongs to the one with the largest inner product.

    Args: those of :func:`spherical_kmeans`.
    """
    centroids = _initial_centroids(sample, count, seed)
    for _ in range(rounds):
        numbers, products = best_products(sample, centroids)
        centroids = np.rint(_update_centroids(sample, numbers, products, centroids)).astype(np.float32)
    return centroids


def kmeans_by_distance(sample: Vectors, count: int, seed: int, rounds: int) -> Vectors:
    """Return ``[count, dimension]`` means, in whole units; each vector belongs to the closest.

    Args: those of :func:`spherical_kmeans`; vectors have a length of at most 2**10.
    """
    centroids, above = _initial_centroids(sample, count, seed), with_one(sample)
    halves = np.square(sample).sum(axis=1) / 2
    for _ in range(rounds):
        numbers, products = best_products(above, less_half_square(centroids))
        centroids = np.rint(_update_centroids(sample, numbers, products - halves, centroids)).astype(np.float32)
    return centroids


def with_one(vectors: Vectors) -> Vectors:
    """Vectors with a 1 appended; their products with those of :func:`less_half_square` are largest where they are closest."""
    return np.concatenate([vectors, np.ones((len(vectors), 1), vectors.dtype)], axis=1)


def less_half_square(vectors: Vectors) -> Vectors:
    """Vectors with the negative half of their squared length appended."""
    return np.concatenate([vectors, np.square(vectors).sum(axis=1, keepdims=True) / -2], axis=1)


def means_of(sample: Vectors, numbers_of: Callable[[Vectors], Numbers], centroids: Vectors) -> NDArray[np.float64]:
    """The mean of the members of each centroid; the centroid itself if there are none."""
    n_centroids, dimension = centroids.shape
    sums, counts = np.zeros((dimension, n_centroids)), np.zeros(n_centroids, np.int64)
    for first in range(0, len(sample), _ROWS_AT_ONCE):
        part = sample[first : first + _ROWS_AT_ONCE]
        numbers = numbers_of(part)
        counts += np.bincount(numbers, minlength=n_centroids)
        for dimension_number, column in enumerate(np.ascontiguousarray(part.T)):
            sums[dimension_number] += np.bincount(numbers, column, n_centroids)
    means: NDArray[np.float64] = np.where(counts[:, None] > 0, sums.T / np.maximum(counts, 1)[:, None], centroids)
    return means


def _initial_centroids(sample: Vectors, count: int, seed: int) -> Vectors:
    return sample[np.sort(np.random.default_rng(seed).choice(len(sample), count, replace=False))]


def _update_centroids(sample: Vectors, numbers: Numbers, closeness: Vectors, centroids: Vectors) -> NDArray[np.float64]:
    """The means of all members; centroids without members move to the vectors that are farthest from their own centroid."""
    blocks = iter(range(0, len(sample), _ROWS_AT_ONCE))

    def numbers_of(part: Vectors) -> Numbers:
        first = next(blocks)
        return numbers[first : first + len(part)]

    means = means_of(sample, numbers_of, centroids)
    empty = np.flatnonzero(np.bincount(numbers, minlength=len(centroids)) == 0)
    if len(empty):
        means[empty] = sample[np.argsort(closeness, kind="stable")[: len(empty)]]
    return means
