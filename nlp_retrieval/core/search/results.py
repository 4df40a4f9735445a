"""Rows become results: the last step of a search, for the final k only."""

from __future__ import annotations

import gc
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, SupportsIndex, overload

import numpy as np
import pyarrow as pa

from nlp_retrieval.core.candidates import CandidateBatch
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult, excerpt
from nlp_retrieval.core.tables import AsTable, columns_of, html_table, imported

# Results of a search: lists of results, which behave like ordinary lists, and convert to tables.


_MOST_RESULTS, _MOST_QUERIES = 10, 5
"""Shown in a notebook."""


class _Results(AsTable):
    """Results as a table: a row per result, with ``qid``, ``docno``, ``rank`` (from 1) and ``score``, as in a TREC run."""

    @abstractmethod
    def _lists(self) -> list[RankedList]:
        """The results of each query."""

    def to_arrow(self, *, details: bool = False) -> pa.Table:
        """Return an Arrow table."""
        rows = [(found, rank, hit) for found in self._lists() for rank, hit in enumerate(found, 1)]
        table = {
            "qid": pa.array([found.query_id for found, _, _ in rows], pa.string()),
            "docno": pa.array([hit.item.item_id for *_, hit in rows], pa.string()),
            "rank": pa.array([rank for _, rank, _ in rows], pa.int64()),
            "score": pa.array([hit.score for *_, hit in rows], pa.float64()),
        }
        if not details:
            return pa.table(table)
        items = [hit.item for *_, hit in rows]
        table |= {
            "query": pa.array([found.query for found, _, _ in rows], pa.string()),
            "title": pa.array([item.title for item in items], pa.string()),
            "content": pa.array([item.content for item in items], pa.string()),
        }
        metadata = [{f"metadata.{key}": value for key, value in item.metadata.items() if key != "title"} for item in items]
        return pa.table(table | columns_of([hit.signals for *_, hit in rows]) | columns_of(metadata))

    def to_pandas(self, *, details: bool = False) -> Any:
        """Return a ``pandas.DataFrame``; a DependencyError if pandas is not installed."""
        imported("pandas", "to_pandas")
        return self.to_arrow(details=details).to_pandas()

    def to_polars(self, *, details: bool = False) -> Any:
        """Return a ``polars.DataFrame``; a DependencyError if Polars is not installed."""
        return imported("polars", "to_polars").from_arrow(self.to_arrow(details=details))


class RankedList(list[RetrievalResult], _Results):
    """The results of one query, best first.

    As a table: a row per result, with ``qid``, ``docno``, ``rank`` (from 1) and ``score``, as in a TREC run; with details also
    ``query``, ``title``, ``content``, a column per signal (``bm25.rank``) and one per key of the metadata (``metadata.year``).

    Args:
        results: best first.
        query: the query text.
        query_id: the query's id.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> (hits,) = searcher.search("krill")
        >>> hits.query, [hit.item.item_id for hit in hits]
        ('krill', ['krill', 'whale'])
    """

    def __init__(self, results: Iterable[RetrievalResult] = (), query: str = "", query_id: str = "0") -> None:
        super().__init__(results)
        self.query = query
        self.query_id = query_id

    @overload
    def __getitem__(self, key: SupportsIndex) -> RetrievalResult: ...
    @overload
    def __getitem__(self, key: slice) -> RankedList: ...
    def __getitem__(self, key: Any) -> Any:
        results = super().__getitem__(key)
        return RankedList(results, self.query, self.query_id) if isinstance(key, slice) else results

    def _lists(self) -> list[RankedList]:
        return [self]

    def __repr__(self) -> str:
        first = [f"{excerpt(hit.item.title or hit.item.item_id, 40)} ({hit.score:.4g})" for hit in self[:3]]
        return f"<{len(self)} results for {excerpt(self.query, 60)!r}: {', '.join([*first, '…'][: len(self)])}>"

    def _repr_html_(self) -> str:
        return _shown([self], _MOST_RESULTS)


