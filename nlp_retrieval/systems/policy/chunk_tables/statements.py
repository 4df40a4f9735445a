"""Statements that read, compare and write chunks and their relations. This module needs SQLAlchemy.

Values are never part of a statement: ids, countries and names are passed as parameters. Vectors travel in pgvector's text form.

Similarities are exact by default: every chunk that passes the filter is compared. A chunk without a vector, or with a zero
vector, has no similarity: it is omitted and counted, never given 0.

Documents are written whole. An existing chunk is replaced; writing the same items twice changes nothing. Writers of one
document wait for one another at its row, so that the result is what one of them wrote.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Float,
    FromClause,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    bindparam,
    case,
    cast,
    func,
    null,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB, UUID, insert
from sqlalchemy.types import UserDefinedType

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ItemError, ModelError, QueryError, RetrievalWarning, SourceError, nearest
from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, DOCUMENTS, RELATIONS, Layout, quoted
from nlp_retrieval.systems.policy.chunk_tables.rows import (
    DOCUMENT_KEY,
    ID_KEY,
    RELATION_TYPES,
    ChunkCounts,
    ChunkRelation,
    ChunkRow,
    ChunkSimilarities,
    DocumentRow,
    Row,
    StoredRelation,
    chunk_uuid,
    json_value,
    own_id,
    relation_uuid,
    rows_of,
    type_of,
)

Floats = NDArray[np.float32]


def as_floats(vectors: object, names: Sequence[str] = ()) -> Floats:
    """Return vectors as an array; numbers too large for it become infinite.

    Args:
        vectors: ``[vectors, dimension]``.
        names: of the vectors, for the message.

    Raises:
        ValueError: they are not real numbers, or not of one length; the message names the first.
    """
    try:
        matrix = np.asarray(vectors)
    except ValueError:
        matrix = np.empty(0, object)
    if matrix.dtype.kind in "fiu":
        with np.errstate(over="ignore"):
            return matrix.astype(np.float32)
    rows = list(vectors) if isinstance(vectors, Iterable) else []
    for number, row in enumerate(rows):
        what = f"the vector of item {names[number]!r:.80}" if number < len(names) else f"vector {number + 1} of {len(rows)}"
        try:
            own = np.asarray(row)
        except ValueError:
            own = np.empty(0, object)
        if own.dtype.kind not in "fiu":
            first = next((value for value in np.ravel(own) if not isinstance(value, int | float)), None)
            raise ValueError(
                f"{what} holds {type(first).__name__} ({str(first)[:40]!r}) instead of numbers; pass an array of floats"
            )
    raise ValueError("the vectors are not an array of numbers of one length; pass an array of floats")


def as_text(vector: Floats) -> str:
    """Return a vector as text for pgvector; every float is restored exactly."""
    return f"[{','.join(map(repr, np.asarray(vector, np.float32).astype(float).tolist()))}]"


def from_text(text: str) -> Floats:
    """Return a vector from pgvector's text."""
    return np.array(text[1:-1].split(","), np.float32)


class Vector(UserDefinedType[Any]):
    """``vector(dimension)``, or another of pgvector's types, with the schema of the extension if it is given.

    Args:
        dimension: of the vectors; None: any.
        schema: of the extension.
        kind: ``vector`` or ``halfvec``.
    """

    cache_ok = True

    def __init__(self, dimension: int | None = None, schema: str | None = None, kind: str = "vector") -> None:
        self.dimension = dimension
        self.schema = schema
        self.kind = kind

    def get_col_spec(self, **_: Any) -> str:
        """Return the type for ``CREATE TABLE``."""
        prefix = "" if self.schema is None else f'"{self.schema.replace(chr(34), chr(34) * 2)}".'
        return f"{prefix}{self.kind}" + ("" if self.dimension is None else f"({self.dimension:d})")

    def bind_processor(self, dialect: Any) -> Callable[[Any], str | None]:
        """Return the conversion of numbers to PostgreSQL's text."""
        del dialect
        return lambda value: value if value is None or isinstance(value, str) else as_text(value)

    def result_processor(self, dialect: Any, coltype: Any) -> Callable[[Any], Floats | None]:
        """Return the conversion of PostgreSQL's text to numbers."""
        del dialect, coltype
        return lambda value: None if value is None else from_text(value)


