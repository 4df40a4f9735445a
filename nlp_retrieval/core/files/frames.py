"""Items and queries as people hold them: DataFrames, Arrow tables, dicts, named tuples, pairs and texts.

No library of DataFrames is imported: pandas, Polars, DuckDB and Arrow all export Arrow streams. Tables are checked for damage,
and Parquet files are read within bounds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeGuard, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from nlp_retrieval.core.components.component import Component, is_abstract
from nlp_retrieval.core.files.opening import open_regular
from nlp_retrieval.core.files.records import (
    CONTENT_NAMES,
    ID_NAMES,
    LEAVE_OUT,
    MAX_ENTRY,
    JsonObject,
    as_id,
    as_text,
    as_title,
    likely,
    make_item,
    make_query,
    metadata_of,
    plain_name,
    plain_value,
    quoted,
    too_long,
    typed,
    with_title,
)
from nlp_retrieval.core.models import Query, SearchableItem
from nlp_retrieval.core.queries import check_queries, first_repeated
from nlp_retrieval.errors import InputError, ItemError, QueryError, SourceError


class BaseLoader(Component, ABC):
    """A source of items; a subclass defines ``stream``, or ``load`` alone, which may return what ``Searcher.index`` takes."""

    kind: ClassVar[str] = "loaders"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if is_abstract(cls, "stream") and cls.load is not BaseLoader.load:
            cls.stream = lambda self: items_of(self.load())  # type: ignore[method-assign]

    @abstractmethod
    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items in the order of the source, in bounded memory; SourceError says where it is malformed."""

    def load(self) -> list[SearchableItem]:
        """Return all items as a list."""
        return list(self.stream())


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


def items_of(source: Items) -> Iterator[SearchableItem]:
    """Yield the items of a loader, a table, records, or texts, which is read once; ItemError for anything else.

    What cannot be read is a SourceError, to distinguish it from errors of writing.

    Examples:
        >>> [item.item_id for item in items_of({"whale": "It eats krill.", "fox": "It hunts."})]
        ['whale', 'fox']
    """
    if isinstance(source, SearchableItem):
        raise ItemError("one item is given and a list is expected; write [item]")
    try:
        yield from source.stream() if isinstance(source, BaseLoader) else _read(source, _ITEM)
    except OSError as error:
        raise SourceError(f"the items cannot be read: {error}") from error


def queries_of(source: Queries) -> list[Query]:
    """Return the queries of a table, records, texts by id, texts, or one text; QueryError for anything else."""
    if isinstance(source, Query):
        raise QueryError(f"one query ({source.query_id!r}) is given and a list is expected; write [query]")
    queries: list[Query] = list(_read([source] if isinstance(source, str) else source, _QUERY))
    if (repeated := first_repeated(query.query_id for query in queries)) is not None:
        raise QueryError(f"two queries have the id {repeated!r}; make query ids unique")
    return queries


def are_texts(queries: Queries) -> TypeGuard[str | Sequence[str]]:
    """Return whether queries are one text or texts alone."""
    return isinstance(queries, str) or (isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries))


def texts_of(queries: Queries) -> tuple[list[str], list[str]]:
    """Return the ids and the texts of queries; the id of a text alone is its position, from 0; QueryError if there are none.

    Examples:
        >>> texts_of(["who eats krill", "animals in the snow"])
        (['0', '1'], ['who eats krill', 'animals in the snow'])
    """
    if are_texts(queries):
        texts = check_queries(queries)
        return [str(number) for number in range(len(texts))], texts
    known = queries_of(queries)
    return [query.query_id for query in known], check_queries([query.text for query in known])


def rows_of(source: object, what: str, error: type[InputError], names: Sequence[str] = ()) -> Iterator[tuple[str, JsonObject]]:
    """Yield the rows of a table, or records, as dicts, each with its location; ``names`` are the columns of plain tuples."""
    try:
        for location, entry in _entries(source, what):
            record = _fields_of(location, entry)
            if record is None and isinstance(entry, tuple | list) and len(entry) <= len(names):
                record = _fields_of(location, dict(zip(names, entry, strict=False)))
            if record is None:
                pattern = f" or a tuple ({', '.join(names)})" if names else ""
                raise SourceError(f"{location} is {typed(entry)}; expected a row by column, such as a dict{pattern}")  # noqa: TRY301
            yield location, record
    except SourceError as problem:
        raise error(str(problem)) from None


