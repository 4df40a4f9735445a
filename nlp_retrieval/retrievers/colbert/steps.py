"""The inner loops of compressed search, in numpy. ``kernel`` has the same functions compiled, with the same results.

Everything is in units (see ``codec``), so that sums are exact and their order does not matter.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, entries_of, offsets_of, top_k_mask
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.codec import Codes, blocks_of
from nlp_retrieval.retrievers.exact_kmeans import units_of

_CODES_AT_ONCE = 2**17
_TOKENS_AT_ONCE = 2**14


def centroid_scores(query: Vectors, centroids: Vectors, scores: Vectors) -> None:
    """Compare centroids with the tokens of a query.

    Args:
        query: ``[dimension, query tokens]``.
        centroids: ``[centroids, dimension]``.
        scores: ``[centroids, query tokens]``, receives their inner products.
    """
    np.matmul(centroids, query, out=scores)


def closest_centroids(scores: Vectors, nprobe: int, probed: Mask) -> None:
    """Mark the best centroids of each token of a query; of equal ones those with the lowest numbers.

    Args:
        scores: ``[centroids, query tokens]``.
        nprobe: number per token; at most the number of centroids.
        probed: ``[centroids]``, receives True.
    """
    for values in np.ascontiguousarray(scores.T):
        probed |= top_k_mask(values, nprobe)


def close_centroids(scores: Vectors, least: np.float32, close: Mask) -> None:
    """Mark the centroids that are close to a token of a query.

    Args:
        scores: ``[centroids, query tokens]``.
        least: lowest score of a close centroid.
        close: ``[centroids]``, receives True.
    """
    close |= scores.max(axis=1) >= least


def interaction(scores: Vectors, kept: Mask, codes: Codes, offsets: Rows, rows: Rows, sums: Scores) -> None:
    """Score passages by the centroids of their tokens: the sum, over the query's tokens, of the best score.

    Args:
        scores: ``[centroids, query tokens]``.
        kept: ``[centroids]``; tokens of others are skipped.
        codes: ``[tokens]``.
        offsets: ``[passages + 1]``.
        rows: passages, each with a token of a kept centroid.
        sums: ``[rows]``, receives their scores.
    """
    by_token = np.ascontiguousarray(scores.T)
    for block in blocks_of(rows, offsets, _CODES_AT_ONCE):
        part = rows[block]
        centroids = codes[entries_of(offsets, part)[0]]
        owner = np.repeat(np.arange(len(part)), offsets[part + 1] - offsets[part])
        counted = kept[centroids]
        starts = np.searchsorted(owner[counted], np.arange(len(part)))
        best = np.maximum.reduceat(by_token[:, centroids[counted]], starts, axis=1)
        sums[block] = best.sum(axis=0, dtype=np.float64)


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
        query: ``[dimension, query tokens]``.
        centroids: ``[centroids, dimension]``.
        table: ``[256, dimensions in a byte]``, the residuals encoded in each byte.
        codes: ``[tokens]``.
        residuals: ``[tokens, bytes]``.
        offsets: ``[passages + 1]``.
        rows: passages, each with a token.
        sums: ``[rows]``, receives their scores.
    """
    dimension = centroids.shape[1]
    units = units_of(dimension)
    for block in blocks_of(rows, offsets, _TOKENS_AT_ONCE):
        part = rows[block]
        positions = entries_of(offsets, part)[0]
        vectors = centroids[codes[positions]]
        vectors += table[residuals[positions]].reshape(len(positions), -1)[:, :dimension]
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        factors = np.divide(units, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0)
        vectors *= factors.astype(np.float32)[:, None]
        products = query.T @ np.rint(vectors, out=vectors).T
        best = np.maximum.reduceat(products, offsets_of(offsets[part + 1] - offsets[part])[:-1], axis=1)
        sums[block] = best.sum(axis=0, dtype=np.float64)