class Source(NamedTuple):
    """Chunks with their documents, for statements.

    Args:
        rows: chunks, joined with documents.
        chunk: the chunks.
        document: the documents.
        country: of a chunk; NULL if it has none.
        of_document: the country stored with the document.
        of_chunk: the country stored with the chunk.
        data: the stored metadata of a chunk, as text.
        kept_id: the id stored by a row of this package.
    """

    rows: FromClause
    chunk: Any
    document: Any
    country: ColumnElement[Any]
    of_document: ColumnElement[Any]
    of_chunk: ColumnElement[Any]
    data: ColumnElement[Any]
    kept_id: ColumnElement[Any]


def source_of(layout: Layout) -> Source:
    """Return chunks with their documents; missing columns are NULL."""
    chunk, document = layout.table(CHUNKS).alias("chunk"), layout.table(DOCUMENTS).alias("document")
    rows = chunk.outerjoin(document, cast(document.c.id, Text) == cast(chunk.c.doc_id, Text))
    if layout.tables[CHUNKS]["doc_id"].type == layout.tables[DOCUMENTS]["id"].type:
        rows = chunk.outerjoin(document, document.c.id == chunk.c.doc_id)
    nothing: ColumnElement[Any] = cast(null(), Text)
    of_document = func.nullif(func.btrim(document.c.country), "") if "country" in document.c else nothing
    data, of_chunk, kept_id = nothing, nothing, nothing
    if "chunk_data" in chunk.c:
        data = cast(chunk.c.chunk_data, Text)
        keys = cast(chunk.c.chunk_data, JSONB)
        of_chunk, kept_id = func.nullif(func.btrim(keys["country"].astext), ""), keys[ID_KEY].astext
    country: ColumnElement[Any] = func.coalesce(of_document, of_chunk)
    if layout.one_place:  # which has an index
        country = document.c.country
    return Source(rows, chunk, document, country, of_document, of_chunk, data, kept_id)


def items_statement(layout: Layout, countries: Sequence[str] | None) -> Select[Any]:
    """Return the statement that reads chunks, document by document, in the order of their positions if they have one."""
    source = source_of(layout)
    chunk, document = source.chunk.c, source.document.c
    about = cast(document.metadata, Text) if "metadata" in document else cast(null(), Text)
    filename = cast(document.filename, Text) if "filename" in document else cast(null(), Text)
    position: ColumnElement[Any] = cast(null(), Integer)
    if "chunk_data" in chunk:
        stated = cast(chunk.chunk_data, JSONB)["position"].astext
        position = case((stated.regexp_match("^[0-9]{1,9}$"), cast(stated, Integer)))
    statement = select(
        cast(chunk.id, Text).label("id"),
        chunk.content.label("content"),
        cast(chunk.doc_id, Text).label("doc_id"),
        source.data.label("data"),
        about.label("about"),
        filename.label("filename"),
        source.country.label("country"),
    ).select_from(source.rows)
    if countries is not None:
        statement = statement.where(source.country.in_(list(countries)))
    return statement.order_by(filename, chunk.doc_id, position.nulls_last(), chunk.id)


