"""Ties at the cut: an engine that cuts by its own rule is asked for more until the tie at the cut is seen whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Rows

Matrix = tuple[NDArray[np.integer], NDArray[np.floating]]

_PAST_THE_CUT = 8


def search_past_ties(
    search: Callable[[Rows, int], Matrix],
    n_queries: int,
    k: int,
    n_items: int,
    score: Callable[[Rows, Rows], NDArray[np.floating]] | None = None,
    slack: NDArray[np.floating] | None = None,
    past_the_cut: int = _PAST_THE_CUT,
) -> Hits:
    """Return the best k per query, with the lowest rows where scores tie at the cut.

    Args:
        search: given the numbers of the queries wanted and a depth, returns ``[queries, depth]`` rows (below 0: none) and
            scores, best first.
        n_queries: how many queries there are.
        k: length of the lists.
        n_items: how many items could be found at most.
        score: given the numbers of queries, ascending, and as many rows, returns the scores that decide. None: the engine's do.
        slack: with ``score``, ``[queries]``: how far its scores and those of the engine may differ.
        past_the_cut: how many more are looked at first; with slack, more of them spare a second look.
    """
    rows = np.full((n_queries, k), -1, np.int64)
    scores = np.zeros((n_queries, k))
    pending = np.arange(n_queries)
    depth = min(k + past_the_cut, n_items)
    while len(pending):
        found, values = search(pending, depth)
        there = found >= 0
        values = np.where(there, values, -np.inf)
        beyond = values[:, -1]  # what was not returned scores at most this
        if score is not None and slack is not None:
            may_win = there & (values >= (values[:, min(k, depth) - 1] - 2 * slack[pending])[:, None])
            owner, places = np.nonzero(may_win)
            beyond = beyond + slack[pending]
            values = np.full(values.shape, -np.inf)
            values[owner, places] = score(pending[owner], found[owner, places].astype(np.int64, copy=False))
        order = np.lexsort((found, -values), axis=1)[:, :k]
        width = order.shape[1]
        best = np.take_along_axis(values, order, axis=1)
        whole = (best[:, -1] > beyond) | ~there[:, -1] | (depth >= n_items)
        done = pending[whole]
        rows[done, :width] = np.take_along_axis(found, order, axis=1)[whole]
        scores[done, :width] = best[whole]
        pending = pending[~whole]
        depth = min(depth * 4, n_items)
    return Hits.from_matrix(rows, scores)
