"""What is found and measured, for notebooks: as tables of pandas, Polars and Arrow, and as short HTML.

HTML is escaped, free of characters that turn or hide text, and without colours of its own, so that it can be read on any
ground.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from nlp_retrieval.errors import DependencyError

_JOINERS = "\u200c\u200d"
_CELL = "text-align:left;vertical-align:top;padding:2px 10px 2px 0"


class AsTable:
    """What can be taken as a table."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return a table of Arrow."""

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``.

        Raises:
            DependencyError: pandas is not installed.
        """
        try:
            import pandas  # noqa: F401 -- which Arrow does not say by name
        except ImportError as error:
            raise DependencyError(f"to_pandas needs pandas: pip install pandas ({error})") from None
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``.

        Raises:
            DependencyError: Polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            raise DependencyError(f"to_polars needs Polars: pip install polars ({error})") from None
        return polars.from_arrow(self.to_arrow())


class DataTable(AsTable):
    """A table of figures, which ``polars.DataFrame(...)``, DuckDB and whatever else reads Arrow take as it is.

    Args:
        table: of Arrow.
    """

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
    """Return rows as columns of Arrow, in the order in which their names appear; what a row has not is null.

    Values of kinds that no column can hold together are written as text.

    Args:
        rows: plain values by name.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: _column([row.get(name) for row in rows]) for name in names}


def _column(values: list[object]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _text(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]], left_out: str = "") -> str:
    """Return a table of texts as HTML.

    Args:
        heads: of its columns.
        rows: their cells; one that is :class:`Html` stands as it is.
        left_out: what is not shown, as a last line.
    """
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{_cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>{dim(left_out)}"


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f'<{tag} style="{_CELL}">{html_text(text)}</{tag}>' for text in texts)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def html_text(text: str) -> Html:
    """Return a text as HTML: escaped, and without characters that turn or hide it."""
    if isinstance(text, Html):
        return text
    if not (text.isascii() and text.isprintable()):
        shown = (char if char.isprintable() or char in _JOINERS else " " if char.isspace() else "�" for char in text)
        text = "".join(shown)
    return Html(escape(text))


def dim(text: str) -> Html:
    """Return a text in less than full strength, as HTML."""
    return Html(f'<span style="opacity:.65">{html_text(text)}</span>' if text else "")