def counts_in(connection: Connection, layout: Layout) -> ChunkCounts:
    """Count the rows and missing values."""
    source = source_of(layout)
    vectors = [name for name, kind in layout.tables[CHUNKS].items() if kind.compared_as is not None]
    missing = [func.count().filter(source.chunk.c[name].is_(None)) for name in vectors]
    differ = source.of_document != source.of_chunk
    row = connection.execute(
        select(func.count(), func.count().filter(source.country.is_(None)), func.count().filter(differ), *missing).select_from(
            source.rows
        )
    ).one()
    documents = connection.execute(select(func.count()).select_from(layout.table(DOCUMENTS))).scalar() or 0
    relations = 0
    if RELATIONS in layout.tables:
        relations = connection.execute(select(func.count()).select_from(layout.table(RELATIONS))).scalar() or 0
    chunks, without_country, two_countries, *without = row
    return ChunkCounts(documents, chunks, relations, dict(zip(vectors, without, strict=True)), without_country, two_countries)


def check_countries(connection: Connection, layout: Layout, countries: Sequence[str] | None) -> None:
    """Refuse countries without chunks.

    Raises:
        QueryError: a country has none; the message names the most similar one that has.
    """
    if not countries:
        return
    source = source_of(layout)
    if layout.one_place:  # and has an index
        document = layout.table(DOCUMENTS).c
        existing = connection.execute(select(document.country).where(document.country.in_(countries)).distinct()).scalars()
        if set(existing) >= set(countries):
            return
    known = set(connection.execute(select(source.country).select_from(source.rows).distinct()).scalars()) - {None}
    for country in countries:
        if country not in known:
            has = nearest(country, sorted(known)) if known else "no chunk has a country"
            raise QueryError(f"there is no chunk of {country!r}; {has}")


def warn_of_countries(connection: Connection, layout: Layout, shown: str) -> None:
    """Warn of the number of chunks with another country than their document."""
    if layout.one_place:
        return
    source = source_of(layout)
    differ = source.of_document != source.of_chunk
    columns = (cast(source.chunk.c.id, Text), source.of_document, source.of_chunk)
    first = connection.execute(select(*columns).select_from(source.rows).where(differ).order_by(columns[0]).limit(1)).first()
    if first is not None:
        count = connection.execute(select(func.count()).select_from(source.rows).where(differ)).scalar()
        warnings.warn(
            f"{shown}: {count:,} chunks name a different country than their document (the first: {first[0]}, {first[1]!r} and "
            f"{first[2]!r}); the document's is used",
            RetrievalWarning,
            stacklevel=4,
        )


_FILTERS_IN_INDEX = (0, 8)
"""First version of pgvector that continues if a filter leaves too few of the nearest."""

_LEAST_LIST, _LONGEST_LIST = 40, 1000


def can_search_on(layout: Layout) -> bool:
    """Return whether the server's pgvector finds k chunks with an index whenever k pass a filter."""
    return layout.extension is not None and layout.extension[1] >= _FILTERS_IN_INDEX