def is_table(source: object) -> bool:
    """Return whether something is a table of rows, of any library of DataFrames; it is not read."""
    return hasattr(source, "__arrow_c_stream__") and not hasattr(type(source), "dtype")


class _Column(NamedTuple):
    """What a field is called in messages, the names that it may have, in lower case, and others that it often has."""

    what: str
    names: tuple[str, ...]
    hints: tuple[str, ...] = ()


class _Kind(NamedTuple):
    """Items or queries: their id, their text and a third field, which may be missing."""

    what: str
    fields: tuple[_Column, _Column, _Column]
    model: type[SearchableItem | Query]
    make: Callable[..., SearchableItem | Query]
    error: type[InputError]


def _item(location: str, item_id: str, text: str, title: Any, metadata: JsonObject) -> SearchableItem:
    return make_item(location, item_id, text, with_title(location, as_title(location, "title", title), metadata))


def _query(location: str, query_id: str, text: str, family: Any, metadata: JsonObject) -> Query:
    known = None if family in (None, "") else as_id(location, "family", family)
    return make_query(location, query_id, text, known, metadata)


_ITEM = _Kind(
    "item",
    (
        _Column("the id", ("id", "item_id", "_id", "docno", "doc_id", "docid"), ID_NAMES),
        _Column("the text", ("text", "content", "contents", "body"), CONTENT_NAMES),
        _Column("the title", ("title",)),
    ),
    SearchableItem,
    _item,
    ItemError,
)
_QUERY = _Kind(
    "query",
    (
        _Column("the query's id", ("qid", "query_id", "id", "_id"), ("question_id", "topic_id", "number", "topic")),
        _Column("the query", ("query", "text", "question"), ("title", "claim")),
        _Column("the query's family", ("family",)),
    ),
    Query,
    _query,
    QueryError,
)
_NAMES_OF_FIELDS = {name for kind in (_ITEM, _QUERY) for field in kind.fields[:2] for name in field.names}


def _read(source: Any, kind: _Kind) -> Iterator[Any]:
    """Yield the items or queries of a source."""
    try:
        for position, (location, entry) in enumerate(_entries(source, kind.what)):
            yield entry if isinstance(entry, kind.model) else _made(location, position, entry, kind)
    except SourceError as error:
        raise kind.error(str(error)) from None


def _made(location: str, position: int, entry: object, kind: _Kind) -> SearchableItem | Query:
    own_id = None
    if isinstance(entry, tuple | list) and len(entry) == 2 and not hasattr(entry, "_asdict"):
        own_id, entry = as_id(location, "id", plain_value(location, "id", entry[0])), entry[1]
    if isinstance(entry, str):
        return kind.make(location, str(position) if own_id is None else own_id, entry, None, {})
    if (record := _fields_of(location, entry)) is None:
        wanted = f"{kind.model.__name__}, a dict, a pair (id, text) or a text"
        raise SourceError(f"{location} is {typed(entry)}; expected a {wanted}")
    try:
        id_column, text_column, third = columns = _columns(kind, tuple(record), own_id is not None)
    except SourceError as error:
        raise SourceError(f"{location}: {error}") from None
    if record[text_column] is None:
        raise SourceError(f'{location}: "{text_column}" is missing; fill it with text, or leave the row out')
    item_id = as_id(location, id_column, record[id_column]) if own_id is None else own_id
    text = as_text(location, text_column, record[text_column])
    used = [column for column in columns if column]
    return kind.make(location, item_id, text, record[third] if third else None, metadata_of(location, record, used))


