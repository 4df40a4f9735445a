"""The residual codec of ColBERTv2 (Santhanam et al., NAACL 2022, https://arxiv.org/abs/2112.01488), in exact arithmetic.

A token is stored as the number of its nearest centroid and, per dimension, 2 or 4 bits for the residual: which of 4 or 16
buckets it falls into. ColBERTv2 cuts the buckets at quantiles; here they start there and are then optimised for the least
error, which kept 0.96 instead of 0.95 of the exact top 10 at 4 bits, and 0.90 instead of 0.86 at 2 (3,000 passages of
Wikipedia, MiniLM token by token).

Vectors are compared in whole units, about 4,090 to a length of 1, which changes an inner product by about 0.0001. Products and
their sums then stay below 2**24 units, where float32 is exact in any order of additions. So a score is the same to the last bit
on any number of threads, in any batch, compiled or not, and equal passages have equal scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.exact_kmeans import best_products, directions, means_of, spherical_kmeans, units_of

# Cuts lists of passages into blocks with a limited number of tokens, or into parts with as many tokens each.


def blocks_of(rows: Rows, offsets: Rows, most: int) -> Iterator[slice]:
    """Cut a list of passages into slices with at most ``most`` tokens; a longer passage is a slice of its own.

    Args:
        rows: rows of the passages.
        offsets: ``[passages + 1]``, where the tokens of each passage begin.
        most: the most tokens in a slice.
    """
    ends = np.cumsum(offsets[rows + 1] - offsets[rows])
    begin = 0
    while begin < len(rows):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield slice(begin, end)
        begin = end


def parts_of(rows: Rows, offsets: Rows, count: int) -> list[slice]:
    """Cut a list of passages into ``count`` slices with about as many tokens each; some may be empty.

    Args:
        rows: rows of the passages.
        offsets: ``[passages + 1]``, where the tokens of each passage begin.
        count: how many slices.
    """
    ends = np.cumsum(offsets[rows + 1] - offsets[rows])
    cuts = np.searchsorted(ends, ends[-1:] * np.arange(1, count) // count, side="right").tolist()
    return [slice(begin, end) for begin, end in pairwise([0, *cuts, len(rows)])]


# Centroids of token vectors: training, and search for the nearest.
#
# Vectors and centroids have length 1, so nearest means the largest inner product. Up to ``FLAT_UP_TO`` centroids are all
# compared. More are trained and searched in two levels: groups first, then the centroids of the nearest groups, which costs
# only the square root and sometimes gives the second nearest centroid. Rounds of k-means over all of them then restore most of
# the lost quality. Everything is in whole units (``exact_kmeans``), so that results are the same bytes on any number of threads
# and any CPU.

FLAT_UP_TO = 2048

_ITERATIONS = 4  # as in ColBERTv2
_REFINEMENTS = 2
_GROUPS_LOOKED_AT = 8
_AT_ONCE = 16_384
_ROOM = 8  # fewer units than for centroids, because vectors read from 16 bits may be slightly longer than 1


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
        # the keys of a token are distinct: the order of equal ones would depend on the CPU
        keys = (tokens @ self._groups.T).astype(np.float64) * n_groups - np.arange(n_groups)
        near = np.argpartition(keys, n_groups - _GROUPS_LOOKED_AT, axis=1)[:, n_groups - _GROUPS_LOOKED_AT :]
        order = np.argsort(near, axis=None, kind="stable")
        looking = np.searchsorted(near.ravel()[order], np.arange(n_groups + 1))
        rows = order // _GROUPS_LOOKED_AT
        best, nearest = np.full(len(tokens), -np.inf, np.float32), np.zeros(len(tokens), np.int64)
        for group in range(n_groups):
            begin, end = self._bounds[group], self._bounds[group + 1]
            members = rows[looking[group] : looking[group + 1]]
            if begin == end or len(members) == 0:
                continue
            products = tokens[members] @ self.vectors[begin:end].T
            places = products.argmax(axis=1)
            values = products[np.arange(len(members)), places]
            better = values > best[members]
            best[members[better]], nearest[members[better]] = values[better], places[better] + begin
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
    """Make trained centroids searchable, with groups if they save more time than they cost.

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


Bits = Literal[2, 4]
Codes = NDArray[np.unsignedinteger]

_WEIGHT_FRACTIONS = 2**8  # so that lengths of decoded vectors are exact in float64
_MOST_HELD_OUT = 50_000
_BUCKET_ROUNDS = 40


def in_units(vectors: Vectors) -> Vectors:
    """Return vectors of length 1 in whole units, as float32."""
    return np.rint(vectors.astype(np.float64) * units_of(vectors.shape[1])).astype(np.float32)


