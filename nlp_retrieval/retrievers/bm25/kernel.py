"""The compiled inner loop of scoring postings; importing it needs numba, which compiles it at the first call."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores


@njit(nogil=True)
def _sift(sums: Scores, rows: Rows, size: int, score: float, row: int) -> None:
    """Put an entry at the root of a heap of ``size`` entries and let it sink to its place."""
    node = 0
    while 2 * node + 1 < size:
        child = 2 * node + 1
        other = child + 1
        if other < size and (sums[other] < sums[child] or (sums[other] == sums[child] and rows[other] > rows[child])):
            child = other
        if score < sums[child] or (score == sums[child] and row > rows[child]):
            break
        sums[node], rows[node] = sums[child], rows[child]
        node = child
    sums[node], rows[node] = score, row


@njit(nogil=True)
def score_and_select(
    bounds: Rows,
    terms: NDArray[np.int32],
    factors: Scores,
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    weights: NDArray[np.float32],
    n_items: int,
    mask: Mask,
    row_lists: Rows,
    values: Scores,
) -> None:
    """Score each query over its postings, and keep the best items in a heap whose root is the worst of them.

    Query q has the terms ``terms[bounds[q]:bounds[q + 1]]``, each with a factor above 0 (``factors`` is empty if all are 1);
    an empty ``mask`` lets all rows be returned. ``row_lists`` and ``values``, ``[queries, k]``, receive rows and scores; they
    stay unchanged after the last hit.
    """
    k = row_lists.shape[1]
    sums = np.zeros(n_items, np.float64)
    touched = np.empty(n_items, np.int64)
    heap_rows = np.empty(k + 1, np.int64)
    heap_sums = np.empty(k + 1, np.float64)
    for query in range(len(bounds) - 1):
        n_touched = 0
        for entry in range(bounds[query], bounds[query + 1]):
            term, factor = terms[entry], factors[entry] if len(factors) > 0 else 1.0
            for posting in range(indptr[term], indptr[term + 1]):
                row = rows[posting]
                if sums[row] == 0.0 and n_touched < n_items:
                    touched[n_touched] = row
                    n_touched += 1
                sums[row] += factor * weights[posting]
        size = 0
        for number in range(n_touched):
            row = touched[number]
            score = sums[row]
            sums[row] = 0.0
            if len(mask) > 0 and not mask[row]:
                continue
            if size < k:
                node = size
                size += 1
                while node > 0:
                    parent = (node - 1) // 2
                    if heap_sums[parent] < score or (heap_sums[parent] == score and heap_rows[parent] > row):
                        break
                    heap_sums[node], heap_rows[node] = heap_sums[parent], heap_rows[parent]
                    node = parent
                heap_sums[node], heap_rows[node] = score, row
            elif score > heap_sums[0] or (score == heap_sums[0] and row < heap_rows[0]):
                _sift(heap_sums, heap_rows, size, score, row)
        for last in range(size - 1, -1, -1):
            values[query, last], row_lists[query, last] = heap_sums[0], heap_rows[0]
            _sift(heap_sums, heap_rows, last, heap_sums[last], heap_rows[last])
