"""Candidates as columns, as passed between retrievers, fusion, rerankers and the final cut.

A row is the number of an item in its index (0..n-1, in the order of indexing). Lists follow one another in the columns,
and ``offsets`` gives the start of each. Inside a list the best candidate comes first and no row occurs twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.models import RetrievalResult, SearchableItem, no_collection
from nlp_retrieval.errors import EngineError

Rows = NDArray[np.int64]
"""Rows of items, or positions, counts and offsets; int64."""

Scores = NDArray[np.float64]
"""Scores of candidates, float64; higher is better."""

Mask = NDArray[np.bool_]
"""Booleans; mostly ``[items]``, which items may be found."""


@dataclass(frozen=True)
class Hits:
    """Ranked hits for a batch of queries, one list after another.

    Args:
        offsets: ``[queries + 1]``; query i has ``offsets[i]:offsets[i + 1]`` of the columns.
        rows: item rows.
        scores: higher is better.
        signals: the parts of the scores, as columns by name; NaN if there is no value.

    Examples:
        >>> hits = Hits.from_lists([(np.array([4, 0]), np.array([2.5, 1.0])), (np.array([], int), np.array([]))])
        >>> hits.offsets.tolist(), hits.rows.tolist()
        ([0, 2, 2], [4, 0])
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

    def with_lists(self, lists: Mapping[int, tuple[Rows, Scores]]) -> Hits:
        """Return these hits with other lists for some queries; without signals."""
        if not lists:
            return self
        return Hits.from_lists([lists.get(number) or self.of(number) for number in range(len(self.offsets) - 1)])

    def checked(self, n_queries: int, n_items: int, k: int, engine: object, allowed: Mask | None = None) -> Hits:
        """Return valid hits with their lists sorted, best first, ties by row; an EngineError says what is invalid."""
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
            raise EngineError(f"{engine} returned an item that is deleted, or that the filter excludes")
        owner = self.owner
        if len(np.unique(owner * n_items + self.rows)) != len(self.rows):
            raise EngineError(f"{engine} returned an item twice for one query")
        order = sort_lists(owner, self.scores, self.rows)
        return self if order is None else self.take(order, self.offsets)

    # between the stages of a search, where a list is that of one query, or of one sub-query

    @property
    def n_lists(self) -> int:
        return len(self.offsets) - 1

    @property
    def owner(self) -> Rows:
        """For each candidate, the number of its list."""
        return np.repeat(np.arange(self.n_lists), np.diff(self.offsets))

    @property
    def ranks(self) -> Rows:
        """For each candidate, its rank in its list, from 1."""
        return np.arange(len(self.rows)) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1

    def take(self, positions: NDArray[np.integer], offsets: Rows) -> Hits:
        """Pick candidates by position, as lists that begin at ``offsets``."""
        return Hits(
            offsets, self.rows[positions], self.scores[positions], {key: kept[positions] for key, kept in self.signals.items()}
        )

    def with_scores(self, scores: Scores, added: dict[str, Scores]) -> Hits:
        """Replace the scores, sort every list by them, and add signals."""
        batch = Hits(self.offsets, self.rows, scores, self.signals | added)
        order = sort_lists(self.owner, scores, self.rows)
        return batch if order is None else batch.take(order, self.offsets)

    def head(self, k: int) -> Hits:
        """Cut every list to its best k."""
        counts = np.diff(self.offsets)
        if len(counts) == 0 or counts.max() <= k:
            return self
        keep = np.flatnonzero(self.ranks <= k)
        return self.take(keep, offsets_of(np.minimum(counts, k)))

    def below(self, k: int) -> Hits:
        """Return what :meth:`head` cuts off."""
        k = min(k, len(self.rows))
        return self.take(np.flatnonzero(self.ranks > k), offsets_of(np.maximum(np.diff(self.offsets) - k, 0)))

    def followed_by(self, others: Hits) -> Hits:
        """Append the lists of others in their order; their scores become lower than all in the list, in equal steps."""
        if len(others.rows) == 0:
            return self
        owner, counts = np.concatenate([self.owner, others.owner]), np.diff(self.offsets)
        lowest, steps = np.zeros(self.n_lists), np.ones(self.n_lists)
        lowest[counts > 0] = self.scores[self.offsets[1:][counts > 0] - 1]
        length = counts[counts > 0]
        step = self.scores[self.offsets[:-1][counts > 0]] / length - lowest[counts > 0] / length
        steps[counts > 0] = np.where(step > 0, np.minimum(1.0, step), 1.0)
        steps = np.maximum(steps, 2 * np.spacing(np.abs(lowest)))  # a step of 1 is lost in a score of 1e16
        scores = np.maximum(lowest[others.owner] - steps[others.owner] * others.ranks, np.finfo(np.float64).min)
        rows, joined_scores = np.concatenate([self.rows, others.rows]), np.concatenate([self.scores, scores])
        joined = Hits(self.offsets, rows, joined_scores, _signals_of([self, others]))
        return joined.take(np.argsort(owner, kind="stable"), self.offsets + others.offsets)

    def results(self, items_of: Callable[[Rows], Sequence[SearchableItem]]) -> list[list[RetrievalResult]]:
        """Return one list of results per list of candidates, given what returns the items of rows."""
        items, scores, made = items_of(self.rows), self.scores.tolist(), list[RetrievalResult]()
        columns = zip(*(column.tolist() for column in self.signals.values()), strict=True) if self.signals else repeat(())
        with no_collection():
            for item, score, values in zip(items, scores, columns, strict=False):
                signals = {key: value for key, value in zip(self.signals, values, strict=True) if not math.isnan(value)}
                made.append(RetrievalResult.trusted(item, score, signals))
        return [made[begin:end] for begin, end in pairwise(self.offsets.tolist())]


