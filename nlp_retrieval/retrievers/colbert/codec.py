"""The residual codec of ColBERTv2 (Santhanam et al., NAACL 2022, https://arxiv.org/abs/2112.01488).

A token is stored as the number of its nearest centroid and, per dimension, 2 or 4 bits for the residual: which of 4 or 16
buckets it falls into. ColBERTv2 cuts the buckets at quantiles; here they start there and are then optimised for the least
error, which kept 0.96 instead of 0.95 of the exact top 10 at 4 bits, and 0.90 instead of 0.86 at 2 (3,000 passages of
Wikipedia, MiniLM token by token).

Vectors are in whole units, 4,000 to a length of 1. Sums of their products stay below 2**24, where float32 is exact in any order
of additions: equal tokens have the same nearest centroid wherever they stand in a matrix product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, offsets_of
from nlp_retrieval.encoders.base import Vectors

Bits = Literal[2, 4]
Codes = NDArray[np.unsignedinteger]

UNIT = np.float32(4000)

_ROUNDS = 4  # of k-means, as in ColBERTv2
_FLAT_UP_TO = 2048
_GROUPS_LOOKED_AT = 8
_AT_ONCE = 16_384
_SCORES_AT_ONCE = 2**22
_MOST_HELD_OUT = 50_000
_BUCKET_ROUNDS = 40


def in_units(vectors: Vectors) -> Vectors:
    """Return vectors of length 1 in whole units, as float32."""
    units: Vectors = np.rint(vectors * UNIT)
    return units


def packed_size(dimension: int, bits: int) -> int:
    """Bytes of a residual."""
    return -(-dimension * bits // 8)


def code_type(n_centroids: int) -> type[np.uint16] | type[np.uint32]:
    """The narrowest type for the numbers of this many centroids."""
    return np.uint16 if n_centroids <= 2**16 else np.uint32


@dataclass(frozen=True)
class Codec:
    """Turns tokens into codes, and codes back into tokens.

    Args:
        centroids: ``[centroids, dimension]``, in units.
        weights: ``[2 ** bits]`` ascending, in units: the residual of each bucket.
    """

    centroids: NDArray[np.int16]
    weights: Vectors

    @property
    def bits(self) -> int:
        return (len(self.weights) - 1).bit_length()

    @property
    def dimension(self) -> int:
        return int(self.centroids.shape[1])

    def equals(self, other: Codec) -> bool:
        """Return whether both codecs decode equal codes to equal tokens."""
        return np.array_equal(self.centroids, other.centroids) and np.array_equal(self.weights, other.weights)

    @cached_property
    def floats(self) -> Vectors:
        """The centroids as float32."""
        return self.centroids.astype(np.float32)

    @cached_property
    def table(self) -> Vectors:
        """``[256, dimensions in a byte]``: the residuals encoded in each byte."""
        shifts = np.arange(8 // self.bits) * self.bits
        table: Vectors = self.weights[(np.arange(256)[:, None] >> shifts) & (len(self.weights) - 1)]
        return table

    def encode(self, tokens: Vectors) -> tuple[Codes, NDArray[np.uint8]]:
        """Return the centroid of each token of length 1, ``[tokens]``, and its residual, ``[tokens, bytes]``."""
        codes = self._nearest(in_units(tokens))
        residuals = tokens * UNIT - self.centroids[codes]
        per_byte = 8 // self.bits
        buckets = np.zeros((len(tokens), packed_size(self.dimension, self.bits) * per_byte), np.uint8)
        for cutoff in (self.weights[1:] + self.weights[:-1]) / np.float32(2):
            buckets[:, : self.dimension] += residuals > cutoff
        packed = np.zeros((len(tokens), buckets.shape[1] // per_byte), np.uint8)
        for place in range(per_byte):
            packed |= buckets[:, place::per_byte] << np.uint8(place * self.bits)
        return codes.astype(code_type(len(self.centroids))), packed

    def decode(self, codes: Codes, residuals: NDArray[np.uint8]) -> Vectors:
        """Return the tokens of length 1 that codes and residuals stand for, ``[tokens, dimension]``."""
        return _directions(self.centroids[codes] + self.table[residuals].reshape(len(codes), -1)[:, : self.dimension])

    @cached_property
    def _nearest(self) -> Nearest:
        return Nearest(self.floats)


def train_codec(sample: Vectors, n_centroids: int, bits: Bits, seed: int) -> Codec:
    """Train a codec on tokens of length 1, in random order, at least as many as centroids."""
    if not len(sample):
        return Codec(np.zeros((n_centroids, sample.shape[1]), np.int16), np.zeros(2**bits, np.float32))
    n_held = min(len(sample) // 20, _MOST_HELD_OUT, len(sample) - n_centroids)
    centroids = kmeans(in_units(sample[n_held:]), n_centroids, seed)
    held_out = sample[: n_held or None]
    residuals = held_out * UNIT - centroids[Nearest(centroids)(in_units(held_out))]
    return Codec(centroids.astype(np.int16), bucket_weights(np.sort(residuals, axis=None), 2**bits))


def bucket_weights(residuals: Vectors, count: int) -> Vectors:
    """What each bucket of ascending residuals stands for, with the least error (Lloyd, 1982, and Max, 1960)."""
    sums = np.append(0.0, np.cumsum(residuals, dtype=np.float64))
    ends = np.arange(count + 1) * residuals.size // count
    weights = np.zeros(count)
    for _ in range(_BUCKET_ROUNDS):
        sizes = np.diff(ends)
        weights = np.where(sizes > 0, np.diff(sums[ends]) / np.maximum(sizes, 1), weights)
        inner = np.searchsorted(residuals, ((weights[1:] + weights[:-1]) / 2).astype(np.float32), side="right")
        ends = np.concatenate([[0], inner, [residuals.size]])
    return np.sort(weights).astype(np.float32)


# Centroids of token vectors: training, and search for the nearest, by the largest inner product.


class Nearest:
    """Finds the nearest of some centroids."""

    def __init__(self, centroids: Vectors) -> None:
        self._centroids = centroids
        self._groups: Vectors | None = None
        if len(centroids) > _FLAT_UP_TO:
            self._groups = kmeans(centroids, math.isqrt(len(centroids)), seed=0)
            group_of = _best_products(centroids, self._groups)
            self._numbers = np.argsort(group_of, kind="stable")
            self._bounds = offsets_of(np.bincount(group_of, minlength=len(self._groups)))

    def __call__(self, tokens: Vectors) -> Rows:
        """Return the number of the nearest centroid of each token, ``[tokens]``; tokens are in units."""
        if self._groups is None:
            return _best_products(tokens, self._centroids)
        parts = [self._in_groups(tokens[at : at + _AT_ONCE], self._groups) for at in range(0, len(tokens), _AT_ONCE)]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _in_groups(self, tokens: Vectors, groups: Vectors) -> Rows:
        near = np.argpartition(tokens @ groups.T, -_GROUPS_LOOKED_AT, axis=1)[:, -_GROUPS_LOOKED_AT:]
        order = np.argsort(near, axis=None, kind="stable")
        looking = np.searchsorted(near.ravel()[order], np.arange(len(groups) + 1))
        best, nearest = np.full(len(tokens), -np.inf, np.float32), np.zeros(len(tokens), np.int64)
        for group in range(len(groups)):
            numbers = self._numbers[self._bounds[group] : self._bounds[group + 1]]
            members = order[looking[group] : looking[group + 1]] // _GROUPS_LOOKED_AT
            if len(numbers) and len(members):
                products = tokens[members] @ self._centroids[numbers].T
                places = products.argmax(axis=1)
                values = products[np.arange(len(members)), places]
                better = values > best[members]
                best[members[better]], nearest[members[better]] = values[better], numbers[places[better]]
        return nearest


def kmeans(sample: Vectors, count: int, seed: int) -> Vectors:
    """Return centroids of length 1, in units, of at least as many vectors: spherical k-means (Lloyd, 1982)."""
    centroids = sample[np.sort(np.random.default_rng(seed).choice(len(sample), count, replace=False))]
    for _ in range(_ROUNDS):
        numbers = Nearest(centroids)(sample)
        sums = np.zeros((sample.shape[1], count))
        for first in range(0, len(sample), _AT_ONCE):  # columns of a block stay in the cache
            part = slice(first, first + _AT_ONCE)
            for column, values in enumerate(np.ascontiguousarray(sample[part].T)):
                sums[column] += np.bincount(numbers[part], values, count)
        centroids = np.where(np.bincount(numbers, minlength=count)[:, None], in_units(_directions(sums.T)), centroids)
    return centroids


def _best_products(vectors: Vectors, others: Vectors) -> Rows:
    """For each vector, the other with the largest inner product; of equal ones the lowest number."""
    size = max(1, _SCORES_AT_ONCE // len(others))
    parts = [(vectors[first : first + size] @ others.T).argmax(axis=1) for first in range(0, len(vectors), size)]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _directions(vectors: NDArray[np.floating]) -> Vectors:
    """Vectors scaled to length 1; a zero vector stays zero."""
    lengths = np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled
