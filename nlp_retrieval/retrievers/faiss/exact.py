"""Exact search by inner product over vectors in a file: blocks of a matrix product, cut by a rising threshold.

FAISS's flat index computes the same; this is faster (``make bench``), and knows which rows tie at the cut. The rounding of a
matrix product depends on the place of vectors in a block, the number of threads and the CPU. So it only finds candidates: rows
that may be among the best, given the rounding error, are computed again, pair by pair (:func:`products_of`), and these products
are sorted and returned. A score depends only on the two vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, offsets_of
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.encoders.base import Vectors

_PRODUCT_AT_ONCE = 16 * 2**20  # scores, 64 MB of them
_QUERIES_AT_ONCE = 512
_ROWS_AT_ONCE = 4096
_multiplying = Lock()
"""One product at a time: each uses all cores, and parallel ones would only wait for one another."""

_SORTING_COSTS = 60  # sorting one remaining score costs about as much as selecting among this many


class Stack:
    """Matrices stacked one below another and searched as one.

    Args:
        blocks: ``[rows, dimension]`` each, in memory or memory-mapped; they are not copied.

    Examples:
        >>> stack = Stack(np.eye(2, dtype=np.float32), np.ones((1, 2), np.float32))
        >>> stack.at(np.array([0, 2])).tolist()
        [[1.0, 0.0], [1.0, 1.0]]
    """

    def __init__(self, *blocks: Vectors) -> None:
        self._blocks = blocks
        self._starts = offsets_of([len(block) for block in blocks])
        self.dimension = int(blocks[0].shape[1])

    def __len__(self) -> int:
        """Return how many rows there are."""
        return int(self._starts[-1])

    @cached_property
    def longest(self) -> float:
        """The length of the longest row."""
        squares = (np.einsum("ij,ij->i", part, part, dtype=np.float64).max() for _, part in self.pieces(_ROWS_AT_ONCE))
        return math.sqrt(max(squares, default=0.0))

    def pieces(self, size: int) -> Iterator[tuple[int, Vectors]]:
        """Yield all rows in order, at most ``size`` at a time, each piece with the number of its first row."""
        for start, block in zip(self._starts.tolist(), self._blocks, strict=False):
            for first in range(0, len(block), size):
                yield start + first, block[first : first + size]

    def at(self, rows: Rows) -> Vectors:
        """Return some rows, ``[rows, dimension]``."""
        if len(self._blocks) == 1:
            return np.asarray(self._blocks[0][rows])
        vectors = np.empty((len(rows), self.dimension), np.float32)
        owner = np.searchsorted(self._starts, rows, side="right") - 1
        for number, (start, block) in enumerate(zip(self._starts.tolist(), self._blocks, strict=False)):
            in_block = owner == number
            vectors[in_block] = block[rows[in_block] - start]
        return vectors


def exact_search(queries: Vectors, vectors: Stack, k: int, allowed: Mask | None) -> Hits:
    """Return the k rows with the highest inner products per query; ties at the cut go to the lowest rows.

    Args:
        queries: ``[queries, dimension]``.
        vectors: vectors of the items.
        k: at most this many per query.
        allowed: ``[items]``; only rows where it is True are returned. None allows all.

    Examples:
        >>> vectors = np.eye(3, dtype=np.float32)
        >>> exact_search(np.array([[0.2, 0.9, 0.1]], np.float32), Stack(vectors), 2, None).rows.tolist()
        [1, 0]
    """
    lists: list[tuple[Rows, NDArray[np.floating]]] = []
    for first in range(0, len(queries), _QUERIES_AT_ONCE):
        lists += _search_chunk(queries[first : first + _QUERIES_AT_ONCE], vectors, k, allowed)
    return Hits.from_lists(lists)


def _search_chunk(queries: Vectors, vectors: Stack, k: int, allowed: Mask | None) -> list[tuple[Rows, NDArray[np.floating]]]:
    n_queries = len(queries)
    size = max(_PRODUCT_AT_ONCE // n_queries, 1)
    owner, rows, scores = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    threshold = np.full(n_queries, -np.inf, np.float32)
    slack = rounding(queries, vectors.longest)
    for start, piece in vectors.pieces(size):
        stop = start + len(piece)
        if allowed is not None and not allowed[start:stop].any():
            continue
        with _multiplying:
            product = queries @ piece.T
        if allowed is not None:
            product[:, ~allowed[start:stop]] = -np.inf
        threshold = np.maximum(threshold, _kth_of_some(product, k))
        # a score within rounding of the threshold may still win; -inf marks a row that is not allowed
        passing = np.flatnonzero((product >= (threshold - slack)[:, None]) & (product > -np.inf))
        passing_owner, columns = np.divmod(passing, stop - start)
        owner = np.concatenate([owner, passing_owner])
        rows = np.concatenate([rows, columns + start])
        scores = np.concatenate([scores, product.ravel()[passing]])
        order = np.lexsort((-scores, owner))
        owner, rows, scores = owner[order], rows[order], scores[order]
        counts = np.bincount(owner, minlength=n_queries)
        full = counts >= k
        threshold[full] = scores[offsets_of(counts)[:-1][full] + k - 1]
        near = scores >= (threshold - slack)[owner]
        owner, rows, scores = owner[near], rows[near], scores[near]
    scores = products_of(queries, vectors.at, owner, rows)
    order = np.lexsort((rows, -scores, owner))
    owner, rows, scores = owner[order], rows[order], scores[order]
    bounds = offsets_of(np.bincount(owner, minlength=n_queries)).tolist()
    return [(rows[begin : min(begin + k, end)], scores[begin : min(begin + k, end)]) for begin, end in pairwise(bounds)]


def products_of(queries: Vectors, vectors_of: Callable[[Rows], Vectors], owner: Rows, rows: Rows) -> NDArray[np.float32]:
    """Inner products of ``queries[owner]`` and rows, ``[rows]``, each the same to the bit in any batch."""
    scores = np.empty(len(rows), np.float32)
    bounds = offsets_of(np.bincount(owner, minlength=len(queries))).tolist()
    for query, (begin, end) in zip(queries, pairwise(bounds), strict=True):
        for first in range(begin, end, _ROWS_AT_ONCE):
            part = slice(first, min(first + _ROWS_AT_ONCE, end))
            # not BLAS: einsum sums each row by itself, in one order, with instructions that all CPUs of an architecture have
            np.einsum("ij,j->i", vectors_of(rows[part]), query, out=scores[part])
    return scores


def rounding(queries: Vectors, longest: float) -> NDArray[np.float32]:
    """Return the difference of two scores above which no rounding of inner products changes their order, ``[queries]``."""
    # Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1; a few more terms for decoded vectors
    lengths = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
    terms = queries.shape[1] + 8
    slack: NDArray[np.float32] = (2.0 * terms * float(np.finfo(np.float32).eps) * longest * lengths).astype(np.float32)
    return slack


def _kth_of_some(product: NDArray[np.float32], k: int) -> NDArray[np.float32]:
    """A lower bound of every query's k-th best score: the k-th best of some rows, which is cheaper than that of all."""
    n_rows = product.shape[1]
    if n_rows <= k:
        return np.full(len(product), -np.inf, np.float32)
    some = min(n_rows, max(k + 1, math.isqrt(_SORTING_COSTS * k * n_rows)))
    bound: NDArray[np.float32] = np.partition(product[:, :some], some - k, axis=1)[:, some - k]
    return bound