def similarities_in(
    connection: Connection,
    layout: Layout,
    vectors: NDArray[Any],
    column: str,
    countries: Sequence[str] | None,
    k: int | None,
    *,
    exact: bool,
    item_ids: Sequence[str] | None = None,
    warns: bool = True,
) -> list[ChunkSimilarities]:
    """Return for each vector the chunks nearest to it.

    Args:
        connection: to the database, in a transaction.
        layout: of the tables.
        vectors: ``[queries, dimension]``.
        column: of the chunks, with vectors.
        countries: only chunks of these.
        k: at most this many for each; None: all.
        exact: whether every chunk is compared, or an index may be used.
        item_ids: only chunks of these items.
        warns: whether to warn of chunks without a vector.

    Raises:
        QueryError: there is no such column, or a vector has another dimension, is zero or not finite.
    """
    vectors_column = layout.vectors(column)
    matrix = _checked(vectors, column, vectors_column.dimension)
    check_comparable(layout, column)
    if not len(matrix):
        return []
    source = source_of(layout)
    passing: list[ColumnElement[bool]] = [] if countries is None else [source.country.in_(list(countries))]
    if item_ids is not None:
        passing.append(_is_one_of(source, layout))
    if warns:
        _warn_of_missing(connection, source, column, passing)
    compared_as = vectors_column.compared_as or "vector"
    texts = func.unnest(cast(bindparam("vectors"), ARRAY(Text))).table_valued("text", with_ordinality="number", name="texts")
    texts_given = texts.render_derived()
    # read once each, and not again for every chunk
    read = select(texts_given.c.number, _pgvector(layout, texts_given.c.text, compared_as).label("vector"))
    asked = read.cte("asked").prefix_with("MATERIALIZED")
    own, theirs = source.chunk.c[column], asked.c.vector
    if vectors_column.type != compared_as:
        own = _pgvector(layout, own, compared_as)
    distance: ColumnElement[Any] = own.op(f"OPERATOR({_extension(layout)}.<=>)", return_type=Float())(theirs)
    # an index cannot serve an order by more than the distance
    order = (distance + 0, source.chunk.c.id) if exact or (passing and not can_search_on(layout)) else (distance,)
    near = (
        select(cast(source.chunk.c.id, Text).label("id"), source.kept_id.label("kept_id"), (1 - distance).label("similarity"))
        .select_from(source.rows)
        .where(source.chunk.c[column].is_not(None), *passing)
        .order_by(*order)
        .limit(k)
        .lateral("near")
    )
    statement = (
        select(asked.c.number, near.c.id, near.c.kept_id, near.c.similarity)
        .select_from(asked.join(near, true()))
        .where(near.c.similarity < 2)  # in PostgreSQL, NaN is more than every number
        .order_by(asked.c.number, near.c.similarity.desc(), near.c.id)
    )
    if len(order) == 1:
        _search_wide(connection, layout, k)
    lists: list[tuple[list[str], list[float]]] = [([], []) for _ in matrix]
    values: dict[str, Any] = {"vectors": [as_text(vector) for vector in matrix]}
    if item_ids is not None:
        values["keys"] = _keys_of(layout, item_ids)
    for number, key, kept, similarity in connection.execute(statement, values):
        lists[number - 1][0].append(own_id(key, kept))
        lists[number - 1][1].append(similarity)
    return [ChunkSimilarities(ids, np.array(values, np.float64)) for ids, values in lists]


def check_comparable(layout: Layout, column: str) -> None:
    """Refuse a column whose vectors cannot be compared.

    Raises:
        QueryError: there is no such column of vectors, or no pgvector.
    """
    layout.vectors(column)
    if layout.extension is None:
        raise QueryError("this database has no pgvector, so vectors cannot be compared; CREATE EXTENSION vector in it")


def _keys_of(layout: Layout, item_ids: Sequence[str]) -> list[str]:
    """Return the ids of the rows of items; in tables of other programs whose ids are no UUID, they are the same."""
    is_uuid = layout.tables[CHUNKS]["id"].type == "uuid"
    return [str(chunk_uuid(item_id)) for item_id in item_ids] if is_uuid else list(item_ids)


def _is_one_of(source: Source, layout: Layout) -> ColumnElement[bool]:
    """Return the condition that a chunk is one of the parameter ``keys``."""
    if layout.tables[CHUNKS]["id"].type == "uuid":
        return cast(source.chunk.c.id, UUID) == func.any(cast(bindparam("keys"), ARRAY(UUID)))
    return cast(source.chunk.c.id, Text) == func.any(cast(bindparam("keys"), ARRAY(Text)))


def existing_of(connection: Connection, layout: Layout, item_ids: Sequence[str]) -> list[bool]:
    """Return for each item whether it has a row."""
    source = source_of(layout)
    keys = _keys_of(layout, item_ids)
    statement = select(cast(source.chunk.c.id, Text)).select_from(source.chunk).where(_is_one_of(source, layout))
    existing = set(connection.execute(statement, {"keys": keys}).scalars())
    return [key in existing for key in keys]


