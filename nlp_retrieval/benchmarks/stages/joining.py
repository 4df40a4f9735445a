"""Traces of searches for groups of queries, joined into that of one search for all of them, in the order of the queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.benchmarks.stages.trace import Reranked, Retrieved, SearchTrace
from nlp_retrieval.core.candidates import CandidateBatch, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.core.search.searcher import Searcher

__all__ = ["GroupTrace", "joined_traces", "lists_of"]


@dataclass(frozen=True)
class GroupTrace:
    """What the search for some of the queries passed through.

    Args:
        positions: of the queries.
        trace: of their search.
    """

    positions: list[int]
    trace: SearchTrace


def lists_of(searcher: Searcher, trace: SearchTrace, n_queries: int) -> Rows:
    """Return where the lists of each query begin: one each, or one for each of its sub-queries.

    Args:
        searcher: that searched.
        trace: what its search passed through.
        n_queries: how many queries it was for.
    """
    if searcher.scope == "pooled" or trace.processed is None:
        return np.arange(n_queries + 1)
    return offsets_of([len(subqueries) for subqueries in trace.processed])


def joined_traces(searcher: Searcher, groups: Sequence[GroupTrace]) -> SearchTrace:
    """Return the trace of all queries.

    A group of which a stage was never reached, since no item meets its filter, has empty lists there. What a part of a
    retriever asked for itself is left out where there are several groups: it is not of one query.

    Args:
        searcher: that searched.
        groups: of queries, which are each in one of them.
    """
    if len(groups) == 1:
        return groups[0].trace
    traces = [group.trace for group in groups]
    if searcher.processor is not None:
        for group in groups:
            group.trace.processed = group.trace.processed or [[] for _ in group.positions]
    joining = _Joining(searcher, groups)
    whole = SearchTrace(
        processed=joining.by_query([trace.processed for trace in traces if trace.processed is not None]),
        saved_seconds=sum(trace.saved_seconds for trace in traces),
        peak_bytes=max(trace.peak_bytes for trace in traces),
        computed=[stage for trace in traces for stage in trace.computed],
        reused=[stage for trace in traces for stage in trace.reused],
        beside=any(trace.beside for trace in traces),
    )
    for label in dict.fromkeys(label for trace in traces for label in trace.retrieved):
        parts = [trace.retrieved.get(label) for trace in traces]
        if (batch := joining.batch([part.batch if part else None for part in parts])) is None:
            continue
        first = next(part for part in parts if part is not None)
        asked = joining.by_list([part.processed if part else None for part in parts])
        whole.retrieved[label] = Retrieved(first.retriever, asked, first.depth, batch)
    scored = [trace.reranked for trace in traces]
    batch = joining.batch([part.batch if part else None for part in scored])
    if batch is not None and (known := [part for part in scored if part is not None]):
        names = dict.fromkeys(name for part in known for name in part.columns)
        columns = {name: joining.column([part.columns[name] for part in known]) for name in names}
        whole.reranked = Reranked(known[0].reranker, batch, columns)
    return whole


class _Joining:
    """Puts what groups have, one after another, into the order of the queries."""

    def __init__(self, searcher: Searcher, groups: Sequence[GroupTrace]) -> None:
        lists = [lists_of(searcher, group.trace, len(group.positions)) for group in groups]
        self._n_lists = [int(one[-1]) for one in lists]
        positions = [position for group in groups for position in group.positions]
        self._queries = np.argsort(positions, kind="stable").tolist()
        owner = np.repeat(positions, np.concatenate([np.diff(one) for one in lists]))
        self._lists = np.argsort(owner, kind="stable")
        self._entries = np.zeros(0, np.int64)

    def by_query(self, parts: Sequence[list[list[str]]]) -> list[list[str]] | None:
        """Join what groups have for each query; None where they have nothing."""
        values = [value for part in parts for value in part]
        return [values[place] for place in self._queries] if values else None

    def by_list(self, parts: Sequence[list[list[str]] | None]) -> list[list[str]]:
        """Join what groups have for each list, empty where one has nothing."""
        empty: list[list[list[str]]] = [[[]] * count for count in self._n_lists]
        values = [value for part, none in zip(parts, empty, strict=True) for value in (none if part is None else part)]
        return [values[place] for place in self._lists.tolist()]

    def batch(self, parts: Sequence[CandidateBatch | None]) -> CandidateBatch | None:
        """Join candidates; None where those of a group are not of its lists."""
        batches = [part or CandidateBatch.empty(count) for part, count in zip(parts, self._n_lists, strict=True)]
        if [batch.n_lists for batch in batches] != self._n_lists:
            return None
        keys = dict.fromkeys(key for batch in batches for key in batch.signals)
        whole = CandidateBatch(
            offsets_of(np.concatenate([np.diff(batch.offsets) for batch in batches])),
            np.concatenate([batch.rows for batch in batches]),
            np.concatenate([batch.scores for batch in batches]),
            np.concatenate([batch.subquery for batch in batches]),
            {key: np.concatenate([_signal(batch, key) for batch in batches]) for key in keys},
        )
        self._entries, counts = entries_of(whole.offsets, self._lists)
        return whole.take(self._entries, offsets_of(counts))

    def column(self, parts: Sequence[Scores]) -> Scores:
        """Join a column of the candidates that were joined last."""
        return np.concatenate(parts)[self._entries]


def _signal(batch: CandidateBatch, key: str) -> Scores:
    return batch.signals.get(key, np.full(len(batch.rows), np.nan))
