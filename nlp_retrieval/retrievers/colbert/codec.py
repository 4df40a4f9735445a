"""The residual codec of ColBERTv2 (Santhanam et al., NAACL 2022, https://arxiv.org/abs/2112.01488), in exact arithmetic.

A token is stored as the number of its nearest centroid and, per dimension, 2 or 4 bits for the residual: which of 4 or 16
buckets it falls into. ColBERTv2 cuts the buckets at quantiles; here they start there and are then optimised for the least
error, which kept 0.96 instead of 0.95 of the exact top 10 at 4 bits, and 0.90 instead of 0.86 at 2 (3,000 passages of
Wikipedia, MiniLM token by token).

Vectors are compared in whole units, about 4,090 to a length of 1, which changes an inner product by about 0.0001. Products
and their sums then stay below 2**24 units, where float32 is exact in any order of additions. So a score is the same to the
last bit on any number of threads, whatever else is in a batch, compiled or not, and equal passages have equal scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.centroids import Centroids, in_token_units, regrouped, train_centroids
from nlp_retrieval.retrievers.exact_kmeans import units_of

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
    """The narrowest type for the numbers of so many centroids."""
    return np.uint16 if n_centroids <= 2**16 else np.uint32


@dataclass(frozen=True)
class Codec:
    """Turns codes back into vectors.

    Args:
        centroids: ``[centroids, dimension]``, in units.
        weights: ``[2 ** bits]`` ascending, in units: the residual that each bucket stands for.
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
        """Whether both codecs give the same codes the same meaning."""
        return np.array_equal(self.centroids, other.centroids) and np.array_equal(self.weights, other.weights)

    def table(self) -> Vectors:
        """``[256, dimensions in a byte]``: the residuals that a byte stands for."""
        shifts = np.arange(8 // self.bits) * self.bits
        table: Vectors = self.weights[(np.arange(256)[:, None] >> shifts) & (len(self.weights) - 1)]
        return table


@dataclass(frozen=True)
class Compressor:
    """A codec together with what compressing needs, which an index does not store.

    Args:
        codec: the codec.
        centroids: its centroids, searchable.
        cutoffs: ``[2 ** bits - 1]`` ascending, in units: where one bucket ends and the next begins.
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
        for place in range(per_byte):
            packed |= buckets[:, place::per_byte] << np.uint8(place * bits)
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
    held = sample[: n_held or None]
    residuals = np.sort(_residuals(held, trained.nearest(in_token_units(held)), centroids), axis=None)
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