def limits_in(connection: Connection, layout: Layout, column: str, *, approximate: bool) -> list[str]:
    """Return what a search of a column has to do without, in words.

    Args:
        connection: to the database.
        layout: of the tables.
        column: of the chunks, with vectors.
        approximate: whether an index is to be used.
    """
    source = source_of(layout)
    counted = select(func.count(), func.count().filter(source.chunk.c[column].is_(None))).select_from(source.chunk)
    every, missing = connection.execute(counted).one()
    said = []
    if missing:
        said.append(f"{missing:,} of {every:,} chunks have no {column}; they come last, and have no such signal")
    if approximate:
        indexed = connection.execute(
            text(
                "SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid "
                "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid "
                "JOIN pg_catalog.pg_am m ON m.oid = x.relam JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid "
                "AND a.attnum = i.indkey[0] WHERE n.nspname = :schema AND c.relname = :table AND a.attname = :column "
                "AND m.amname = 'hnsw' AND i.indisvalid"
            ),
            {"schema": layout.schema, "table": CHUNKS, "column": column},
        ).first()
        if indexed is None:
            said.append(f"{column} has no HNSW index, so searches are exact; ChunkTables.index_vectors creates one")
        elif not can_search_on(layout):
            version = ".".join(map(str, layout.extension[1])) if layout.extension is not None else ""
            said.append(
                f"pgvector {version} filters after the cut, so searches with a filter are exact; from 0.8 on they are not"
            )
    return said


def _checked(vectors: NDArray[Any], column: str, dimension: int | None) -> NDArray[np.float32]:
    try:
        matrix = as_floats(vectors)
    except ValueError as error:
        raise QueryError(f"{column}: {error}") from None
    if matrix.ndim != 2:
        raise QueryError(f"vectors: expected an array [queries, dimension], found the shape {matrix.shape}")
    if dimension is not None and matrix.shape[1] != dimension:
        raise QueryError(
            f"{column} holds vectors of {dimension} dimensions, and the query vectors have {matrix.shape[1]}; encode with "
            "the model that the column was made with"
        )
    if len(wrong := np.flatnonzero(~np.isfinite(matrix).all(1) | ~matrix.any(1))):
        raise QueryError(f"vector {wrong[0] + 1} of {len(matrix)} is zero or not finite, so it has no neighbours")
    return matrix


def _warn_of_missing(connection: Connection, source: Source, column: str, passing: Sequence[ColumnElement[bool]]) -> None:
    counted = select(func.count(), func.count().filter(source.chunk.c[column].is_(None))).select_from(source.rows)
    every, missing = connection.execute(counted.where(*passing)).one()
    if missing:
        warnings.warn(f"{missing:,} of {every:,} chunks have no {column}, so they are left out", RetrievalWarning, stacklevel=4)


def _search_wide(connection: Connection, layout: Layout, k: int | None) -> None:
    """Let an index search until k chunks pass the filter."""
    length = min(max(k or _LONGEST_LIST, _LEAST_LIST), _LONGEST_LIST)
    connection.exec_driver_sql(f"SET LOCAL hnsw.ef_search = {length:d}")
    if can_search_on(layout):
        connection.exec_driver_sql("SET LOCAL hnsw.iterative_scan = strict_order")


def _extension(layout: Layout) -> str:
    schema = layout.extension[0] if layout.extension is not None else "public"
    return '"' + schema.replace('"', '""') + '"'


def _pgvector(layout: Layout, value: ColumnElement[Any], kind: str) -> ColumnElement[Any]:
    """Return a value as one of pgvector's types."""
    return cast(value, Vector(None, layout.extension[0] if layout.extension is not None else None, kind))


_PART = 500


