"""Items and queries as people hold them: DataFrames, Arrow tables, dicts, named tuples, pairs and texts.

Columns are known by the names that people give them, in any case; if two could be meant, or none, an error says what to rename.
All other columns are metadata. No library of DataFrames is imported: pandas, Polars, DuckDB and Arrow all export Arrow streams.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import pyarrow as pa
from pydantic import JsonValue

from nlp_retrieval.core.components.component import Component, is_abstract
from nlp_retrieval.core.files.arrow_rows import BATCH, rows_of_batches
from nlp_retrieval.core.files.records import (
    CONTENT_NAMES,
    ID_NAMES,
    JsonObject,
    as_id,
    as_text,
    as_title,
    likely,
    make_item,
    make_query,
    metadata_of,
    plain_value,
    quoted,
    typed,
    with_title,
)
from nlp_retrieval.core.models import Query, SearchableItem
from nlp_retrieval.core.queries import check_queries, first_repeated
from nlp_retrieval.errors import InputError, ItemError, QueryError, SourceError


class BaseLoader(Component, ABC):
    """A source of items.

    A subclass defines ``stream``; or ``load`` alone, which may return items in any form that ``Searcher.index`` takes, all at
    once: then ``stream`` yields what it returns.
    """

    kind: ClassVar[str] = "loaders"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if is_abstract(cls, "stream") and cls.load is not BaseLoader.load:
            cls.stream = BaseLoader._stream_of_load  # type: ignore[method-assign]

    @abstractmethod
    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items in the order of the source; memory must not grow with its size.

        Raises:
            SourceError: the source is missing or malformed; the message says where.
        """

    def load(self) -> list[SearchableItem]:
        """Return all items as a list."""
        return list(self.stream())

    def _stream_of_load(self) -> Iterator[SearchableItem]:
        """Yield what ``load`` returns, as items."""
        yield from items_of(self.load())


@runtime_checkable
class ArrowStream(Protocol):
    """A table of any library that exports Arrow: a DataFrame of pandas or Polars, an Arrow table, a relation of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a capsule that holds an Arrow stream."""


Record: TypeAlias = Mapping[str, Any] | tuple[Any, ...] | str
"""A dict by column, a named tuple, a pair of id and text, or a text alone, whose id is its position, from 0."""

Items: TypeAlias = BaseLoader | Iterable[SearchableItem | Record] | Mapping[str, Any] | ArrowStream
"""A loader, items, records, a table, or texts (or records) by id."""

Queries: TypeAlias = str | Iterable[Query | Record] | Mapping[str, Any] | ArrowStream
"""Queries, records, a table, texts by id, texts alone, or one text."""


@dataclass(frozen=True)
class Field:
    """A field of a record.

    Args:
        what: the field, for messages.
        names: the names that it may have, in lower case; the first is the one that messages suggest.
        hints: further names that it often has, for messages.
    """

    what: str
    names: tuple[str, ...]
    hints: tuple[str, ...] = ()

    def find(self, location: str, names: Iterable[str], *, needed: bool = True) -> str | None:
        """Return the name of the field in a record.

        Raises:
            SourceError: several names could be meant, or it is missing although it is needed.
        """
        there = [name for name in names if name.strip().lower() in self.names]
        if len(there) > 1:
            raise SourceError(f"{location}: {quoted(there)} could each be {self.what}; rename or drop all but one")
        if there or not needed:
            return there[0] if there else None
        meant = likely(self.names[0], names, self.hints)
        cure = f'rename "{meant}" to "{self.names[0]}"' if meant else "rename the one that has it, or add it"
        raise SourceError(
            f'{location}: no column with {self.what}, such as "{self.names[0]}" (found: {quoted(list(names))}); {cure}'
        )