@lru_cache(1024)
def _columns(kind: _Kind, names: tuple[str, ...], has_id: bool) -> tuple[str, str, str]:
    """The columns of id, text and the third field; "" where there is none."""
    columns = []
    for field, needed in zip(kind.fields, (not has_id, True, False), strict=True):
        there = [] if has_id and field is kind.fields[0] else [name for name in names if plain_name(name) in field.names]
        if len(there) > 1:
            raise SourceError(f"{quoted(there)} could each be {field.what}; rename or drop all but one")
        if needed and not there:
            wanted = field.names[0]
            meant = likely(wanted, names, field.hints)
            cure = f'rename "{meant}" to "{wanted}"' if meant else "rename the one that has it, or add it"
            raise SourceError(f'no column with {field.what}, such as "{wanted}" (found: {quoted(names)}); {cure}')
        columns += there or [""]
    return columns[0], columns[1], columns[2]


def _entries(source: Any, what: str) -> Iterator[tuple[str, object]]:
    """Yield the entries of a source, each with its location."""
    if is_table(source):
        yield from rows_of_batches(type(source).__name__, iter(_arrow(source).to_batches(BATCH)))
        return
    plural = "queries" if what == "query" else f"{what}s"
    if isinstance(source, Mapping):
        if not _NAMES_OF_FIELDS.isdisjoint(plain_name(str(key)) for key in source):
            raise SourceError(f"one {what} is given and a list is expected; write [{what}]")
        source = source.items()
    elif isinstance(source, str | bytes) or not isinstance(source, Iterable):
        cure = f"pass a DataFrame, or [{what}, ...]; a loader reads a file, such as JsonlLoader(path)"
        raise SourceError(f"{plural} come as a list or a DataFrame, not as {type(source).__name__}; {cure}")
    elif hasattr(source, "index") and (
        getattr(source.index, "name", None) is not None or getattr(source.index, "inferred_type", "integer") != "integer"
    ):
        raise SourceError(f"{type(source).__name__} has ids as its index; pass dict(series)")
    for number, entry in enumerate(source, 1):
        yield f"{what} {number}", entry


def _fields_of(location: str, entry: Any) -> JsonObject | None:
    """Return a dict or a named tuple as values of JSON by column; None for anything else."""
    record = entry._asdict() if isinstance(entry, tuple) and hasattr(entry, "_asdict") else entry
    if not isinstance(record, Mapping):
        return None
    return {str(key): plain_value(location, str(key), value) for key, value in record.items()}


def _arrow(frame: Any) -> pa.Table:
    """Return a table of any library as one of Arrow."""
    kind = type(frame).__name__
    if type(frame).__module__.partition(".")[0] == "pandas":
        named = {name for name in frame.index.names if name is not None}
        if named and not named & set(frame.columns):  # an index with a name is a column; without one, it numbers rows
            frame = frame.reset_index()
        # Arrow would have a period as the number of months since 1970
        frame = frame.astype({name: str for name, dtype in frame.dtypes.items() if str(dtype).startswith("period")})
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError, OverflowError) as error:
        reason = "; ".join(map(str, error.args))[:300]
        cure = "name each column once, and make it one type, such as df[name] = df[name].astype(str)"
        raise SourceError(f"{kind}: {reason}; {cure}") from None
    if (repeated := first_repeated(table.column_names)) is not None:
        raise SourceError(f'{kind}: two columns are called "{repeated}"; rename one')
    return table.drop_columns([name for name in table.column_names if name.startswith("__index_level_")])


# Rows of Arrow batches as JSON objects, and Parquet files.

BATCH = 256
"""Rows at a time: few, because a row may be a whole book."""

# A few kilobytes of Parquet may stand for gigabytes: a page may be compressed a thousandfold, and one long text may be that of
# all rows. So the sizes in the footer are compared before the data are read, and a table is read in parts.

_LARGEST_UNPACKED = 2**28
"""Bytes of a column in a row group that may be packed more than ``_MOST_PACKED`` times."""
_MOST_PACKED = 200
_ORDINARY = 10
"""How many times text is packed at most, as a rule; of more, few rows are read at a time."""
_LARGEST_TABLE = 2**31