def documents_of(items: Iterable[SearchableItem]) -> Iterator[tuple[DocumentRow, list[ChunkRow]]]:
    """Yield the rows of items, document by document; those of one document must be consecutive.

    Raises:
        ItemError: an item cannot be stored, occurs twice in a document, or has another country than its document.
    """
    for _, group in groupby(items, key=lambda item: item.metadata.get(DOCUMENT_KEY) or [item.item_id]):
        chunks = list(map(rows_of, group))
        document = next((chunk.document for chunk in chunks if chunk.document.country), chunks[0].document)
        seen: dict[object, str] = {}
        for chunk in chunks:
            item_id, country = chunk.item.item_id, chunk.document.country
            if country != document.country:
                first = next(other.item.item_id for other in chunks if other.document.country == document.country)
                raise ItemError(
                    f"document {document.name!r:.80} is of {document.country!r} in item {first!r} and of {country!r} in item "
                    f"{item_id!r}; a document has one country, so name the documents differently"
                )
            if chunk.key in seen:
                raise ItemError(f"item {item_id!r:.80} occurs twice in document {document.name!r:.80}; ids are unique")
            seen[chunk.key] = item_id
        yield document, chunks


def together(
    documents: Iterable[tuple[DocumentRow, list[ChunkRow]]], at_least: int
) -> Iterator[dict[DocumentRow, list[ChunkRow]]]:
    """Yield documents to write in one transaction: whole ones, until they have so many chunks.

    A repeated document or chunk is written in a later one. If the source fails, the documents before are yielded first.
    """
    waiting: dict[DocumentRow, list[ChunkRow]] = {}
    keys: set[object] = set()
    source = iter(documents)
    while True:
        failed: Exception | None = None
        document_chunks: tuple[DocumentRow, list[ChunkRow]] | None = None
        try:
            document_chunks = next(source, None)
        except Exception as error:
            failed = error
        own = {document_chunks[0].key, *(chunk.key for chunk in document_chunks[1])} if document_chunks is not None else set()
        if waiting and (document_chunks is None or len(keys) >= at_least or own & keys):
            yield waiting
            waiting, keys = {}, set()
        if failed is not None:
            raise failed
        if document_chunks is None:
            return
        waiting[document_chunks[0]] = document_chunks[1]
        keys |= own


def vector_rows(
    layout: Layout, item_ids: Sequence[str], vectors: Mapping[str, NDArray[Any]]
) -> tuple[list[Row], dict[str, int]]:
    """Return the vectors of chunks as text, and by column the number of zero vectors, which are omitted.

    Args:
        layout: of the tables.
        item_ids: of the chunks.
        vectors: ``[chunks, dimension]`` by column.

    Raises:
        QueryError: there is no such column.
        ModelError: vectors are not numbers, not of the column's dimension, not as many as chunks, or not finite.
    """
    rows: list[Row] = [{} for _ in item_ids]
    zero: dict[str, int] = {}
    for column, column_vectors in vectors.items():
        wanted = layout.vectors(column).dimension
        try:
            matrix = as_floats(column_vectors, item_ids)
        except ValueError as error:
            raise ModelError(f"{column}: {error}") from None
        if matrix.ndim != 2 or len(matrix) != len(item_ids):
            raise ModelError(f"{column}: {len(item_ids)} chunks need as many vectors, found an array {matrix.shape}")
        if wanted is not None and matrix.shape[1] != wanted:
            raise ModelError(
                f"{column} holds vectors of {wanted} dimensions, and these have {matrix.shape[1]}; make the tables with "
                f"dimensions={{{column!r}: {matrix.shape[1]}}}, or take the model of the column"
            )
        if len(wrong := np.flatnonzero(~np.isfinite(matrix).all(1))):
            raise ModelError(f"{column}: the vector of item {item_ids[wrong[0]]!r} is not finite")
        known = np.count_nonzero(matrix, axis=1) > 0
        zero[column] = int((~known).sum())
        for row, vector, exists in zip(rows, matrix, known.tolist(), strict=True):
            row[column] = as_text(vector) if exists else None
    return rows, zero