_ITEM_ID = Field("the id", ("id", "item_id", "_id", "docno", "doc_id", "docid"), ID_NAMES)
_ITEM_TEXT = Field("the text", ("text", "content", "contents", "body"), CONTENT_NAMES)
_TITLE = Field("the title", ("title",))
QUERY_ID = Field("the query's id", ("qid", "query_id", "id", "_id"), ("query-id", "question_id", "topic_id", "number", "topic"))
_QUERY_TEXT = Field("the query", ("query", "text", "question"), ("title", "claim"))
_FAMILY = Field("the query's family", ("family",))
_RECORD = (_ITEM_ID, _ITEM_TEXT, QUERY_ID, _QUERY_TEXT)
_LEAVE_OUT = "convert it to text, or leave the column out"


def items_of(source: Items) -> Iterator[SearchableItem]:
    """Yield the items of a loader, a table, records, or texts.

    Args:
        source: what :data:`Items` describes; read once.

    Raises:
        ItemError: it holds something else, a column is missing or ambiguous, or a value cannot be stored.
        SourceError: the source of a loader cannot be read.
    """
    if isinstance(source, SearchableItem):
        raise ItemError(f"one item ({source.item_id!r}) is given and a list is expected; write [item]")
    if isinstance(source, BaseLoader):
        yield from source.stream()
        return
    columns = _Columns(_ITEM_ID, _ITEM_TEXT, _TITLE)
    for location, position, entry in _entries(source, "item", ItemError):
        try:
            item = entry if isinstance(entry, SearchableItem) else _item(location, position, entry, columns)
        except SourceError as error:
            raise ItemError(str(error)) from None
        yield item


def _item(location: str, position: int, entry: object, columns: _Columns) -> SearchableItem:
    if isinstance(entry, str):
        return make_item(location, str(position), entry, {})
    record, item_id = _record(location, entry, "a SearchableItem")
    if isinstance(record, str):
        return make_item(location, cast(str, item_id), record, {})
    found = columns.of(location, record, has_id=item_id is not None)
    id_column, text_column, title_column = found
    item_id = as_id(location, str(id_column), record[str(id_column)]) if item_id is None else item_id
    content = _text(location, str(text_column), record)
    title = "" if title_column is None else as_title(location, title_column, record[title_column])
    return make_item(
        location, item_id, content, with_title(location, title, metadata_of(location, record, [*filter(None, found)]))
    )


def queries_of(source: Queries) -> list[Query]:
    """Return the queries of a table, records, texts by id, or texts; a text alone counts as a list of one.

    Args:
        source: what :data:`Queries` describes.

    Raises:
        QueryError: it holds something else, a column is missing or ambiguous, or two queries have one id.
    """
    if isinstance(source, Query):
        raise QueryError(f"one query ({source.query_id!r}) is given and a list is expected; write [query]")
    columns = _Columns(QUERY_ID, _QUERY_TEXT, _FAMILY)
    entries = _entries([source] if isinstance(source, str) else source, "query", QueryError)
    try:
        queries = [
            entry if isinstance(entry, Query) else _query(location, position, entry, columns)
            for location, position, entry in entries
        ]
    except SourceError as error:
        raise QueryError(str(error)) from None
    if (repeated := first_repeated(query.query_id for query in queries)) is not None:
        raise QueryError(f"two queries have the id {repeated!r}; make query ids unique")
    return queries


def _query(location: str, position: int, entry: object, columns: _Columns) -> Query:
    if isinstance(entry, str):
        return make_query(location, str(position), entry)
    record, query_id = _record(location, entry, "a Query")
    if isinstance(record, str):
        return make_query(location, cast(str, query_id), record)
    found = columns.of(location, record, has_id=query_id is not None)
    id_column, text_column, family_column = found
    query_id = as_id(location, str(id_column), record[str(id_column)]) if query_id is None else query_id
    text = _text(location, str(text_column), record)
    family = None if family_column is None else record[family_column]
    known = None if family in (None, "") else as_id(location, str(family_column), family)
    return make_query(location, query_id, text, known, metadata_of(location, record, [*filter(None, found)]))


