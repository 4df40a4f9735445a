"""The inner loops of compressed search, compiled; importing it needs numba, which compiles each at its first call.

:mod:`nlp_retrieval.retrievers.colbert.steps` documents each function and its arguments.
"""
# ruff: noqa: D103

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.blocks import blocks_of
from nlp_retrieval.retrievers.colbert.codec import Codes
from nlp_retrieval.retrievers.exact_kmeans import units_of

_TOKENS_AT_ONCE = 4096  # decoded, they stay in the cache
_ROUNDING = np.float32(1.5 * 2**23)  # adding and subtracting it rounds to whole numbers, half to even, as rint does


@njit(nogil=True)
def closest_centroids(scores: Vectors, nprobe: int, probed: Mask) -> None:
    n_centroids, n_tokens = scores.shape
    best = np.full((n_tokens, nprobe), -np.inf, np.float32)
    numbers = np.zeros((n_tokens, nprobe), np.int64)
    for centroid in range(n_centroids):
        for token in range(n_tokens):
            score = scores[centroid, token]
            if score > best[token, nprobe - 1]:
                place = nprobe - 1
                while place > 0 and best[token, place - 1] < score:
                    best[token, place] = best[token, place - 1]
                    numbers[token, place] = numbers[token, place - 1]
                    place -= 1
                best[token, place] = score
                numbers[token, place] = centroid
    for token in range(n_tokens):
        for place in range(nprobe):
            probed[numbers[token, place]] = True


@njit(nogil=True)
def interaction(scores: Vectors, kept: Mask, codes: Codes, offsets: Rows, rows: Rows, sums: Scores) -> None:
    n_tokens = scores.shape[1]
    best = np.empty(n_tokens, np.float32)
    for number in range(len(rows)):
        best[:] = -np.inf
        for position in range(offsets[rows[number]], offsets[rows[number] + 1]):
            centroid = codes[position]
            if kept[centroid]:
                for token in range(n_tokens):
                    best[token] = max(best[token], scores[centroid, token])
        sums[number] = 0.0
        for token in range(n_tokens):
            sums[number] += best[token]


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
    """As in :mod:`~nlp_retrieval.retrievers.colbert.steps`; the products are left to BLAS."""
    units = units_of(len(query))
    for block in blocks_of(rows, offsets, _TOKENS_AT_ONCE):
        part = rows[block]
        vectors = np.empty((int((offsets[part + 1] - offsets[part]).sum()), len(query)), np.float32)
        _decode(centroids, table, codes, residuals, offsets, part, units, vectors)
        _add_best(vectors @ query, offsets, part, sums[block])


@njit(nogil=True)
def _decode(
    centroids: Vectors,
    table: Vectors,
    codes: Codes,
    residuals: NDArray[np.uint8],
    offsets: Rows,
    rows: Rows,
    units: float,
    vectors: Vectors,
) -> None:
    dimension = centroids.shape[1]
    whole = dimension // 4 * 4
    per_byte = table.shape[1]
    vector = np.zeros(residuals.shape[1] * per_byte, np.float32)
    number = 0
    for row in rows:
        for position in range(offsets[row], offsets[row + 1]):
            for place in range(residuals.shape[1]):
                byte = residuals[position, place]
                if per_byte == 4:
                    vector[4 * place] = table[byte, 0]
                    vector[4 * place + 1] = table[byte, 1]
                    vector[4 * place + 2] = table[byte, 2]
                    vector[4 * place + 3] = table[byte, 3]
                else:
                    vector[2 * place] = table[byte, 0]
                    vector[2 * place + 1] = table[byte, 1]
            centroid = codes[position]
            for place in range(dimension):
                vector[place] += centroids[centroid, place]
            first = second = third = fourth = 0.0
            for place in range(0, whole, 4):  # four independent sums are faster than one; they are exact in any order
                first += np.float64(vector[place]) * np.float64(vector[place])
                second += np.float64(vector[place + 1]) * np.float64(vector[place + 1])
                third += np.float64(vector[place + 2]) * np.float64(vector[place + 2])
                fourth += np.float64(vector[place + 3]) * np.float64(vector[place + 3])
            for place in range(whole, dimension):
                first += np.float64(vector[place]) * np.float64(vector[place])
            squares = first + second + third + fourth
            factor = np.float32(units / math.sqrt(squares)) if squares > 0 else np.float32(0)
            for place in range(dimension):
                vectors[number, place] = (vector[place] * factor + _ROUNDING) - _ROUNDING
            number += 1


@njit(nogil=True)
def _add_best(products: Vectors, offsets: Rows, rows: Rows, sums: Scores) -> None:
    best = np.empty(products.shape[1], np.float32)
    number = 0
    for place in range(len(rows)):
        best[:] = -np.inf
        for _ in range(offsets[rows[place]], offsets[rows[place] + 1]):
            for token in range(len(best)):
                best[token] = max(best[token], products[number, token])
            number += 1
        sums[place] = 0.0
        for token in range(len(best)):
            sums[place] += best[token]
