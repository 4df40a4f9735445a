"""Exact search by inner product over vectors in a file: blocks of a matrix product, cut by a rising threshold.

FAISS's flat index computes the same; this is faster (``make bench``), and knows which rows tie at the cut.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, offsets_of
from nlp_retrieval.encoders.base import Vectors

_PRODUCT_AT_ONCE = 16 * 2**20  # scores, 64 MB of them
_QUERIES_AT_ONCE = 512
_SORTING_COSTS = 60  # sorting a survivor costs about as much as selecting among this many scores


def exact_search(queries: Vectors, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
    """Return the k rows with the highest inner products per query; ties at the cut go to the lowest rows.

    Args:
        queries: ``[queries, dimension]``.
        vectors: ``[items, dimension]``, in memory or memory-mapped.
        k: at most this many per query.
        allowed: ``[items]``; only rows where it is True are returned. None allows all.
    """
    lists: list[tuple[Rows, NDArray[np.floating]]] = []
    for first in range(0, len(queries), _QUERIES_AT_ONCE):
        lists += _search_chunk(queries[first : first + _QUERIES_AT_ONCE], vectors, k, allowed)
    return Hits.from_lists(lists)


def _search_chunk(queries: Vectors, vectors: Vectors, k: int, allowed: Mask | None) -> list[tuple[Rows, NDArray[np.floating]]]:
    n_queries, n_items = len(queries), len(vectors)
    size = max(_PRODUCT_AT_ONCE // n_queries, 1)
    owner, rows, scores = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    threshold = np.full(n_queries, -np.inf, np.float32)
    for start in range(0, n_items, size):
        stop = min(start + size, n_items)
        product = queries @ vectors[start:stop].T
        if allowed is not None:
            product[:, ~allowed[start:stop]] = -np.inf
        threshold = np.maximum(threshold, _kth_of_some(product, k))
        # a tie with the threshold may still win by its row; -inf is a row that is not allowed
        passing = np.flatnonzero((product >= threshold[:, None]) & (product > -np.inf))
        found, columns = np.divmod(passing, stop - start)
        owner = np.concatenate([owner, found])
        rows = np.concatenate([rows, columns + start])
        scores = np.concatenate([scores, product.ravel()[passing]])
        order = np.lexsort((rows, -scores, owner))
        counts = np.bincount(owner, minlength=n_queries)
        rank = np.arange(len(order)) - np.repeat(offsets_of(counts)[:-1], counts)
        order = order[rank < k]
        owner, rows, scores = owner[order], rows[order], scores[order]
        ends = offsets_of(np.minimum(counts, k))[1:]
        full = counts >= k
        threshold[full] = scores[ends[full] - 1]
    bounds = offsets_of(np.bincount(owner, minlength=n_queries)).tolist()
    return [(rows[begin:end], scores[begin:end]) for begin, end in pairwise(bounds)]


def _kth_of_some(product: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """A lower bound of every query's k-th best score: that of the first so many rows, which is cheaper than that of all."""
    n_rows = product.shape[1]
    if n_rows <= k:
        return np.full(len(product), -np.inf, np.float32)
    some = min(n_rows, max(k + 1, math.isqrt(_SORTING_COSTS * k * n_rows)))
    bound: NDArray[np.float32] = np.partition(product[:, :some], some - k, axis=1)[:, some - k]
    return bound