def texts_of(queries: Queries) -> tuple[list[str], list[str]]:
    """Return the ids and the texts of queries; the id of a text alone is its position, from 0.

    Raises:
        QueryError: as :func:`queries_of`.

    Examples:
        >>> texts_of(["who eats krill", "animals in the snow"])
        (['0', '1'], ['who eats krill', 'animals in the snow'])
        >>> texts_of(queries)[0]
        ['q1', 'q2']
    """
    if isinstance(queries, str) or (isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries)):
        texts = check_queries(queries)
        return [str(number) for number in range(len(texts))], texts
    known = queries_of(queries)
    return [query.query_id for query in known], check_queries([query.text for query in known])


def _text(location: str, column: str, record: JsonObject) -> str:
    if record[column] is None:
        cure = f'fill it with text, or leave the row out: df.dropna(subset=["{column}"])'
        raise SourceError(f'{location}: "{column}" is missing; {cure}')
    return as_text(location, column, record[column])


class _Columns:
    """The columns of records by field; looked up once for records of the same columns."""

    def __init__(self, *fields: Field) -> None:
        self._fields = fields
        self._found: dict[tuple[object, ...], list[str | None]] = {}

    def of(self, location: str, record: Mapping[str, JsonValue], *, has_id: bool = False) -> list[str | None]:
        """Return the columns of id and text, which are needed, and of the third field.

        Args:
            location: location of the record.
            record: by column.
            has_id: whether the id is known already.
        """
        key = (has_id, *record)
        if key not in self._found:
            if len(self._found) > 1000:
                self._found.clear()
            needed = (not has_id, True, False)
            self._found[key] = [
                None if has_id and not number else field.find(location, record, needed=is_needed)
                for number, (field, is_needed) in enumerate(zip(self._fields, needed, strict=True))
            ]
        return self._found[key]


def rows_of(source: object, what: str, error: type[InputError], names: Sequence[str] = ()) -> Iterator[tuple[str, JsonObject]]:
    """Yield the rows of a table, or records, as dicts by column, each with its location.

    Args:
        source: a table, dicts, named tuples, or tuples.
        what: word for one of them in messages.
        error: raised if something is none of these.
        names: the columns of plain tuples, which may be shorter.
    """
    for location, _, entry in _entries(source, what, error):
        try:
            record = _fields_of(location, entry)
            if record is None and isinstance(entry, tuple | list) and len(entry) <= len(names):
                record = _fields_of(location, dict(zip(names, entry, strict=False)))
        except SourceError as problem:
            raise error(str(problem)) from None
        if record is None:
            pattern = f" or a tuple ({', '.join(names)})" if names else ""
            raise error(f"{location} is {typed(entry)}; expected a row by column, such as a dict{pattern}")
        yield location, record


def is_table(source: object) -> bool:
    """Return whether something is a table of rows, of any library of DataFrames; it is not read."""
    exported = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__")
    is_column = hasattr(type(source), "dtype") or isinstance(source, pa.Array | pa.ChunkedArray)
    return exported and not is_column


def _entries(source: Any, what: str, error: type[InputError]) -> Iterator[tuple[str, int, object]]:
    """Yield the entries of a source, each with its location and its position from 0."""
    plural = "queries" if what == "query" else f"{what}s"
    try:
        table = _table(source)
    except SourceError as problem:
        raise error(str(problem)) from None
    if table is not None:
        name = type(source).__name__
        rows = rows_of_batches(name, iter(table.to_batches(BATCH)), _LEAVE_OUT)
        try:
            yield from ((location, number, row) for number, (location, row) in enumerate(rows))
        except SourceError as problem:
            raise error(str(problem)) from None
        return
    if isinstance(source, Mapping):
        if any(str(key).lower() in field.names for key in source for field in _RECORD):
            raise error(f"one {what} is given and a list is expected; write [{what}]")
        source = source.items()
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        cure = "call its collect() first" if hasattr(source, "collect") else f"pass a DataFrame, or [{what}, ...]"
        cure += "; a loader reads a file, such as JsonlLoader(path)" if isinstance(source, str | Path) else ""
        if isinstance(source, type):
            raise error(f"{plural} come as an object, not as the class {source.__name__}; write {source.__name__}(...)")
        raise error(f"{plural} come as a list or a DataFrame, not as {type(source).__name__}; {cure}")
    for number, entry in enumerate(source.to_pylist() if isinstance(source, pa.Array | pa.ChunkedArray) else source):
        yield f"{what} {number + 1}", number, entry