class RankedLists(list[list[RetrievalResult]], _Results):
    """Results of a search: a :class:`RankedList` per query, and all their rows as a table.

    Args:
        queries: the query texts.
        lists: the results of each query, best first.
        query_ids: one per query; by default its position, from 0.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> results = searcher.search(["krill", "snow"])
        >>> results.to_pandas()[["qid", "docno", "rank"]].to_numpy().tolist()
        [['0', 'krill', 1], ['0', 'whale', 2], ['1', 'fox', 1]]
    """

    def __init__(
        self,
        queries: Sequence[str] = (),
        lists: Iterable[list[RetrievalResult]] = (),
        query_ids: Sequence[str] | None = None,
    ) -> None:
        ids = [str(number) for number in range(len(queries))] if query_ids is None else query_ids
        super().__init__(
            RankedList(results, query, query_id) for query, results, query_id in zip(queries, lists, ids, strict=True)
        )

    @overload
    def __getitem__(self, key: SupportsIndex) -> RankedList: ...
    @overload
    def __getitem__(self, key: slice) -> RankedLists: ...
    def __getitem__(self, key: Any) -> Any:
        results = super().__getitem__(key)
        if not isinstance(key, slice):
            return results
        part = RankedLists()
        part.extend(results)
        return part

    def __iter__(self) -> Iterator[RankedList]:
        return super().__iter__()  # type: ignore[return-value]

    def _lists(self) -> list[RankedList]:
        return [*self]

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the score by item id, best first, by query id: a run as ranx and pytrec_eval take it."""
        return {results.query_id: {hit.item.item_id: hit.score for hit in results} for results in self}

    def __repr__(self) -> str:
        counts = [str(len(results)) for results in self[:10]]
        return f"<{len(self)} {'query' if len(self) == 1 else 'queries'}: {', '.join([*counts, '…'][: len(self)])} results>"

    def _repr_html_(self) -> str:
        left_out = len(self) - _MOST_QUERIES
        return _shown(
            [*self][:_MOST_QUERIES],
            _MOST_RESULTS if len(self) == 1 else 3,
            f"and {left_out:,} more queries" if left_out > 0 else "",
        )


def _shown(lists: Iterable[RankedList], most: int, note: str = "") -> str:
    lists = list(lists)
    rows = [
        [results.query, str(rank), hit.item.item_id, hit.item.title, f"{hit.score:.4g}", hit.item.content]
        for results in lists
        for rank, hit in enumerate(results[:most], start=1)
    ]
    left_out = sum(max(0, len(results) - most) for results in lists)
    notes = [f"and {left_out:,} more results"] * (left_out > 0) + [note] * bool(note)
    return html_table(
        ["query", "rank", "id", "title", "score", "text"], ([*map(excerpt, row)] for row in rows), "; ".join(notes)
    )


def to_results(batch: CandidateBatch, items: ItemTable) -> list[list[RetrievalResult]]:
    """Return one list of results per list of candidates."""
    signals = _signals(batch)
    with no_collection():
        created = list(map(RetrievalResult.trusted, items.items(batch.rows), batch.scores.tolist(), signals))
    return [created[begin:end] for begin, end in pairwise(batch.offsets.tolist())]


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from scanning the whole heap repeatedly while thousands of long-lived objects are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _signals(batch: CandidateBatch) -> Iterator[dict[str, float]]:
    """The finite signals of each candidate."""
    keys, columns = tuple(batch.signals), [column.tolist() for column in batch.signals.values()]
    if not keys:
        return iter([{} for _ in batch.rows])
    if all(np.isfinite(column).all() for column in batch.signals.values()):
        return (dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True))
    return (
        {key: value for key, value in zip(keys, values, strict=True) if value == value}  # noqa: PLR0124 -- only NaN differs
        for values in zip(*columns, strict=True)
    )
