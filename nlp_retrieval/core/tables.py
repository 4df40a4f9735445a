"""Search results and measurements for notebooks: as tables of pandas, Polars and Arrow, and as short HTML.

HTML is escaped, free of characters that reverse or hide text, and has no colours of its own, so it is readable on any
background.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any

import pyarrow as pa

from nlp_retrieval.core.models import RetrievalResult, excerpt
from nlp_retrieval.errors import DependencyError

_JOINERS = "\u200c\u200d"
_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"


class AsTable:
    """Conversion to tables."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``."""
        _imported("pandas")  # Arrow's own message does not name it
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``."""
        return _imported("polars").from_arrow(self.to_arrow())


def _imported(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise DependencyError(f"to_{package} needs {package}: pip install {package} ({error})") from None


# Results of a search: lists, which behave like ordinary lists, and convert to tables.


class RankedList(list[RetrievalResult]):
    """The results of one query, best first, with its text and its id."""

    def __init__(self, results: Iterable[RetrievalResult], query: str, query_id: str) -> None:
        super().__init__(results)
        self.query = query
        self.query_id = query_id

    def __repr__(self) -> str:
        first = [f"{excerpt(hit.item.title or hit.item.item_id, 40)} ({hit.score:.4g})" for hit in self[:3]]
        shown = ", ".join([*first, "…"][: len(self)])
        return f"<{len(self)} results for {excerpt(self.query, 60)!r}{': ' * bool(self)}{shown}>"


class RankedLists(list[RankedList], AsTable):
    """Results of a search: a :class:`RankedList` per query, and all their rows as a table.

    The table has a row per result: ``qid``, ``docno``, ``rank`` (from 1) and ``score``, as in a TREC run; with details also
    ``query``, ``title``, ``content``, a column per signal (``bm25.rank``) and one per key of the metadata (``metadata.year``).

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> results = searcher.search(["krill", "snow"])
        >>> results.to_pandas()[["qid", "docno", "rank"]].to_numpy().tolist()
        [['0', 'krill', 1], ['0', 'whale', 2], ['1', 'fox', 1]]
    """

    def __init__(self, queries: Sequence[str], lists: Iterable[list[RetrievalResult]], query_ids: Sequence[str]) -> None:
        super().__init__(RankedList(*parts) for parts in zip(lists, queries, query_ids, strict=True))

    def to_arrow(self, *, details: bool = False) -> pa.Table:
        """Return an Arrow table."""
        rows = [(results, rank, hit) for results in self for rank, hit in enumerate(results, 1)]
        table = {
            "qid": pa.array([results.query_id for results, _, _ in rows], pa.string()),
            "docno": pa.array([hit.item.item_id for *_, hit in rows], pa.string()),
            "rank": pa.array([rank for _, rank, _ in rows], pa.int64()),
            "score": pa.array([hit.score for *_, hit in rows], pa.float64()),
        }
        if not details:
            return pa.table(table)
        items = [hit.item for *_, hit in rows]
        table |= {
            "query": pa.array([results.query for results, _, _ in rows], pa.string()),
            "title": pa.array([item.title for item in items], pa.string()),
            "content": pa.array([item.content for item in items], pa.string()),
        }
        metadata = [{f"metadata.{key}": value for key, value in item.metadata.items() if key != "title"} for item in items]
        return pa.table(table | columns_of([hit.signals for *_, hit in rows]) | columns_of(metadata))

    def to_pandas(self, *, details: bool = False) -> Any:
        """Return a ``pandas.DataFrame``; a DependencyError if pandas is not installed."""
        _imported("pandas")
        return self.to_arrow(details=details).to_pandas()

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the score by item id, best first, by query id: a run as ranx and pytrec_eval take it."""
        return {results.query_id: {hit.item.item_id: hit.score for hit in results} for results in self}

    def __repr__(self) -> str:
        counts = [str(len(results)) for results in self[:10]]
        return f"<{len(self)} {'query' if len(self) == 1 else 'queries'}: {', '.join([*counts, '…'][: len(self)])} results>"


# Tables of figures.


class DataTable(AsTable):
    """A table of figures."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def __repr__(self) -> str:
        return repr(self._table)

    def _repr_html_(self) -> str:
        rows = ([_text(value) for value in row.values()] for row in self._table.to_pylist())
        return html_table(self._table.column_names, rows)


def columns_of(rows: Sequence[Mapping[str, object]]) -> dict[str, pa.Array]:
    """Return rows as Arrow columns, in the order in which their names appear; missing values are null."""
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    return {name: _column(values) for name, values in columns.items()}


def _column(values: list[object]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):  # of several types
        return pa.array([None if value is None else str(value) for value in values])


def _text(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """Return a table of texts as HTML, with a note below it."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{_cells('th', heads)}</tr></thead><tbody>{body}</tbody></table><p>{html_text(note)}</p>"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f'<{tag} style="{_CELL}">{html_text(text)}</{tag}>' for text in texts)


def html_text(text: str) -> str:
    """Return a text as HTML: escaped, and without characters that reverse or hide it."""
    if not (text.isascii() and text.isprintable()):
        shown = (char if char.isprintable() or char in _JOINERS else " " if char.isspace() else "�" for char in text)
        text = "".join(shown)
    return escape(text)
