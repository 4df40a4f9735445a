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
        imported("pandas", "to_pandas")  # Arrow's own message does not name it
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``."""
        return imported("polars", "to_polars").from_arrow(self.to_arrow())


def imported(package: str, method: str) -> Any:
    """Import a package of DataFrames."""
    try:
        return import_module(package)
    except ImportError as error:
        raise DependencyError(f"{method} needs {package}: pip install {package} ({error})") from None


class DataTable(AsTable):
    """A table of figures, accepted directly by ``polars.DataFrame(...)``, DuckDB and other readers of Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        return self._table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        return f"DataTable({len(self)} rows, {self._table.num_columns} columns; to_pandas(), to_polars(), to_arrow())"

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