def packed_size(dimension: int, bits: int) -> int:
    """Bytes of a residual."""
    return -(-dimension * bits // 8)


def code_type(n_centroids: int) -> type[np.uint16] | type[np.uint32]:
    """The narrowest type for the numbers of this many centroids."""
    return np.uint16 if n_centroids <= 2**16 else np.uint32


@dataclass(frozen=True)
class Codec:
    """Turns codes back into vectors.

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
        """Return whether both codecs decode equal codes to equal vectors."""
        return np.array_equal(self.centroids, other.centroids) and np.array_equal(self.weights, other.weights)

    def table(self) -> Vectors:
        """``[256, dimensions in a byte]``: the residuals encoded in each byte."""
        shifts = np.arange(8 // self.bits) * self.bits
        table: Vectors = self.weights[(np.arange(256)[:, None] >> shifts) & (len(self.weights) - 1)]
        return table


@dataclass(frozen=True)
class Compressor:
    """A codec with the data for compressing, which an index does not store.

    Args:
        codec: the codec.
        centroids: its centroids, searchable.
        cutoffs: ``[2 ** bits - 1]`` ascending, in units: the boundaries of buckets.
    """

    codec: Codec
    centroids: Centroids
    cutoffs: Vectors

    def compress(self, tokens: Vectors) -> tuple[Codes, NDArray[np.uint8]]:
        """Return the centroid of each token, ``[tokens]``, and its residual, ``[tokens, bytes]``."""
        numbers = self.centroids.nearest(in_token_units(tokens))
        residuals = _residuals(tokens, numbers, self.codec.centroids)
        bits, per_byte = self.codec.bits, 8 // self.codec.bits
        size = packed_size(tokens.shape[1], bits)
        buckets = np.zeros((len(tokens), size * per_byte), np.uint8)
        for cutoff in self.cutoffs:
            buckets[:, : tokens.shape[1]] += residuals > cutoff
        packed = np.zeros((len(tokens), size), np.uint8)
        for position in range(per_byte):
            packed |= buckets[:, position::per_byte] << np.uint8(position * bits)
        return numbers.astype(code_type(len(self.codec.centroids))), packed


def train_compressor(sample: Vectors, n_centroids: int, bits: Bits, seed: int) -> Compressor:
    """Train a codec.

    Args:
        sample: ``[tokens, dimension]`` of length 1, in random order; at least ``n_centroids``. Up to one in twenty is held
            out of the k-means, as in ColBERTv2, because the tokens that centroids were fitted to have too small residuals.
            If there is no token at all, nothing is trained.
        n_centroids: how many centroids to train.
        bits: bits per dimension of a residual.
        seed: seed of the k-means.
    """
    dimension = sample.shape[1]
    if len(sample) == 0:
        nothing = Codec(np.zeros((n_centroids, dimension), np.int16), np.zeros(2**bits, np.float32))
        none = Centroids(np.zeros((n_centroids, dimension), np.float32), np.zeros((1, dimension), np.float32), np.zeros(1, int))
        return Compressor(nothing, none, np.zeros(2**bits - 1, np.float32))
    n_held = min(len(sample) // 20, _MOST_HELD_OUT, len(sample) - n_centroids)
    trained = train_centroids(in_token_units(sample[n_held:]), n_centroids, seed)
    centroids = trained.vectors.astype(np.int16)
    held_out = sample[: n_held or None]
    residuals = np.sort(_residuals(held_out, trained.nearest(in_token_units(held_out)), centroids), axis=None)
    weights, cutoffs = _buckets(residuals, 2**bits)
    return Compressor(Codec(centroids, weights), trained, cutoffs)


def compressor_of(codec: Codec, n_tokens: int, seed: int) -> Compressor:
    """Return a compressor for more tokens of an index, made from the codec that the index stores.

    Args:
        codec: codec of the index.
        n_tokens: how many tokens there are to compress.
        seed: seed of the k-means that groups centroids.
    """
    vectors = codec.centroids.astype(np.float32)
    return Compressor(codec, regrouped(vectors, n_tokens, seed), (codec.weights[1:] + codec.weights[:-1]) / np.float32(2))


def _buckets(residuals: Vectors, count: int) -> tuple[Vectors, Vectors]:
    """Weights and cutoffs of the buckets with the least error: k-means in one dimension, starting from quantiles.

    See Lloyd, 1982, and Max, 1960.

    Args:
        residuals: ascending.
        count: number of buckets.
    """
    sums = np.append(0.0, np.cumsum(residuals, dtype=np.float64))
    ends = np.arange(count + 1) * residuals.size // count
    weights = np.zeros(count)
    for _ in range(_BUCKET_ROUNDS):
        sizes = np.diff(ends)
        weights = np.where(sizes > 0, np.diff(sums[ends]) / np.maximum(sizes, 1), weights)
        cutoffs = ((weights[1:] + weights[:-1]) / 2).astype(np.float32)
        ends = np.concatenate([[0], np.searchsorted(residuals, cutoffs, side="right"), [residuals.size]])
    return np.sort(np.rint(weights * _WEIGHT_FRACTIONS) / _WEIGHT_FRACTIONS).astype(np.float32), np.sort(cutoffs)


def _residuals(tokens: Vectors, numbers: NDArray[np.int64], centroids: NDArray[np.int16]) -> Vectors:
    difference: Vectors = tokens * np.float32(units_of(tokens.shape[1])) - centroids[numbers]
    return difference.astype(np.float32, copy=False)