def offsets_of(counts: Sequence[int] | NDArray[np.integer]) -> Rows:
    """Return the starts of consecutive lists of these lengths, followed by the end of the last.

    Examples:
        >>> offsets_of([2, 0, 3]).tolist()
        [0, 2, 2, 5]
    """
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def entries_of(offsets: Rows, rows: NDArray[np.integer]) -> tuple[Rows, Rows]:
    """Return the positions of the entries of rows, row by row, and how many each row r has, ``offsets[r]:offsets[r + 1]``."""
    starts = offsets[rows]
    counts = offsets[rows + 1] - starts
    ends = np.cumsum(counts)
    entries = np.repeat(starts - (ends - counts), counts)
    entries += np.arange(len(entries))
    return entries, counts


def sort_lists(owner: Rows, scores: Scores, rows: Rows) -> Rows | None:
    """Return the order that sorts every list best first with ties by row; None if they are sorted already."""
    same_list = owner[1:] == owner[:-1]
    wrong = (scores[1:] > scores[:-1]) | ((scores[1:] == scores[:-1]) & (rows[1:] < rows[:-1]))
    if not (same_list & wrong).any():
        return None
    order: Rows = np.lexsort((rows, -scores, owner))
    return order


# The k best by score, ties by lowest row: in one list, and over the parts of an index.


def top_k_positions(scores: NDArray[np.floating], k: int) -> Rows:
    """Return the positions of the k highest scores, highest first; of equal ones the lower position comes first."""
    if len(scores) <= k:
        return np.argsort(-scores, kind="stable")
    near = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    return near[np.argsort(-scores[near], kind="stable")[:k]]


def top_k(rows: Rows, scores: Scores, k: int) -> tuple[Rows, Scores]:
    """The k best of ascending rows and their scores, best first; the lowest rows where scores tie.

    Examples:
        >>> rows, scores = top_k(np.array([5, 1, 9]), np.array([0.5, 2.0, 0.5]), k=2)
        >>> rows.tolist(), scores.tolist()
        ([1, 5], [2.0, 0.5])
    """
    chosen = top_k_positions(scores, k)
    return rows[chosen], scores[chosen]


SearchPart = Callable[[int, Mask | None], Hits]
"""Searches one part of an index for a batch of queries, given the most hits per query and which of its rows may be found."""


def search_parts(parts: Sequence[tuple[slice, SearchPart]], n_queries: int, k: int, allowed: Mask | None) -> Hits:
    """Search the parts of an index one after another, and merge their lists by score; ties go to the lowest rows."""
    lists: list[Hits] = []
    for rows, search in parts:
        part = None if allowed is None else allowed[rows]
        if part is None or part.any():
            hits = search(min(k, rows.stop - rows.start), part)
            lists.append(replace(hits, rows=hits.rows + rows.start))
    if len(lists) == 1:
        return lists[0]
    if not lists:
        return Hits.from_lists([(np.zeros(0, np.int64), np.zeros(0))] * n_queries)
    owner = np.concatenate([hits.owner for hits in lists])
    rows_found, scores = np.concatenate([hits.rows for hits in lists]), np.concatenate([hits.scores for hits in lists])
    whole = Hits(offsets_of(np.bincount(owner, minlength=n_queries)), rows_found, scores, _signals_of(lists))
    return whole.take(np.lexsort((rows_found, -scores, owner)), whole.offsets).head(k)


def _signals_of(parts: Sequence[Hits]) -> dict[str, Scores]:
    """The signals of parts, one after another; NaN where a part has none."""
    keys = dict.fromkeys(key for part in parts for key in part.signals)
    return {key: np.concatenate([part.signals.get(key, np.full(len(part.rows), np.nan)) for part in parts]) for key in keys}


