"""Results of a search: lists, which behave like ordinary lists, and convert to tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from nlp_retrieval.core.models import RetrievalResult, excerpt
from nlp_retrieval.core.tables import AsTable, columns_of, imported


class RankedList(list[RetrievalResult]):
    """The results of one query, best first, with its text and its id."""

    def __init__(self, results: Iterable[RetrievalResult] = (), query: str = "", query_id: str = "0") -> None:
        super().__init__(results)
        self.query = query
        self.query_id = query_id

    def __repr__(self) -> str:
        first = [f"{excerpt(hit.item.title or hit.item.item_id, 40)} ({hit.score:.4g})" for hit in self[:3]]
        return f"<{len(self)} results for {excerpt(self.query, 60)!r}: {', '.join([*first, '…'][: len(self)])}>"


class RankedLists(list[RankedList], AsTable):
    """Results of a search: a :class:`RankedList` per query, and all their rows as a table.

    The table has a row per result: ``qid``, ``docno``, ``rank`` (from 1) and ``score``, as in a TREC run; with details also
    ``query``, ``title``, ``content``, a column per signal (``bm25.rank``) and one per key of the metadata (``metadata.year``).

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

    def to_arrow(self, *, details: bool = False) -> pa.Table:
        """Return an Arrow table."""
        rows = [(found, rank, hit) for found in self for rank, hit in enumerate(found, 1)]
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

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the score by item id, best first, by query id: a run as ranx and pytrec_eval take it."""
        return {results.query_id: {hit.item.item_id: hit.score for hit in results} for results in self}
