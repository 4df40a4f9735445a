"""Candidates as columns, as passed between retrievers, fusion, rerankers and the final cut.

A row is the number of an item in its index (0..n-1, in the order of indexing). Lists follow one another in the columns,
and ``offsets`` gives the start of each. Inside a list the best candidate comes first and no row occurs twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.errors import EngineError

Rows = NDArray[np.int64]
"""Rows of items, or positions, counts and offsets; int64."""

Scores = NDArray[np.float64]
"""Scores of candidates, float64; higher is better."""

Mask = NDArray[np.bool_]
"""Booleans; mostly ``[items]``, which items may be found."""


@dataclass(frozen=True)
class Hits:
    """Hits of an engine for a batch of queries.

    Args:
        offsets: ``[queries + 1]``; query i has ``offsets[i]:offsets[i + 1]`` of the columns.
        rows: item rows.
        scores: higher is better.
        signals: the parts of the scores, as columns by name; NaN if there is no value.
    """

    offsets: Rows
    rows: Rows
    scores: Scores
    signals: dict[str, Scores] = field(default_factory=dict)

    @classmethod
    def from_lists(cls, lists: Sequence[tuple[NDArray[np.integer], NDArray[np.floating]]]) -> Hits:
        """Join one ``(rows, scores)`` pair per query."""
        if not lists:
            return cls(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        return cls(
            offsets_of([len(rows) for rows, _ in lists]),
            np.concatenate([rows for rows, _ in lists]).astype(np.int64, copy=False),
            np.concatenate([scores for _, scores in lists]).astype(np.float64, copy=False),
        )

    @classmethod
    def from_matrix(cls, rows: NDArray[np.integer], scores: NDArray[np.floating]) -> Hits:
        """Convert a ``[queries, k]`` pair as FAISS returns it; rows below 0 are empty."""
        filled = rows >= 0
        return cls(
            offsets_of(filled.sum(axis=1)),
            rows[filled].astype(np.int64, copy=False),
            scores[filled].astype(np.float64, copy=False),
        )

    def of(self, number: int) -> tuple[Rows, Scores]:
        """Return the rows and scores found for one query."""
        part = slice(int(self.offsets[number]), int(self.offsets[number + 1]))
        return self.rows[part], self.scores[part]

    def checked(self, n_queries: int, n_items: int, k: int, engine: object, allowed: Mask | None = None) -> Hits:
        """Check that an engine's hits are valid, and sort its lists: best first, ties by row.

        Errors name the engine. Its text form is built only for an error, because deciding what to hide in it reads the
        environment, which takes longer than many searches.

        Raises:
            EngineError: a score that is not finite, an infinite signal, a row out of range or not allowed, more than k hits,
                or the wrong number of lists.
        """
        counts = np.diff(self.offsets)
        columns = [self.scores, *self.signals.values()]
        if len(counts) != n_queries or any(len(column) != self.offsets[-1] for column in [self.rows, *columns]):
            raise EngineError(f"{engine} returned {len(counts)} lists for {n_queries} queries, or columns of unequal length")
        if len(self.rows) == 0:
            return self
        if counts.max() > k:
            raise EngineError(f"{engine} returned {counts.max()} hits for one query; at most {k} were asked for")
        if not np.isfinite(self.scores).all():
            first = int(np.flatnonzero(~np.isfinite(self.scores))[0])
            raise EngineError(f"{engine} gave the score {self.scores[first]} to the item in row {self.rows[first]}")
        if infinite := [key for key, column in self.signals.items() if np.isinf(column).any()]:
            raise EngineError(f"{engine} gave a signal {infinite[0]!r} that is infinite; use NaN where there is no value")
        if self.rows.min() < 0 or self.rows.max() >= n_items:
            raise EngineError(f"{engine} returned a row outside 0..{n_items - 1}")
        if allowed is not None and not allowed[self.rows].all():
            raise EngineError(f"{engine} returned an item that is deleted, or that the filter leaves out")
        owner = np.repeat(np.arange(n_queries), counts)
        if len(np.unique(owner * n_items + self.rows)) != len(self.rows):
            raise EngineError(f"{engine} returned an item twice for one query")
        order = sort_lists(owner, self.scores, self.rows)
        if order is None:
            return self
        signals = {key: column[order] for key, column in self.signals.items()}
        return Hits(self.offsets, self.rows[order], self.scores[order], signals)


@dataclass(frozen=True)
class CandidateBatch:
    """Ranked candidates of a batch of lists (one list per query, or per sub-query), with their signals.

    Args:
        offsets: ``[lists + 1]``.
        rows: item rows.
        scores: higher is better.
        subquery: number of the sub-query with the best score for the candidate, from 0.
        signals: columns by signal key, NaN if a component did not score the candidate.
    """

    offsets: Rows
    rows: Rows
    scores: Scores
    subquery: NDArray[np.int32]
    signals: dict[str, Scores] = field(default_factory=dict)

    @classmethod
    def empty(cls, n_lists: int) -> CandidateBatch:
        """Return a batch of lists without candidates."""
        none = np.zeros(0, np.int64)
        return cls(np.zeros(n_lists + 1, np.int64), none, np.zeros(0), none.astype(np.int32))

    @property
    def n_lists(self) -> int:
        """Return how many lists there are."""
        return len(self.offsets) - 1

    @property
    def owner(self) -> Rows:
        """For each candidate, the number of its list."""
        return np.repeat(np.arange(self.n_lists), np.diff(self.offsets))

    @property
    def ranks(self) -> Rows:
        """For each candidate, its rank in its list, from 1."""
        return np.arange(len(self.rows)) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1

    def take(self, positions: NDArray[np.integer], offsets: Rows) -> CandidateBatch:
        """Pick candidates by position, as lists that begin at ``offsets``."""
        return CandidateBatch(
            offsets,
            self.rows[positions],
            self.scores[positions],
            self.subquery[positions],
            {key: column[positions] for key, column in self.signals.items()},
        )

    def with_scores(self, scores: Scores, added: dict[str, Scores]) -> CandidateBatch:
        """Replace the scores, sort every list by them, and add signals."""
        batch = CandidateBatch(self.offsets, self.rows, scores, self.subquery, self.signals | added)
        order = sort_lists(self.owner, scores, self.rows)
        return batch if order is None else batch.take(order, self.offsets)

    def head(self, k: int) -> CandidateBatch:
        """Cut every list to its best k."""
        counts = np.diff(self.offsets)
        if len(counts) == 0 or counts.max() <= k:
            return self
        keep = np.flatnonzero(self.ranks <= k)
        return self.take(keep, offsets_of(np.minimum(counts, k)))


def offsets_of(counts: Sequence[int] | NDArray[np.integer]) -> Rows:
    """Return the starts of consecutive lists of these lengths, followed by the end of the last."""
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def entries_of(offsets: Rows, rows: NDArray[np.integer]) -> tuple[Rows, Rows]:
    """Return the positions of the entries of some rows, row by row, and the number of entries of each row.

    Args:
        offsets: row r has the entries ``offsets[r]:offsets[r + 1]``.
        rows: the rows, in any order.
    """
    starts = offsets[rows]
    counts = offsets[rows + 1] - starts
    ends = np.cumsum(counts)
    entries = np.repeat(starts - (ends - counts), counts)
    entries += np.arange(len(entries))
    return entries, counts


def sort_lists(owner: Rows, scores: Scores, rows: Rows) -> Rows | None:
    """Return the order that sorts every list best first with ties by row; None if they are sorted already.

    Args:
        owner: ``[n]`` ascending, the list of each candidate.
        scores: ``[n]``.
        rows: ``[n]``.
    """
    same_list = owner[1:] == owner[:-1]
    wrong = (scores[1:] > scores[:-1]) | ((scores[1:] == scores[:-1]) & (rows[1:] < rows[:-1]))
    if not (same_list & wrong).any():
        return None
    order: Rows = np.lexsort((rows, -scores, owner))
    return order
