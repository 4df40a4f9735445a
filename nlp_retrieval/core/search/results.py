"""Rows become results: the last step of a search, for the final k only.

Each result has its own item, including metadata: changing one changes no other.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, SupportsIndex, overload

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from nlp_retrieval.core.candidates import CandidateBatch
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import RetrievalResult, SearchableItem, excerpt
from nlp_retrieval.core.tables import AsTable, Html, columns_of, dim, html_table, html_text

# Results of a search: lists of results, which behave like ordinary lists, and convert to tables.


_MOST_RESULTS = 10
_MOST_QUERIES = 5
_FIXED = {
    "query_number": pa.int64(),
    "query": pa.string(),
    "rank": pa.int64(),
    "item_id": pa.string(),
    "title": pa.string(),
    "score": pa.float64(),
    "content": pa.string(),
}


class RankedList(list[RetrievalResult], AsTable):
    """The results of one query, best first.

    As a table: a row per result, with ``query``, ``rank`` (from 1), ``item_id``, ``title``, ``score``, ``content``, a column
    per signal (``bm25.rank``) and one per key of the metadata (``metadata.year``).

    Args:
        results: best first.
        query: the query text.
    """

    def __init__(self, results: Iterable[RetrievalResult] = (), query: str = "") -> None:
        super().__init__(results)
        self.query = query

    @overload
    def __getitem__(self, key: SupportsIndex) -> RetrievalResult: ...
    @overload
    def __getitem__(self, key: slice) -> RankedList: ...
    def __getitem__(self, key: Any) -> Any:
        results = super().__getitem__(key)
        return RankedList(results, self.query) if isinstance(key, slice) else results

    def to_arrow(self) -> pa.Table:
        return _table([self]).drop_columns("query_number")

    def __repr__(self) -> str:
        first = [f"{excerpt(hit.item.title or hit.item.item_id, 40)} ({hit.score:.4g})" for hit in self[:3]]
        return f"<{len(self)} results for {excerpt(self.query, 60)!r}: {', '.join([*first, '…'][: len(self)])}>"

    def _repr_html_(self) -> str:
        return _shown(self, _MOST_RESULTS)


class RankedLists(list[list[RetrievalResult]], AsTable):
    """Results of a search: a :class:`RankedList` per query.

    As a table: all their rows, with ``query_number``, the number of the query in the search, from 0.

    Args:
        queries: the query texts.
        lists: the results of each query, best first.
    """

    def __init__(self, queries: Sequence[str] = (), lists: Iterable[list[RetrievalResult]] = ()) -> None:
        super().__init__(RankedList(results, query) for query, results in zip(queries, lists, strict=True))

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

    def to_arrow(self) -> pa.Table:
        return _table([*self])

    def __repr__(self) -> str:
        counts = [str(len(results)) for results in self[:10]]
        return f"<{len(self)} queries: {', '.join([*counts, '…'][: len(self)])} results>"

    def _repr_html_(self) -> str:
        parts = [
            f"<p><b>{html_text(excerpt(results.query))}</b></p>{_shown(results, _MOST_RESULTS if len(self) == 1 else 3)}"
            for results in self[:_MOST_QUERIES]
        ]
        if len(self) > _MOST_QUERIES:
            parts.append(f"<p>{dim(f'and {len(self) - _MOST_QUERIES:,} more queries')}</p>")
        return "".join(parts)


def _table(lists: Sequence[RankedList]) -> pa.Table:
    rows: list[dict[str, object]] = [
        {
            "query_number": number,
            "query": results.query,
            "rank": rank,
            "item_id": hit.item.item_id,
            "title": hit.item.title,
            "score": hit.score,
            "content": hit.item.content,
        }
        for number, results in enumerate(lists)
        for rank, hit in enumerate(results, start=1)
    ]
    hits = [hit for results in lists for hit in results]
    fixed = {name: pa.array([row[name] for row in rows], kind) for name, kind in _FIXED.items()}
    metadata = [{f"metadata.{key}": value for key, value in hit.item.metadata.items() if key != "title"} for hit in hits]
    return pa.table(fixed | columns_of([hit.signals for hit in hits]) | columns_of(metadata))


def _shown(results: RankedList, most: int) -> str:
    if not results:
        return f"<p>{dim('nothing found')}</p>"
    rows = [
        [
            str(rank),
            Html(f"<b>{html_text(excerpt(hit.item.title or hit.item.item_id, 80))}</b><br>{dim(hit.item.item_id)}"),
            f"{hit.score:.4g}",
            Html(
                f"{html_text(excerpt(hit.item.content))}<br>"
                f"{dim('  '.join(f'{key} {value:.4g}' for key, value in hit.signals.items()))}"
            ),
        ]
        for rank, hit in enumerate(results[:most], start=1)
    ]
    left_out = f"and {len(results) - most:,} more" if len(results) > most else ""
    return html_table(["", "item", "score", ""], rows, left_out)


_NESTED = (dict, list)


def to_results(batch: CandidateBatch, items: ItemTable) -> list[list[RetrievalResult]]:
    """Return one list of results per list of candidates."""
    with no_collection():
        items_found = _copied_repeats(items.items(batch.rows))
        created = list(map(RetrievalResult.trusted, items_found, batch.scores.tolist(), _signals(batch)))
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


def _copied_repeats(items: list[SearchableItem]) -> list[SearchableItem]:
    """The same items, with a copy for each repetition."""
    seen: set[int] = set()
    for position, item in enumerate(items):
        if id(item) in seen:
            metadata = item.metadata.copy()
            for key, value in metadata.items():
                if isinstance(value, _NESTED):
                    metadata[key] = _copied(value)
            items[position] = SearchableItem.trusted(item.item_id, item.content, metadata)
        else:
            seen.add(id(item))
    return items


def _copied(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def _signals(batch: CandidateBatch) -> Iterator[dict[str, float]]:
    keys = tuple(batch.signals)
    if not keys:
        return iter([{} for _ in batch.rows])
    columns = [column.tolist() for column in batch.signals.values()]
    if all(np.isfinite(column).all() for column in batch.signals.values()):
        return (dict(zip(keys, values, strict=True)) for values in zip(*columns, strict=True))
    return (
        {key: value for key, value in zip(keys, values, strict=True) if value == value}  # noqa: PLR0124 -- only NaN differs
        for values in zip(*columns, strict=True)
    )
