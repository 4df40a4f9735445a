"""The inner loops of compressed search, compiled by numba at their first call; they release the interpreter's lock.

Products are compiled too, not left to BLAS, whose threads spin while they wait for one another: that costs more than the
product if another search uses a core. The score of a passage is computed by the same operations in every search, so that equal
passages have equal scores.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.codec import Codes

_AT_ONCE = 32  # decoded tokens, which fit into the cache with the query
_FAST = {"reassoc", "contract", "nsz", "nnan"}
_NO_NAN = {"nsz", "nnan"}  # with NaN in mind, comparing takes four times as long


@njit(nogil=True, fastmath=_FAST)
def multiply(vectors: Vectors, query: Vectors, products: Vectors) -> None:
    """Write the inner product of each vector with each token of a query; two by four at once, to read each number rarely.

    Args:
        vectors: ``[vectors, dimension]``, or wider; not cut to it, since it is contiguous rows that compile to quick loops.
        query: ``[query tokens, dimension]``.
        products: ``[vectors, query tokens]``, is written.
    """
    n_vectors, (n_tokens, dimension) = len(vectors), query.shape
    for a in range(0, n_vectors, 2):
        b = min(a + 1, n_vectors - 1)
        for p in range(0, n_tokens, 4):
            q, r, s = min(p + 1, n_tokens - 1), min(p + 2, n_tokens - 1), min(p + 3, n_tokens - 1)
            ap = aq = ar = as_ = bp = bq = br = bs = np.float32(0)
            for column in range(dimension):
                of_a, of_b = vectors[a, column], vectors[b, column]
                ap += of_a * query[p, column]
                aq += of_a * query[q, column]
                ar += of_a * query[r, column]
                as_ += of_a * query[s, column]
                bp += of_b * query[p, column]
                bq += of_b * query[q, column]
                br += of_b * query[r, column]
                bs += of_b * query[s, column]
            products[a, p], products[a, q], products[a, r], products[a, s] = ap, aq, ar, as_
            products[b, p], products[b, q], products[b, r], products[b, s] = bp, bq, br, bs


@njit(nogil=True, fastmath=_NO_NAN)
def interaction(scores: Vectors, kept: Mask, codes: Codes, offsets: Rows, rows: Rows, sums: Scores) -> None:
    """Score passages by the centroids of their tokens: the sum, over the query's tokens, of the best score.

    Args:
        scores: ``[centroids, query tokens]``.
        kept: ``[centroids]``; tokens of others are skipped.
        codes: ``[tokens]``.
        offsets: ``[passages + 1]``.
        rows: passages, each with a token of a kept centroid.
        sums: ``[rows]``, is written.
    """
    best = np.empty(scores.shape[1], np.float32)
    for number in range(len(rows)):
        best[:] = -np.inf
        for position in range(offsets[rows[number]], offsets[rows[number] + 1]):
            centroid = codes[position]
            if kept[centroid]:
                for token in range(len(best)):
                    best[token] = max(best[token], scores[centroid, token])
        sums[number] = 0.0
        for token in range(len(best)):
            sums[number] += best[token]


@njit(nogil=True, fastmath=_NO_NAN)
def maxsim(
    query: Vectors,
    centroids: Vectors,
    table: Vectors,
    codes: Codes,
    residuals: NDArray[np.uint8],
    offsets: Rows,
    rows: Rows,
    sums: Scores,
) -> None:
    """Score passages by their tokens, decoded and scaled to length 1: the sum, over the query's tokens, of the best score.

    Args:
        query: ``[query tokens, dimension]``.
        centroids: ``[centroids, dimension]``.
        table: ``[256, dimensions in a byte]``, the residuals encoded in each byte.
        codes: ``[tokens]``.
        residuals: ``[tokens, bytes]``.
        offsets: ``[passages + 1]``.
        rows: passages, each with a token.
        sums: ``[rows]``, is written.
    """
    n_tokens = len(query)
    vectors = np.empty((_AT_ONCE, residuals.shape[1] * table.shape[1]), np.float32)
    products = np.empty((_AT_ONCE, n_tokens), np.float32)
    best = np.empty(n_tokens, np.float32)
    for number in range(len(rows)):
        best[:] = -np.inf
        end = offsets[rows[number] + 1]
        for first in range(offsets[rows[number]], end, _AT_ONCE):
            count = min(_AT_ONCE, end - first)
            _look_up(table.view(np.uint64), residuals[first : first + count], vectors.view(np.uint64))
            _decode(vectors, centroids, codes[first : first + count])
            multiply(vectors[:count], query, products)
            for place in range(count):
                for token in range(n_tokens):
                    best[token] = max(best[token], products[place, token])
        sums[number] = 0.0
        for token in range(n_tokens):
            sums[number] += best[token]


@njit(nogil=True)
def _look_up(table: NDArray[np.uint64], residuals: NDArray[np.uint8], looked_up: NDArray[np.uint64]) -> None:
    """Write the residuals encoded in each byte; two float32 are copied as one uint64, which is quicker."""
    for place in range(len(residuals)):
        for column in range(residuals.shape[1]):
            byte = residuals[place, column]
            if table.shape[1] == 2:
                looked_up[place, 2 * column] = table[byte, 0]
                looked_up[place, 2 * column + 1] = table[byte, 1]
            else:
                looked_up[place, column] = table[byte, 0]


@njit(nogil=True, fastmath=_FAST)
def _decode(vectors: Vectors, centroids: Vectors, codes: Codes) -> None:
    """Add the centroid of each token to its residual, and scale the sum to length 1."""
    for place in range(len(codes)):
        code, square = codes[place], np.float32(0)
        for column in range(centroids.shape[1]):
            value = vectors[place, column] + centroids[code, column]
            vectors[place, column] = value
            square += value * value
        factor = np.float32(1) / np.sqrt(square) if square > 0 else np.float32(0)
        for column in range(centroids.shape[1]):
            vectors[place, column] *= factor