def write_documents(
    connection: Connection, layout: Layout, documents: Mapping[DocumentRow, Sequence[ChunkRow]], vectors: Sequence[Row]
) -> None:
    """Write documents and their chunks, replacing existing ones, within the caller's transaction.

    Raises:
        ItemError: a document exists with another country, or a chunk belongs to another document.
    """
    table, chunk_rows = chunk_table(layout, DOCUMENTS), chunk_table(layout, CHUNKS)
    # in one order for all writers, so that they cannot deadlock
    by_key = {document.key: document for document in sorted(documents, key=lambda entry: str(entry.key))}
    insertion = insert(table).on_conflict_do_nothing(index_elements=["id"])
    connection.execute(insertion, [document.row() for document in by_key.values()])
    countries = select(table.c.id, table.c.country).where(table.c.id.in_(by_key)).order_by(table.c.id).with_for_update()
    filled = []
    for key, stored_country in connection.execute(countries).all():
        document = by_key[key]
        if stored_country is None and document.country is not None:
            filled.append({"key": key, "own": document.country})
        elif stored_country != document.country and document.country is not None:
            first = documents[document][0].item.item_id
            raise ItemError(
                f"document {document.name!r:.80} is of {document.country!r} in item {first!r}, and of {stored_country!r} in "
                "the table; delete_document() it first, or give this one another name"
            )
    if filled:
        named = table.update().where(table.c.id == bindparam("key")).values(country=bindparam("own"))
        connection.execute(named, filled)
    chunks = [chunk for theirs in documents.values() for chunk in theirs]
    for start in range(0, len(chunks), _PART):
        part = {chunk.key: chunk for chunk in chunks[start : start + _PART]}
        existing = select(chunk_rows.c.id, chunk_rows.c.doc_id).where(chunk_rows.c.id.in_(part))
        for key, document_key in connection.execute(existing):
            if document_key != part[key].document.key:
                raise ItemError(
                    f"item {part[key].item.item_id!r:.80} already exists in another document than "
                    f"{part[key].document.name!r:.80}; delete_document() that one first, or give the item another id"
                )
        rows = [chunk.row() | own for chunk, own in zip(part.values(), vectors[start : start + _PART], strict=True)]
        putting = insert(chunk_rows)
        changed = {name: putting.excluded[name] for name in rows[0] if name != "id"}
        connection.execute(putting.on_conflict_do_update(index_elements=["id"], set_=changed), rows)


def chunk_table(layout: Layout, name: str) -> Table:
    """Return a table of a layout, with types, for writing."""
    types: dict[str, Any] = {"uuid": UUID, "jsonb": JSONB, "json": JSON, "float8": Float, "float4": Float}
    extension = layout.extension[0] if layout.extension is not None else None
    columns = [
        Column(column, Vector(None, extension) if kind.type == "vector" else types.get(kind.type, Text))
        for column, kind in layout.tables[name].items()
    ]
    return Table(name, MetaData(), *columns, schema=quoted(layout.schema))


_RELATIONS_AT_ONCE = 1000
_SHOWN = 3


def write_relations(connection: Connection, layout: Layout, relations: Sequence[ChunkRelation]) -> None:
    """Write relations, replacing those of the same chunks and type, within the caller's transaction.

    Raises:
        ItemError: a relation leads from or to a missing chunk, or is of an unknown type.
    """
    for relation in relations:
        if relation.type not in RELATION_TYPES:
            raise ItemError(
                f"relation of {relation.source_id!r:.80} with {relation.target_id!r:.80}: there is no type "
                f"{relation.type!r:.80}; {nearest(relation.type, RELATION_TYPES)}"
            )
    latest = {(relation.source_id, relation.target_id, relation.type): relation for relation in relations}
    keys = {
        item_id: chunk_uuid(item_id) for relation in latest.values() for item_id in (relation.source_id, relation.target_id)
    }
    chunks, table = chunk_table(layout, CHUNKS), chunk_table(layout, RELATIONS)
    wanted, existing = list(keys.values()), set[uuid.UUID]()
    for start in range(0, len(wanted), _RELATIONS_AT_ONCE):
        existing |= set(
            connection.execute(select(chunks.c.id).where(chunks.c.id.in_(wanted[start : start + _RELATIONS_AT_ONCE]))).scalars()
        )
    if missing := [item_id for item_id, key in keys.items() if key not in existing]:
        shown = ", ".join(map(repr, missing[:_SHOWN]))
        raise ItemError(
            f"{len(missing):,} items of relations are not stored as chunks (the first: {shown}); write the chunks first"
        )
    rows = [
        {
            "id": relation_uuid(keys[relation.source_id], keys[relation.target_id], relation.type),
            "source_chunk_id": keys[relation.source_id],
            "target_chunk_id": keys[relation.target_id],
            "relationship_type": relation.type,
            "confidence_score": float(relation.confidence),
            "metadata": dict(relation.metadata),
        }
        for _, relation in sorted(latest.items())
    ]
    insertion = insert(table)
    changed = {name: insertion.excluded[name] for name in ("confidence_score", "metadata")}
    for start in range(0, len(rows), _RELATIONS_AT_ONCE):
        connection.execute(
            insertion.on_conflict_do_update(index_elements=["id"], set_=changed), rows[start : start + _RELATIONS_AT_ONCE]
        )