def _record(location: str, entry: object, wanted: str) -> tuple[JsonObject | str, str | None]:
    """Return a record, or a text, and its id if that is given beside it."""
    if (record := _fields_of(location, entry)) is not None:
        return record, None
    if isinstance(entry, tuple | list) and len(entry) == 2:
        entry_id, text = as_id(location, "id", plain_value(location, "id", entry[0])), entry[1]
        if isinstance(text, str):
            return text, entry_id
        if (record := _fields_of(location, text)) is not None:
            return record, entry_id
        raise SourceError(f"{location}: a pair is (id, text), and the second of this one is {typed(text)}; write it as text")
    raise SourceError(f"{location} is {typed(entry)}; expected {wanted}, a dict, a pair (id, text) or a text")


def _fields_of(location: str, entry: object) -> JsonObject | None:
    """Return a dict or a named tuple as values of JSON by column; None for anything else."""
    as_dict: Callable[[], dict[str, Any]] | None = getattr(entry, "_asdict", None)
    record = entry if isinstance(entry, Mapping) else as_dict() if isinstance(entry, tuple) and as_dict is not None else None
    if record is None:
        return None
    return {str(key): plain_value(location, str(key), value, cure=_LEAVE_OUT) for key, value in record.items()}


def _table(source: Any) -> pa.Table | None:
    """Return a table of any library as one of Arrow; None if it is no table.

    Raises:
        SourceError: a column holds values of several types, or two columns have one name.
    """
    index = getattr(source, "index", None)
    named = {name for name in getattr(index, "names", ()) if name is not None}
    if not is_table(source):
        # the values of a pandas Series with a numbered index are texts, and those with another index have ids
        if hasattr(index, "names") and (named or getattr(index, "dtype", np.dtype(object)).kind not in "iu"):
            raise SourceError(f"{type(source).__name__} has ids as its index; pass dict(series)")
        return None
    if named and not named & set(source.columns):  # pandas: an index with a name is a column; without one, it numbers rows
        source = source.reset_index()
    kind = type(source).__name__
    try:
        table = _as_arrow(source)
    except pa.ArrowInvalid as error:
        if "non-struct" in str(error):
            return None  # a single column
        raise SourceError(f"{kind}: {_mixed(source, error)}") from None
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError, OverflowError) as error:
        raise SourceError(f"{kind}: {_mixed(source, error)}") from None
    repeated = first_repeated(table.column_names)
    if repeated is not None:
        raise SourceError(f'{kind}: two columns are called "{repeated}"; rename one')
    return table.drop_columns([name for name in table.column_names if name.startswith("__index_level_")])


def _as_arrow(source: Any) -> pa.Table:
    of_pandas = type(source).__module__.partition(".")[0] == "pandas"  # which had no stream before 2.2
    if of_pandas:  # Arrow would have a period as the number of months since 1970
        source = source.astype({name: str for name, kind in source.dtypes.items() if str(kind).startswith("period")})
    if of_pandas or hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    from pyarrow.interchange import from_dataframe

    return from_dataframe(source)


def _mixed(frame: Any, error: Exception) -> str:
    """Return what is wrong with a DataFrame that has no form in Arrow: the first column with values of several types."""
    for name in getattr(frame, "columns", ()):
        try:
            values = list(frame[name])
        except (TypeError, ValueError):
            continue
        known = [(row, value) for row, value in enumerate(values, start=1) if not _is_missing(value)]
        other = next(((row, value) for row, value in known if type(value) is not type(known[0][1])), None)
        if other is not None:
            row, value = other
            return (
                f'column "{name}" begins with {typed(known[0][1])}, and row {row} has {typed(value)}; make them one type, '
                f'such as df["{name}"] = df["{name}"].astype(str)'
            )
    return f"it cannot be converted to Arrow ({str(error)[:200]})"


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
