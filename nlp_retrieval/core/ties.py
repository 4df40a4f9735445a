"""Ties at the cut: an engine that cuts by its own rule is asked for more until the tie at the cut is seen whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Rows

Matrix = tuple[NDArray[np.integer], NDArray[np.floating]]

_PAST_THE_CUT = 8


def search_past_ties(search: Callable[[Rows, int], Matrix], n_queries: int, k: int, n_items: int) -> Hits:
    """Return the best k per query, with the lowest rows where scores tie at the cut.

    Args:
        search: given the numbers of the queries wanted and a depth, returns ``[queries, depth]`` rows (below 0: none) and
            scores, best first.
        n_queries: how many queries there are.
        k: length of the lists.
        n_items: how many items could be found at most.
    """
    rows = np.full((n_queries, k), -1, np.int64)
    scores = np.zeros((n_queries, k))
    pending = np.arange(n_queries)
    depth = min(k + _PAST_THE_CUT, n_items)
    while len(pending):
        found, values = search(pending, depth)
        values = np.where(found >= 0, values, -np.inf)
        whole = (values[:, min(k, depth) - 1] > values[:, -1]) | (found[:, -1] < 0) | (depth >= n_items)
        done = pending[whole]
        order = np.lexsort((found[whole], -values[whole]), axis=1)[:, :k]
        width = order.shape[1]
        rows[done, :width] = np.take_along_axis(found[whole], order, axis=1)
        scores[done, :width] = np.take_along_axis(values[whole], order, axis=1)
        pending = pending[~whole]
        depth = min(depth * 4, n_items)
    return Hits.from_matrix(rows, scores)
