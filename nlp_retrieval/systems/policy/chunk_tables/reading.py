"""Statements that read chunks: their country, their order, and counts of missing values."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nlp_retrieval.errors import QueryError, RetrievalWarning, nearest
from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, DOCUMENTS, RELATIONS, Layout
from nlp_retrieval.systems.policy.chunk_tables.rows import ID_KEY

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, FromClause, Select

__all__ = ["ChunkCounts", "Source", "check_countries", "counts_in", "items_statement", "source_of", "warn_of_countries"]


@dataclass(frozen=True)
class ChunkCounts:
    """Numbers of rows in chunk tables, and of missing values.

    Args:
        documents: number of documents.
        chunks: number of chunks.
        relations: number of relations; 0 if there is no such table.
        without_vector: by column, number of chunks without a vector.
        without_country: number of chunks without a country.
        two_countries: number of chunks with another country than their document; the document's counts.
    """

    documents: int
    chunks: int
    relations: int
    without_vector: Mapping[str, int]
    without_country: int
    two_countries: int


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
    from sqlalchemy import Text, cast, func, null
    from sqlalchemy.dialects.postgresql import JSONB

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
    """Return the statement that reads chunks, document by document, in the order of their positions if they have one.

    Args:
        layout: of the tables.
        countries: only chunks of these.
    """
    from sqlalchemy import Integer, Text, case, cast, null, select
    from sqlalchemy.dialects.postgresql import JSONB

    source = source_of(layout)
    chunk, document = source.chunk.c, source.document.c
    about = cast(document.metadata, Text) if "metadata" in document else cast(null(), Text)
    filename = cast(document.filename, Text) if "filename" in document else cast(null(), Text)
    position: ColumnElement[Any] = cast(null(), Integer)
    if "chunk_data" in chunk:
        told = cast(chunk.chunk_data, JSONB)["position"].astext
        position = case((told.regexp_match("^[0-9]{1,9}$"), cast(told, Integer)))
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
    from sqlalchemy import func, select

    source = source_of(layout)
    vectors = [name for name, found in layout.tables[CHUNKS].items() if found.compared_as is not None]
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
    from sqlalchemy import select

    if not countries:
        return
    source = source_of(layout)
    if layout.one_place:  # and has an index
        document = layout.table(DOCUMENTS).c
        there = connection.execute(select(document.country).where(document.country.in_(countries)).distinct()).scalars()
        if set(there) >= set(countries):
            return
    known = set(connection.execute(select(source.country).select_from(source.rows).distinct()).scalars()) - {None}
    for country in countries:
        if country not in known:
            has = nearest(country, sorted(known)) if known else "no chunk has a country"
            raise QueryError(f"there is no chunk of {country!r}; {has}")


def warn_of_countries(connection: Connection, layout: Layout, shown: str) -> None:
    """Warn of the number of chunks with another country than their document."""
    from sqlalchemy import Text, cast, func, select

    if layout.one_place:
        return
    source = source_of(layout)
    differ = source.of_document != source.of_chunk
    columns = (cast(source.chunk.c.id, Text), source.of_document, source.of_chunk)
    first = connection.execute(select(*columns).select_from(source.rows).where(differ).order_by(columns[0]).limit(1)).first()
    if first is not None:
        count = connection.execute(select(func.count()).select_from(source.rows).where(differ)).scalar()
        warnings.warn(
            f"{shown}: {count:,} chunks name another country than their document (the first: {first[0]}, {first[1]!r} and "
            f"{first[2]!r}); the document's counts",
            RetrievalWarning,
            stacklevel=4,
        )
