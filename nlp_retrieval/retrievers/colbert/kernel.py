"""The inner loops of compressed search, compiled; importing it needs numba, which compiles each at its first call.

:mod:`nlp_retrieval.retrievers.colbert.steps` documents each function and its arguments.

Products are compiled too, not left to BLAS, whose threads spin while they wait for one another at every product: this costs far
more than the product if another process or search uses a core. Here no thread waits, and the caller divides the work. Sums are
exact in any order (see ``codec``), so those of products may be rearranged: ``_ANY_ORDER``.
"""
# ruff: noqa: D103

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.codec import Codes
from nlp_retrieval.retrievers.exact_kmeans import units_of

_DECODED_AT_ONCE = 32  # tokens, which fit into the cache with the query
_ROUNDING = np.float32(1.5 * 2**23)  # adding and subtracting it rounds to whole numbers, half to even, as rint does
_ANY_ORDER = {"reassoc", "contract", "nsz"}
_NO_NAN = {"nnan", "nsz"}  # with NaN in mind, comparing takes four times as long


@njit(nogil=True)
def closest_centroids(scores: Vectors, nprobe: int, probed: Mask) -> None:
    n_centroids, n_tokens = scores.shape
    best = np.full((n_tokens, nprobe), -np.inf, np.float32)
    numbers = np.zeros((n_tokens, nprobe), np.int64)
    for centroid in range(n_centroids):
        for token in range(n_tokens):
            score = scores[centroid, token]
            if score > best[token, nprobe - 1]:
                rank = nprobe - 1
                while rank > 0 and best[token, rank - 1] < score:
                    best[token, rank] = best[token, rank - 1]
                    numbers[token, rank] = numbers[token, rank - 1]
                    rank -= 1
                best[token, rank] = score
                numbers[token, rank] = centroid
    for token in range(n_tokens):
        for rank in range(nprobe):
            probed[numbers[token, rank]] = True


@njit(nogil=True, fastmath=_NO_NAN)
def close_centroids(scores: Vectors, least: np.float32, close: Mask) -> None:
    for centroid in range(len(scores)):
        highest = scores[centroid, 0]
        for token in range(1, scores.shape[1]):
            highest = max(highest, scores[centroid, token])
        close[centroid] |= highest >= least


@njit(nogil=True, fastmath=_NO_NAN)
def interaction(scores: Vectors, kept: Mask, codes: Codes, offsets: Rows, rows: Rows, sums: Scores) -> None:
    n_tokens = scores.shape[1]
    best = np.empty(n_tokens, np.float32)
    for number in range(len(rows)):
        best[:] = -np.inf
        position, end = offsets[rows[number]], offsets[rows[number] + 1]
        while position < end:  # the next four that are kept, the last of them again if there are fewer
            count = 0
            a = b = c = d = np.int64(0)
            while position < end and count < 4:
                centroid = np.int64(codes[position])
                position += 1
                if kept[centroid]:
                    a, b, c, d = centroid, a, b, c
                    count += 1
            if count == 0:
                break
            b, c, d = b if count > 1 else a, c if count > 2 else a, d if count > 3 else a
            for token in range(n_tokens):
                first, second = max(scores[a, token], scores[b, token]), max(scores[c, token], scores[d, token])
                best[token] = max(best[token], first, second)
        sums[number] = 0.0
        for token in range(n_tokens):
            sums[number] += best[token]


def centroid_scores(query: Vectors, centroids: Vectors, scores: Vectors) -> None:
    _multiply(centroids, len(centroids), np.ascontiguousarray(query.T), scores)


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
    by_token, pairs = np.ascontiguousarray(query.T), table.view(np.uint64)
    _maxsim(by_token, centroids, pairs, codes, residuals, offsets, rows, units_of(len(query)), sums)


@njit(nogil=True)
def _maxsim(
    query: Vectors,
    centroids: Vectors,
    pairs: NDArray[np.uint64],
    codes: Codes,
    residuals: NDArray[np.uint8],
    offsets: Rows,
    rows: Rows,
    units: float,
    sums: Scores,
) -> None:
    n_tokens, dimension = query.shape
    spread = np.zeros((_DECODED_AT_ONCE, residuals.shape[1] * pairs.shape[1]), np.uint64)
    vectors, squares = np.zeros((_DECODED_AT_ONCE, dimension), np.float32), np.zeros(_DECODED_AT_ONCE)
    products = np.empty((_DECODED_AT_ONCE, n_tokens), np.float32)
    best = np.empty(n_tokens, np.float32)
    for number in range(len(rows)):
        best[:] = -np.inf
        last = offsets[rows[number] + 1]
        for first in range(offsets[rows[number]], last, _DECODED_AT_ONCE):
            count = min(_DECODED_AT_ONCE, last - first)
            _spread(pairs, residuals[first : first + count], spread)
            _decode(spread.view(np.float32), centroids, codes[first : first + count], vectors, squares)
            _scale(vectors, squares, count, units)
            _multiply(vectors, count, query, products)
            _keep_best(products, count, best)
        sums[number] = 0.0
        for token in range(n_tokens):
            sums[number] += best[token]


@njit(nogil=True)
def _spread(pairs: NDArray[np.uint64], residuals: NDArray[np.uint8], spread: NDArray[np.uint64]) -> None:
    """The residuals of tokens, in units. Two numbers are copied at once; all tokens before any is read, which avoids a wait."""
    for number in range(len(residuals)):
        if pairs.shape[1] == 2:
            for column in range(residuals.shape[1]):
                byte = residuals[number, column]
                spread[number, 2 * column] = pairs[byte, 0]
                spread[number, 2 * column + 1] = pairs[byte, 1]
        else:
            for column in range(residuals.shape[1]):
                spread[number, column] = pairs[residuals[number, column], 0]


@njit(nogil=True, fastmath=_ANY_ORDER)
def _decode(residuals: Vectors, centroids: Vectors, codes: Codes, vectors: Vectors, squares: Scores) -> None:
    """Tokens before they have a length of 1, and the squares of their lengths; no token waits for another's centroid."""
    for number in range(len(codes)):
        code, total = codes[number], 0.0
        for column in range(vectors.shape[1]):
            value = residuals[number, column] + centroids[code, column]
            vectors[number, column] = value
            total += np.float64(value) * np.float64(value)
        squares[number] = total


@njit(nogil=True)
def _scale(vectors: Vectors, squares: Scores, count: int, units: float) -> None:
    for number in range(count):
        factor = np.float32(units / math.sqrt(squares[number])) if squares[number] > 0 else np.float32(0)
        for column in range(vectors.shape[1]):
            vectors[number, column] = (vectors[number, column] * factor + _ROUNDING) - _ROUNDING


@njit(nogil=True, fastmath=_ANY_ORDER)
def _multiply(vectors: Vectors, count: int, query: Vectors, products: Vectors) -> None:
    """Inner products of ``vectors[:count]`` with query tokens; two by four at once, so that each number read is used often."""
    n_tokens, dimension = query.shape
    for a in range(0, count, 2):
        b = min(a + 1, count - 1)
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
def _keep_best(products: Vectors, count: int, best: Vectors) -> None:
    last = count - 1
    for a in range(0, count, 4):
        b, c, d = min(a + 1, last), min(a + 2, last), min(a + 3, last)
        for token in range(len(best)):
            first, second = max(products[a, token], products[b, token]), max(products[c, token], products[d, token])
            best[token] = max(best[token], first, second)