def scaled(scores: Scores, depth: int = 0) -> Scores:
    """Scale the scores of one list to 0..1, where 0 is the score of items outside it; if all are equal, all become 1.

    A list of length ``depth`` was cut at its lowest score; a shorter one holds all items that match, and the others score 0.

    Examples:
        >>> scaled(np.array([4.0, 3.0, 2.0])).tolist()
        [1.0, 0.5, 0.0]
    """
    if len(scores) == 0:
        return scores
    scores = np.ldexp(scores, -np.frexp(np.abs(scores).max())[1])  # by a power of two, so that no difference overflows
    lowest = scores.min() if len(scores) >= depth else min(scores.min(), 0.0)
    span = scores.max() - lowest
    return (scores - lowest) / span if span > 0 else np.ones(len(scores))


# Merging the hits of several sub-queries into one ranked list per query, without duplicates.
#
# ``alternate``, the default, gives every other rank to the first sub-query, which with most processors is the query itself,
# and those between to the others in turn. ``round_robin`` takes the items of all lists in turn. ``max`` keeps an item's best
# score: with scores that grow with the words of a query, such as BM25's, parts of a query then change nothing that the query
# itself finds. ``rrf`` adds reciprocal ranks (Cormack et al., SIGIR 2009).

MergeRule = Literal["alternate", "max", "rrf", "round_robin"]
"""How the lists of a query's sub-queries are merged."""

RRF_K = 60
"""The constant of reciprocal rank fusion, from Cormack et al., SIGIR 2009."""


def reciprocal_ranks(ranks: NDArray[np.number[Any]], k: float = RRF_K, weights: float | Scores = 1.0) -> Scores:
    """Return what each rank adds in reciprocal rank fusion: ``weights / (k + ranks)``, with ranks from 1."""
    shares: Scores = weights / (k + np.asarray(ranks, np.float64))
    return shares


def merge_subqueries(hits: Hits, places: Rows, counts: NDArray[np.integer], rule: MergeRule, label: str, k: int) -> Hits:
    """Merge the hits of sub-queries, whose lists are at ``places`` in the order of queries, into the best k of each query."""
    lengths = np.diff(hits.offsets)[places]
    offsets = offsets_of(lengths)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    positions = np.repeat(hits.offsets[:-1][places], lengths) + within
    rows, scores = hits.rows[positions], hits.scores[positions]
    signals = {f"{label}.{name}": column[positions] for name, column in hits.signals.items()}
    if counts.max(initial=0) <= 1:  # one list each: nothing to merge
        return _cut(Hits(offsets[offsets_of(counts)], rows, scores, signals), k, label)
    query_of = np.repeat(np.repeat(np.arange(len(counts)), counts), lengths)
    first = np.cumsum(counts) - counts
    subquery = np.repeat(np.arange(len(places)) - np.repeat(first, counts), lengths)
    value = _values(rule, scores, within, subquery, np.repeat(np.repeat(counts, counts), lengths))
    key = query_of * (int(rows.max(initial=0)) + 1) + rows
    order = np.lexsort((subquery, -value, key))
    kept, begins = np.unique(key[order], return_index=True)
    best = order[begins]
    merged = np.add.reduceat(value[order], begins) if rule == "rrf" and len(begins) else value[best]
    own = np.full((int(counts.max()), len(kept)), np.nan)  # the engine's own score, per sub-query, of every candidate
    own[subquery, np.searchsorted(kept, key)] = scores
    signals = {f"{label}[{number}].score": column for number, column in enumerate(own)} | {
        name: column[best] for name, column in signals.items()
    }
    list_offsets = offsets_of(np.bincount(query_of[best], minlength=len(counts)))
    return _cut(Hits(list_offsets, rows[best], merged, signals).with_scores(merged, {}), k, label)


def _cut(batch: Hits, k: int, label: str) -> Hits:
    """The best k of each list, with their scores and ranks as signals."""
    head = batch.head(k)
    signals = {f"{label}.score": head.scores, f"{label}.rank": head.ranks.astype(np.float64)} | head.signals
    return replace(head, signals=signals)


def _values(rule: MergeRule, scores: Scores, within: Rows, subquery: Rows, n_subqueries: NDArray[np.integer]) -> Scores:
    """Return each hit's contribution, ``[hits]``, given its rank from 0, its sub-query, and its query's sub-query count."""
    if rule == "max":
        return scores
    if rule == "rrf":
        value = reciprocal_ranks(1 + within)
    else:
        turn = within * n_subqueries + subquery
        if rule == "alternate":
            turn = np.where(subquery == 0, 2 * within, 2 * (within * (n_subqueries - 1) + subquery - 1) + 1)
        value = np.reciprocal(1.0 + turn.astype(np.float64))
    return np.where(n_subqueries == 1, scores, value)  # with one, there is nothing to merge