def open_parquet(source: str | Path) -> tuple[pq.ParquetFile, int]:
    """Open a Parquet file, and say how many rows to read at a time; ArrowInvalid for none, or one that unpacks to much more."""
    open_regular(Path(source)).close()  # Arrow would wait for a pipe
    file = pq.ParquetFile(source, pre_buffer=False, buffer_size=2**20)
    rows = BATCH
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    for column in (group.column(number) for group in groups for number in range(group.num_columns)):
        unpacked, packed = column.total_uncompressed_size, max(column.total_compressed_size, 1)
        if unpacked > max(_LARGEST_UNPACKED, _MOST_PACKED * packed):
            file.close()
            raise pa.ArrowInvalid(
                f"column {column.path_in_schema!r} unpacks from {packed:,} bytes to {unpacked:,}; is it what it should be?"
            )
        if unpacked > _ORDINARY * packed:  # any of its values may be as long as all of them together
            rows = min(rows, max(1, MAX_ENTRY // unpacked))
    return file, rows


def read_parquet(path: str | Path) -> pa.Table:
    """Return a Parquet file as a table of at most 2 GiB; ArrowInvalid for none, or a larger one."""
    file, rows = open_parquet(path)
    batches: list[pa.RecordBatch] = []
    size = 0
    with file:
        for batch in file.iter_batches(16 * rows):
            size += batch.nbytes
            if size > _LARGEST_TABLE:
                raise pa.ArrowInvalid(f"it takes more than {_LARGEST_TABLE >> 30} GiB")
            batches.append(batch)
        return pa.Table.from_batches(batches, file.schema_arrow).combine_chunks()


_PLAIN = pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean


def rows_of_batches(source: str, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the rows of batches, each with its location: ``items.parquet, row 17``; SourceError for any fault."""
    number = 0
    try:
        for batch in batches:
            batch.validate(full=True)  # untrusted data may have offsets outside its memory
            odd = [(field.name, field.type) for field in batch.schema if not any(is_one(field.type) for is_one in _PLAIN)]
            whole = _readable(batch)
            for part in [whole] if whole.nbytes <= MAX_ENTRY else (whole.slice(row, 1) for row in range(len(whole))):
                if part.nbytes > MAX_ENTRY:
                    raise too_long(f"{source}, row {number + 1}")
                for row in part.to_pylist(maps_as_pydicts="strict"):
                    number += 1
                    location = f"{source}, row {number}"
                    for column, kind in odd:
                        row[column] = plain_value(location, column, _as_written(kind, row[column]))
                    yield location, row
    except SourceError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{source}: damaged after row {number} ({str(error)[:200]}); fetch or write it again") from error
    except (OverflowError, ValueError, LookupError) as error:  # a date after the year 9999, a key twice in a map
        raise SourceError(
            f"{source}, row {number + 1} or soon after: a value that Python has no form for ({str(error)[:200]}); {LEAVE_OUT}"
        ) from None


def _readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with times in microseconds, the finest that Python knows, with and without pandas; no periods of it."""
    for position, field in enumerate(batch.schema):
        if "pandas.period" in f"{field.type} {field.metadata}":  # it would be the number of months since 1970
            raise ValueError(f'"{field.name}" holds periods of pandas')
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            coarser = pa.timestamp("us", field.type.tz)
        elif field.type == pa.time64("ns"):
            coarser = pa.time64("us")
        else:
            continue
        batch = batch.set_column(position, field.name, batch.column(position).cast(coarser, safe=False))
    return batch


def _as_written(kind: pa.DataType, value: Any) -> Any:
    """A value in which 0.7 in single precision is 0.7."""
    if isinstance(value, list) and hasattr(kind, "value_type"):
        return [_as_written(kind.value_type, inner) for inner in value]
    if isinstance(value, dict) and (pa.types.is_struct(kind) or pa.types.is_map(kind)):
        kinds = {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
        return {key: _as_written(kinds[key] if kinds else kind.item_type, inner) for key, inner in value.items()}
    is_short = isinstance(value, float) and pa.types.is_floating(kind) and kind != pa.float64()
    return float(str(kind.to_pandas_dtype()(value))) if is_short else value