def refuse_dangling(connection: Connection, layout: Layout, shown: str) -> None:
    """Refuse relations from or to a missing chunk; tables of other programs may allow them.

    Raises:
        SourceError: there are some; the message names the first.
    """
    table, chunk = layout.table(RELATIONS), layout.table(CHUNKS).c
    relation = table.c
    ids = select(cast(chunk.id, Text))
    ends = (cast(relation.source_chunk_id, Text), cast(relation.target_chunk_id, Text))
    dangling = or_(*(or_(end.is_(None), end.not_in(ids)) for end in ends))
    count = connection.execute(select(func.count()).select_from(table).where(dangling)).scalar() or 0
    if count:
        rows = connection.execute(select(*ends).where(dangling).order_by(*ends).limit(_SHOWN)).all()
        first = ", ".join(f"{source} -> {target}" for source, target in rows)
        raise SourceError(
            f"{shown}: {count:,} relations lead from or to a missing chunk (the first: {first}); delete them from "
            f"{RELATIONS}, or restore the chunks"
        )


def relations_in(connection: Connection, layout: Layout, shown: str) -> Iterator[ChunkRelation]:
    """Yield all relations, streamed, in the order of their chunks.

    Raises:
        SourceError: a row is not a relation.
    """
    relation = layout.table(RELATIONS)
    ends = [layout.table(CHUNKS).alias(name) for name in ("source", "target")]
    rows = relation
    kept = []
    for end, name in zip(ends, ("source_chunk_id", "target_chunk_id"), strict=True):
        rows = rows.join(end, cast(end.c.id, Text) == cast(relation.c[name], Text))  # type: ignore[assignment]
        kept.append(cast(end.c.chunk_data, JSONB)[ID_KEY].astext if "chunk_data" in end.c else cast(null(), Text))
    stored = cast(relation.c.metadata, Text) if "metadata" in relation.c else cast(null(), Text)
    source, target = (cast(end.c.id, Text) for end in ends)
    statement = (
        select(source, kept[0], target, kept[1], relation.c.relationship_type, relation.c.confidence_score, stored)
        .select_from(rows)
        .order_by(ends[0].c.id, ends[1].c.id, relation.c.relationship_type)
    )
    with connection.execution_options(yield_per=_RELATIONS_AT_ONCE).execute(statement) as read:
        for row in read:
            try:
                about = {} if row[6] is None else json_value(row[6])
                ids = own_id(row[0], row[1]), own_id(row[2], row[3])
                confidence = float("nan") if row[5] is None else float(row[5])
                kind, metadata = type_of(row[4]), about if isinstance(about, dict) else {"metadata": about}
                relation_of_row = (ChunkRelation if kind in RELATION_TYPES else StoredRelation)(
                    *ids, kind, confidence, metadata
                )
            except (ItemError, ValueError) as error:
                raise SourceError(f"{shown}: {RELATIONS}: {error}") from None
            yield relation_of_row
