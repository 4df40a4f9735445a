"""Centroids of token vectors: training them, and finding the nearest one.

Vectors and centroids have length 1, so nearest means the largest inner product. Up to ``FLAT_UP_TO`` centroids, each one is
compared. More are trained and searched in two levels: groups of vectors first, then centroids inside the groups that are
nearest to a vector, which costs only the square root and sometimes gives the second nearest centroid. Rounds of k-means
over all of them then make up for most of what the groups cost in quality. Everything is in whole units (``exact_kmeans``),
so that training and compressing give the same bytes on any number of threads and on any CPU.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.exact_kmeans import best_products, directions, means_of, spherical_kmeans, units_of

FLAT_UP_TO = 2048

_ITERATIONS = 4  # as in ColBERTv2
_REFINEMENTS = 2
_GROUPS_LOOKED_AT = 8
_AT_ONCE = 16_384
_ROOM = 8  # fewer units than for centroids, because vectors read from 16 bits may be a little longer than 1


def in_token_units(tokens: Vectors) -> Vectors:
    """Return token vectors in whole units, at most 2**12 in length, as float32."""
    units: Vectors = np.rint(tokens * np.float32(units_of(tokens.shape[1]) - _ROOM))
    return units


class Centroids:
    """Centroids, with groups for finding the nearest.

    Args:
        vectors: ``[centroids, dimension]``, in whole units.
        groups: ``[groups, dimension]``, in whole units; a single row of zeros where there are no groups.
        owner: ``[centroids]`` ascending, the group of each centroid.
        numbers: ``[centroids]``, the number that codes use for each; by default its position.
    """

    def __init__(
        self, vectors: Vectors, groups: Vectors, owner: NDArray[np.int64], numbers: NDArray[np.int64] | None = None
    ) -> None:
        self.vectors = vectors
        self._numbers = numbers
        self._groups = groups
        self._bounds = np.searchsorted(owner, np.arange(len(groups) + 1)).tolist()

    def nearest(self, tokens: Vectors) -> NDArray[np.int64]:
        """Return the number of the nearest centroid of each token, ``[tokens]``; tokens are in units."""
        positions = np.zeros(len(tokens), np.int64)
        for first in range(0, len(tokens), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            positions[part] = self._nearest(tokens[part])
        return positions if self._numbers is None else self._numbers[positions]

    def _nearest(self, tokens: Vectors) -> NDArray[np.int64]:
        n_groups = len(self._groups)
        if n_groups <= _GROUPS_LOOKED_AT:
            return best_products(tokens, self.vectors)[0]
        # no two keys of a token are equal: the order of equal ones would depend on the CPU
        keys = (tokens @ self._groups.T).astype(np.float64) * n_groups - np.arange(n_groups)
        near = np.argpartition(keys, n_groups - _GROUPS_LOOKED_AT, axis=1)[:, n_groups - _GROUPS_LOOKED_AT :]
        order = np.argsort(near, axis=None, kind="stable")
        looking = np.searchsorted(near.ravel()[order], np.arange(n_groups + 1))
        rows = order // _GROUPS_LOOKED_AT
        best, nearest = np.full(len(tokens), -np.inf, np.float32), np.zeros(len(tokens), np.int64)
        for group in range(n_groups):
            begin, end = self._bounds[group], self._bounds[group + 1]
            here = rows[looking[group] : looking[group + 1]]
            if begin == end or len(here) == 0:
                continue
            products = tokens[here] @ self.vectors[begin:end].T
            places = products.argmax(axis=1)
            values = products[np.arange(len(here)), places]
            better = values > best[here]
            best[here[better]], nearest[here[better]] = values[better], places[better] + begin
        return nearest


def train_centroids(sample: Vectors, count: int, seed: int) -> Centroids:
    """Find centroids by k-means.

    Args:
        sample: ``[tokens, dimension]`` in units, at least ``count`` of them.
        count: how many centroids.
        seed: seed of the k-means.
    """
    if count <= FLAT_UP_TO:
        return Centroids(spherical_kmeans(sample, count, seed, _ITERATIONS), sample[:1] * 0, np.zeros(count, np.int64))
    groups = spherical_kmeans(sample, math.isqrt(count), seed, _ITERATIONS)
    member = best_products(sample, groups)[0]
    sizes = np.bincount(member, minlength=len(groups))
    shares = _shares(sizes, count)
    parts = [
        spherical_kmeans(sample[member == group], shares[group], seed, _ITERATIONS)
        for group in range(len(groups))
        if shares[group]
    ]
    trained = Centroids(np.concatenate(parts), groups, np.repeat(np.arange(len(groups)), shares))
    for _ in range(_REFINEMENTS):
        trained.vectors = directions(means_of(sample, trained.nearest, trained.vectors))
    return trained


def regrouped(vectors: Vectors, n_tokens: int, seed: int) -> Centroids:
    """Make centroids that were trained before searchable, with groups where finding them costs less than it saves.

    Args:
        vectors: ``[centroids, dimension]`` in whole units; they keep their numbers.
        n_tokens: for how many tokens the nearest centroid will be looked up.
        seed: seed of the k-means.
    """
    n_groups = math.isqrt(len(vectors))
    if len(vectors) <= FLAT_UP_TO or n_tokens <= (_ITERATIONS + 1) * n_groups:
        return Centroids(vectors, vectors[:1] * 0, np.zeros(len(vectors), np.int64))
    groups = spherical_kmeans(vectors, n_groups, seed, _ITERATIONS)
    member = best_products(vectors, groups)[0]
    order = np.argsort(member, kind="stable")
    return Centroids(vectors[order], groups, member[order], order)


def _shares(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Divide ``count`` in proportion to ``sizes``, with no share above its size; ``count`` is at most their sum."""
    exact = sizes * (count / sizes.sum())
    shares: NDArray[np.int64] = np.minimum(np.floor(exact).astype(np.int64), sizes)
    rest = np.argsort(np.where(shares < sizes, shares - exact, np.inf), kind="stable")[: count - shares.sum()]
    shares[rest] += 1
    return shares
