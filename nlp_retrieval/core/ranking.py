"""The k best by score, ties by lowest row: in one list, over the parts of an index, and at an engine's cut.

An engine that breaks ties differently is asked for more hits until all that tie at the cut are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, offsets_of

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
        search: given the numbers of queries and a depth, returns ``[queries, depth]`` rows (below 0 for none) and scores,
            best first.
        n_queries: how many queries there are.
        k: length of the lists.
        n_items: the most items that could be found.
        score: takes the numbers of queries, ascending, and the same number of rows, and returns the scores to rank by; None to
            use the engine's.
        slack: with ``score``, ``[queries]``: largest difference between its scores and the engine's.
        past_the_cut: how many more than k to fetch at first; with slack, a larger number avoids a second search.
    """
    rows = np.full((n_queries, k), -1, np.int64)
    scores = np.zeros((n_queries, k))
    pending = np.arange(n_queries)
    depth = min(k + past_the_cut, n_items)
    while len(pending):
        found, values = search(pending, depth)
        filled = found >= 0
        values = np.where(filled, values, -np.inf)
        beyond = values[:, -1]  # rows that were not returned score at most this
        if score is not None and slack is not None:
            may_win = filled & (values >= (values[:, min(k, depth) - 1] - 2 * slack[pending])[:, None])
            owner, places = np.nonzero(may_win)
            beyond = beyond + slack[pending]
            values = np.full(values.shape, -np.inf)
            values[owner, places] = score(pending[owner], found[owner, places].astype(np.int64, copy=False))
        order = np.lexsort((found, -values), axis=1)[:, :k]
        width = order.shape[1]
        best = np.take_along_axis(values, order, axis=1)
        whole = (best[:, -1] > beyond) | ~filled[:, -1] | (depth >= n_items)
        done = pending[whole]
        rows[done, :width] = np.take_along_axis(found, order, axis=1)[whole]
        scores[done, :width] = best[whole]
        pending = pending[~whole]
        depth = min(depth * 4, n_items)
    return Hits.from_matrix(rows, scores)


def top_k_positions(scores: NDArray[np.floating], k: int) -> Rows:
    """Return the positions of the k highest scores, highest first; of equal ones the lower position comes first."""
    if len(scores) <= k:
        return np.argsort(-scores, kind="stable")
    near = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    return near[np.argsort(-scores[near], kind="stable")[:k]]


def top_k_mask(scores: NDArray[np.floating], k: int) -> Mask:
    """Return the mask of the k highest scores, ties by lower position; faster than sorting them.

    Args:
        scores: at least k, none of them NaN.
        k: at least 1.
    """
    cut = np.partition(scores, len(scores) - k)[len(scores) - k]
    chosen: Mask = scores > cut
    chosen[np.flatnonzero(scores == cut)[: k - np.count_nonzero(chosen)]] = True
    return chosen


def top_k(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    """The k best of some rows and their scores, best first; the lowest rows where scores tie.

    Args:
        rows: ascending.
        scores: ``[rows]``.
        k: how many at most.
    """
    chosen = top_k_positions(scores, k)
    return rows[chosen], scores[chosen]


SearchPart = Callable[[int, Mask | None], Hits]
"""Searches one part of an index for a batch of queries, given the most hits per query and which of its rows may be found."""


def search_parts(parts: Sequence[tuple[slice, SearchPart]], n_queries: int, k: int, allowed: Mask | None) -> Hits:
    """Search the parts of an index one after another, and merge their lists by score; ties go to the lowest rows.

    Args:
        parts: consecutive rows of the index, and a search function for each; rows count from 0 in each part.
        n_queries: number of queries.
        k: at most this many hits per query.
        allowed: ``[rows of the index]``, or None.
    """
    hits_of_parts: list[Hits] = []
    for rows, search in parts:
        part = None if allowed is None else allowed[rows]
        if part is None or part.any():
            hits = search(min(k, rows.stop - rows.start), part)
            hits_of_parts.append(replace(hits, rows=hits.rows + rows.start))
    return joined_hits(hits_of_parts, n_queries, k)


def joined_hits(hits_of_parts: Sequence[Hits], n_queries: int, k: int) -> Hits:
    """Merge lists over different rows, query by query: the best k by score, ties by row.

    Args:
        hits_of_parts: each with a list per query.
        n_queries: number of queries.
        k: length of the joined lists.
    """
    if len(hits_of_parts) == 1:
        return hits_of_parts[0]
    owner = np.concatenate(
        [np.zeros(0, np.int64), *(np.repeat(np.arange(n_queries), np.diff(hits.offsets)) for hits in hits_of_parts)]
    )
    keys = list(dict.fromkeys(key for hits in hits_of_parts for key in hits.signals))
    nothing = [np.full(len(hits.rows), np.nan) for hits in hits_of_parts]
    columns = [
        np.concatenate([np.zeros(0), *parts])
        for parts in (
            [hits.scores for hits in hits_of_parts],
            *([hits.signals.get(key, none) for hits, none in zip(hits_of_parts, nothing, strict=True)] for key in keys),
        )
    ]
    rows = np.concatenate([np.zeros(0, np.int64), *(hits.rows for hits in hits_of_parts)])
    order = np.lexsort((rows, -columns[0], owner))
    owner = owner[order]
    begins = offsets_of(np.bincount(owner, minlength=n_queries))
    kept = order[np.arange(len(owner)) - begins[owner] < k]
    counts = np.minimum(np.diff(begins), k)
    scores, *signals = (column[kept] for column in columns)
    return Hits(offsets_of(counts), rows[kept], scores, dict(zip(keys, signals, strict=True)))


def scaled(scores: Scores, depth: int = 0) -> Scores:
    """Scale the scores of one list to 0..1, where 0 is the score of items outside it; if all are equal, all become 1.

    Args:
        scores: scores of the list.
        depth: a list of this length was cut at its lowest score; a shorter one holds all items that match, the others score 0.
    """
    if len(scores) == 0:
        return scores
    lowest = scores.min() if len(scores) >= depth else min(scores.min(), 0.0)
    span = scores.max() - lowest
    return (scores - lowest) / span if span > 0 else np.ones(len(scores))
