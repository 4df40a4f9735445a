"""Writing chunks, whole documents in a transaction.

An existing chunk is replaced; writing the same items twice changes nothing. Writers of one document wait for one another at its
row, so that the result is what one of them wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ItemError, ModelError
from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, DOCUMENTS, Layout, quoted
from nlp_retrieval.systems.policy.chunk_tables.rows import DOCUMENT_KEY, ChunkRow, DocumentRow, Row, rows_of
from nlp_retrieval.systems.policy.chunk_tables.vector_text import as_floats, as_text

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

__all__ = ["EncodesPassages", "WrittenChunks", "chunk_table", "documents_of", "together", "vector_rows", "write_documents"]

_PART = 500


class EncodesPassages(Protocol):
    """Protocol of encoders: returns a vector for each passage."""

    def encode_passages(self, passages: list[str]) -> NDArray[Any]:
        """Return ``[passages, dimension]``."""


@dataclass(frozen=True)
class WrittenChunks:
    """Counts of written rows.

    Args:
        documents: number of documents; one whose items are not consecutive counts each time.
        chunks: number of chunks.
        without_vector: by column, number of chunks stored without a vector, because theirs is zero.
    """

    documents: int
    chunks: int
    without_vector: Mapping[str, int]


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
                    f"{item_id!r}; a document has one country, so give two documents two names"
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
        one: tuple[DocumentRow, list[ChunkRow]] | None = None
        try:
            one = next(source, None)
        except Exception as error:
            failed = error
        own = {one[0].key, *(chunk.key for chunk in one[1])} if one is not None else set()
        if waiting and (one is None or len(keys) >= at_least or own & keys):
            yield waiting
            waiting, keys = {}, set()
        if failed is not None:
            raise failed
        if one is None:
            return
        waiting[one[0]] = one[1]
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
    for column, given in vectors.items():
        wanted = layout.vectors(column).dimension
        try:
            matrix = as_floats(given, item_ids)
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
        for row, vector, there in zip(rows, matrix, known.tolist(), strict=True):
            row[column] = as_text(vector) if there else None
    return rows, zero


def write_documents(
    connection: Connection, layout: Layout, documents: Mapping[DocumentRow, Sequence[ChunkRow]], vectors: Sequence[Row]
) -> None:
    """Write documents and their chunks, replacing existing ones, within the caller's transaction.

    Args:
        connection: in a transaction.
        layout: of the tables.
        documents: with their chunks.
        vectors: of all these chunks, in order.

    Raises:
        ItemError: a document exists with another country, or a chunk belongs to another document.
    """
    from sqlalchemy import bindparam, select
    from sqlalchemy.dialects.postgresql import insert

    table, chunk_rows = chunk_table(layout, DOCUMENTS), chunk_table(layout, CHUNKS)
    # in one order for all writers, so that they cannot deadlock
    by_key = {document.key: document for document in sorted(documents, key=lambda one: str(one.key))}
    put = insert(table).on_conflict_do_nothing(index_elements=["id"])
    connection.execute(put, [document.row() for document in by_key.values()])
    countries = select(table.c.id, table.c.country).where(table.c.id.in_(by_key)).order_by(table.c.id).with_for_update()
    filled = []
    for key, held in connection.execute(countries).all():
        document = by_key[key]
        if held is None and document.country is not None:
            filled.append({"key": key, "own": document.country})
        elif held != document.country and document.country is not None:
            first = documents[document][0].item.item_id
            raise ItemError(
                f"document {document.name!r:.80} is of {document.country!r} in item {first!r}, and of {held!r} in "
                "the table; delete_document() it first, or give this one another name"
            )
    if filled:
        named = table.update().where(table.c.id == bindparam("key")).values(country=bindparam("own"))
        connection.execute(named, filled)
    chunks = [chunk for theirs in documents.values() for chunk in theirs]
    for start in range(0, len(chunks), _PART):
        part = {chunk.key: chunk for chunk in chunks[start : start + _PART]}
        there = select(chunk_rows.c.id, chunk_rows.c.doc_id).where(chunk_rows.c.id.in_(part))
        for key, document_key in connection.execute(there):
            if document_key != part[key].document.key:
                raise ItemError(
                    f"item {part[key].item.item_id!r:.80} is there already, in another document than "
                    f"{part[key].document.name!r:.80}; delete_document() that one first, or give the item another id"
                )
        rows = [chunk.row() | own for chunk, own in zip(part.values(), vectors[start : start + _PART], strict=True)]
        putting = insert(chunk_rows)
        changed = {name: putting.excluded[name] for name in rows[0] if name != "id"}
        connection.execute(putting.on_conflict_do_update(index_elements=["id"], set_=changed), rows)


def chunk_table(layout: Layout, name: str) -> Table:
    """Return a table of a layout, with types, for writing."""
    from sqlalchemy import Column, Float, MetaData, Table, Text
    from sqlalchemy.dialects.postgresql import JSON, JSONB, UUID

    from nlp_retrieval.systems.policy.chunk_tables.vector_type import Vector

    types: dict[str, Any] = {"uuid": UUID, "jsonb": JSONB, "json": JSON, "float8": Float, "float4": Float}
    extension = layout.extension[0] if layout.extension is not None else None
    columns = [
        Column(column, Vector(None, extension) if found.type == "vector" else types.get(found.type, Text))
        for column, found in layout.tables[name].items()
    ]
    return Table(name, MetaData(), *columns, schema=quoted(layout.schema))
