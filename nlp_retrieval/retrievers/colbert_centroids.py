"""Centroids of token vectors: training them, and finding the nearest one.

Vectors and centroids have length 1, so nearest means the largest inner product. Up to ``FLAT_UP_TO`` centroids every one is
looked at. More are trained and searched in two levels: groups of vectors first, then centroids inside the groups that are
nearest to a vector, which costs the square root of it and now and then gives the second nearest centroid. Rounds of k-means
over all of them then undo most of what the division into groups has cost.
"""

from __future__ import annotations

import math
from typing import Any

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.encoders.base import Vectors

faiss: Any = _faiss

FLAT_UP_TO = 2048

_ITERATIONS = 4  # as many as ColBERTv2 makes
_REFINEMENTS = 2
_GROUPS_LOOKED_AT = 8
_AT_ONCE = 16_384


class Centroids:
    """Centroids, and what finds the nearest of them.

    Args:
        vectors: ``[centroids, dimension]``.
        groups: ``[groups, dimension]``; one of zeros where there are no groups.
        owner: ``[centroids]`` ascending, the group of each centroid.
        numbers: ``[centroids]``, what others call them; by default their places.
    """

    def __init__(
        self, vectors: Vectors, groups: Vectors, owner: NDArray[np.int64], numbers: NDArray[np.int64] | None = None
    ) -> None:
        self.vectors = vectors
        self._numbers = numbers
        self._groups = groups
        self._bounds = np.searchsorted(owner, np.arange(len(groups) + 1)).tolist()

    def nearest(self, tokens: Vectors) -> NDArray[np.int64]:
        """Return the number of the nearest centroid of each token, ``[tokens]``."""
        found = np.zeros(len(tokens), np.int64)
        for first in range(0, len(tokens), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            found[part] = self._nearest(tokens[part])
        return found if self._numbers is None else self._numbers[found]

    def _nearest(self, tokens: Vectors) -> NDArray[np.int64]:
        n_groups = len(self._groups)
        if n_groups <= _GROUPS_LOOKED_AT:
            return _blockwise_argmax(tokens, self.vectors)
        near = np.argpartition(tokens @ self._groups.T, n_groups - _GROUPS_LOOKED_AT, axis=1)[:, n_groups - _GROUPS_LOOKED_AT :]
        order = np.argsort(near, axis=None, kind="stable")
        looking = np.searchsorted(near.ravel()[order], np.arange(n_groups + 1))
        rows = order // _GROUPS_LOOKED_AT
        best, found = np.full(len(tokens), -np.inf, np.float32), np.zeros(len(tokens), np.int64)
        for group in range(n_groups):
            begin, end = self._bounds[group], self._bounds[group + 1]
            here = rows[looking[group] : looking[group + 1]]
            if begin == end or len(here) == 0:
                continue
            products = tokens[here] @ self.vectors[begin:end].T
            places = products.argmax(axis=1)
            values = products[np.arange(len(here)), places]
            better = values > best[here]
            best[here[better]], found[here[better]] = values[better], places[better] + begin
        return found


def train_centroids(sample: Vectors, count: int, seed: int) -> Centroids:
    """Find centroids by k-means.

    Args:
        sample: ``[tokens, dimension]``, at least ``count`` of them, all of length 1.
        count: how many centroids.
        seed: of the k-means.
    """
    if count <= FLAT_UP_TO:
        return Centroids(_kmeans(sample, count, seed), sample[:1] * 0, np.zeros(count, np.int64))
    groups = _kmeans(sample, math.isqrt(count), seed)
    member = _blockwise_argmax(sample, groups)
    sizes = np.bincount(member, minlength=len(groups))
    shares = _shares(sizes, count)
    parts = [_kmeans(sample[member == group], shares[group], seed) for group in range(len(groups)) if shares[group]]
    trained = Centroids(np.concatenate(parts), groups, np.repeat(np.arange(len(groups)), shares))
    for _ in range(_REFINEMENTS):
        trained.vectors = _means(sample, trained)
    return trained


def regrouped(vectors: Vectors, n_tokens: int, seed: int) -> Centroids:
    """Make centroids that were trained before searchable, with groups where finding those costs less than it saves.

    Args:
        vectors: ``[centroids, dimension]`` of length 1; they keep their numbers.
        n_tokens: how many nearest ones will be asked for.
        seed: of the k-means.
    """
    n_groups = math.isqrt(len(vectors))
    if len(vectors) <= FLAT_UP_TO or n_tokens <= (_ITERATIONS + 1) * n_groups:
        return Centroids(vectors, vectors[:1] * 0, np.zeros(len(vectors), np.int64))
    groups = _kmeans(vectors, n_groups, seed)
    member = _blockwise_argmax(vectors, groups)
    order = np.argsort(member, kind="stable")
    return Centroids(vectors[order], groups, member[order], order)


def _kmeans(sample: Vectors, count: int, seed: int) -> Vectors:
    # FAISS would draw a sample of its own above max_points, and warn on standard error below min_points
    settings = {"niter": _ITERATIONS, "spherical": True, "seed": seed, "min_points_per_centroid": 1}
    kmeans = faiss.Kmeans(sample.shape[1], count, max_points_per_centroid=len(sample), **settings)
    kmeans.train(np.ascontiguousarray(sample))
    found: Vectors = kmeans.centroids
    return found


def _means(sample: Vectors, centroids: Centroids) -> Vectors:
    """The direction of the mean of the vectors nearest to each centroid; the centroid itself where there are none."""
    sums = np.zeros(centroids.vectors.shape)
    for first in range(0, len(sample), _AT_ONCE):
        part = sample[first : first + _AT_ONCE]
        found = centroids.nearest(part)
        order = np.argsort(found, kind="stable")
        numbers, starts = np.unique(found[order], return_index=True)
        sums[numbers] += np.add.reduceat(part[order], starts, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: Vectors = np.where(lengths > 0, sums / np.where(lengths > 0, lengths, 1.0), centroids.vectors).astype(np.float32)
    return means


def _shares(sizes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Share ``count`` out in proportion to ``sizes``, nobody more than its size; ``count`` is at most their sum."""
    exact = sizes * (count / sizes.sum())
    shares = np.minimum(np.floor(exact).astype(np.int64), sizes)
    rest = np.argsort(np.where(shares < sizes, shares - exact, np.inf), kind="stable")[: count - shares.sum()]
    shares[rest] += 1
    found: NDArray[np.int64] = shares
    return found


def _blockwise_argmax(tokens: Vectors, vectors: Vectors) -> NDArray[np.int64]:
    found = np.zeros(len(tokens), np.int64)
    size = max(1, 2**25 // len(vectors))
    for first in range(0, len(tokens), size):
        found[first : first + size] = (tokens[first : first + size] @ vectors.T).argmax(axis=1)
    return found
