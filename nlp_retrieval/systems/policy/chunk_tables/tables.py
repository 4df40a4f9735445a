"""Documents, their chunks with vectors, and relations between chunks, in a PostgreSQL with pgvector.

Tables of other programs are read as they are. Values are never part of a statement. What is written at once is one transaction;
writers wait for one another. A chunk without a vector has no similarity: it is left out, never given 0.
"""

from __future__ import annotations

import copy
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import BaseLoader, check_k, given, may_set
from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    ItemError,
    ModelError,
    OutputError,
    QueryError,
    RetrievalError,
    RetrievalWarning,
    SourceError,
    install,
    nearest,
)
from nlp_retrieval.loaders import hide_secrets, resolve, scrub
from nlp_retrieval.systems.policy.chunk_tables.rows import (
    RELATION_TYPES,
    ChunkCounts,
    ChunkRelation,
    ChunkSimilarities,
    WrittenChunks,
    chunk_row,
    chunk_uuid,
    document_row,
    item_of,
    own_id,
    relation_uuid,
    type_of,
)
from nlp_retrieval.text import printable

if TYPE_CHECKING:
    from psycopg import Connection

    from nlp_retrieval.encoders import BaseEncoder

_DOCUMENTS, _CHUNKS, _RELATIONS = "documents", "doc_chunks", "logical_relationships"
_DIMENSIONS = {"transformer_embedding": 768, "word2vec_embedding": 300, "hoprag_embedding": 384}
"""Columns of vectors, and their default dimensions."""

_NEEDED = {
    _DOCUMENTS: ("id",),
    _CHUNKS: ("id", "content", "doc_id"),
    _RELATIONS: ("source_chunk_id", "target_chunk_id", "relationship_type", "confidence_score"),
}
_VECTOR_TYPES = {"vector": "vector", "halfvec": "halfvec", "_float4": "vector", "_float8": "vector", "_int4": "vector"}
"""Types of columns that hold vectors, and the types of pgvector for their comparison."""

_FILTERS_IN_INDEX = (0, 8)
"""First version of pgvector that continues if a filter leaves too few of the nearest."""

_AT_ONCE, _CONNECT_SECONDS = 500, 10
_DRIVER = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")

_TABLES = """
CREATE TABLE IF NOT EXISTS documents (
  id uuid PRIMARY KEY, filename text, country text, metadata jsonb NOT NULL DEFAULT '{}');
CREATE TABLE IF NOT EXISTS doc_chunks (
  id uuid PRIMARY KEY, content text NOT NULL, doc_id uuid NOT NULL REFERENCES documents ON DELETE CASCADE,
  chunk_data jsonb NOT NULL DEFAULT '{}');
CREATE INDEX IF NOT EXISTS ix_doc_chunks_doc_id ON doc_chunks (doc_id);
CREATE TABLE IF NOT EXISTS logical_relationships (
  id uuid PRIMARY KEY, source_chunk_id uuid NOT NULL REFERENCES doc_chunks ON DELETE CASCADE,
  target_chunk_id uuid NOT NULL REFERENCES doc_chunks ON DELETE CASCADE,
  relationship_type text NOT NULL CHECK (relationship_type IN
    ('SUPPORTS', 'EXPLAINS', 'CONTRADICTS', 'FOLLOWS', 'TEMPORAL_FOLLOWS', 'CAUSES')),
  confidence_score double precision NOT NULL CHECK (confidence_score BETWEEN 0 AND 1),
  metadata jsonb NOT NULL DEFAULT '{}', CHECK (source_chunk_id <> target_chunk_id),
  UNIQUE (source_chunk_id, target_chunk_id, relationship_type));
CREATE INDEX IF NOT EXISTS ix_logical_relationships_target ON logical_relationships (target_chunk_id);
"""

_COLUMNS = """
SELECT c.relname, a.attname, t.typname, a.atttypmod FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE n.nspname = %s AND c.relname = ANY(%s)
AND c.relkind = ANY('{r,p,v,m,f}') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY c.relname, a.attnum
"""

_HNSW = """
SELECT 1 FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
JOIN pg_catalog.pg_am m ON m.oid = x.relam JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
WHERE n.nspname = %s AND c.relname = %s AND a.attname = %s AND m.amname = 'hnsw' AND i.indisvalid
"""


@dataclass(frozen=True)
class _Layout:
    """The tables of a schema, from PostgreSQL's own catalogue."""

    schema: str
    tables: Mapping[str, Mapping[str, tuple[str, int | None]]]
    extension: tuple[str, tuple[int, ...]] | None

    @property
    def vectors(self) -> dict[str, tuple[str, int | None]]:
        """Return the columns of the chunks that hold vectors."""
        return {name: kind for name, kind in self.tables[_CHUNKS].items() if kind[0] in _VECTOR_TYPES}

    def has(self, table: str, column: str) -> bool:
        """Return whether a table has a column."""
        return column in self.tables.get(table, {})

    def kind(self, column: str) -> tuple[str, int | None]:
        """Return type and dimension of a column of vectors."""
        if column in self.vectors:
            return self.vectors[column]
        has = nearest(column, self.vectors) if self.vectors else f"{_CHUNKS} has no vector columns"
        if self.has(_CHUNKS, column):
            raise QueryError(f"{_CHUNKS}.{column} holds {self.tables[_CHUNKS][column][0]}, which is not a vector type; {has}")
        raise QueryError(f"{_CHUNKS} has no column {column!r}; {has}")

    def data(self, column: str, table: str = "chunk") -> str:
        """Return a value of the stored metadata of a chunk, as text."""
        return f"{table}.chunk_data::jsonb ->> '{column}'" if self.has(_CHUNKS, "chunk_data") else "NULL::text"

    @property
    def country(self) -> str:
        """Return the country of a chunk: its own, else that of its document."""
        of_document = "document.country" if self.has(_DOCUMENTS, "country") else "NULL::text"
        return f"coalesce(nullif(btrim({self.data('country')}), ''), nullif(btrim({of_document}), ''))"

    @property
    def rows(self) -> str:
        """Return chunks with their documents."""
        same = self.tables[_CHUNKS]["doc_id"][0] == self.tables[_DOCUMENTS]["id"][0]
        on = "document.id = chunk.doc_id" if same else "document.id::text = chunk.doc_id::text"
        return f"doc_chunks AS chunk LEFT JOIN documents AS document ON {on}"


class ChunkTables:
    """The tables ``documents``, ``doc_chunks`` and ``logical_relationships`` of a PostgreSQL with pgvector.

    What one call writes is one transaction, so a killed process leaves a consistent store. A password in the URL appears in no
    ``repr``, message or log.

    Args:
        url: ``postgresql://user@host/database``, or ``env:NAME``, the name of an environment variable that holds it.
        schema: of the tables. None: the first of the search path.
        create: whether to create missing tables.
        dimensions: of the vectors by column, if the tables are created; by default 768 for ``transformer_embedding``, 300 for
            ``word2vec_embedding`` and 384 for ``hoprag_embedding``.

    Raises:
        DependencyError: psycopg is not installed.
        SourceError: the database cannot be opened, or lacks the tables or needed columns.
        OutputError: the tables cannot be created.

    Examples:
        >>> with ChunkTables("postgresql://me@localhost/plans", create=True) as tables:  # doctest: +SKIP
        ...     tables.write(plans)
        WrittenChunks(documents=6, chunks=16, without_vector={})
    """

    def __init__(
        self, url: str, *, schema: str | None = None, create: bool = False, dimensions: Mapping[str, int] | None = None
    ) -> None:
        for name, size in (dimensions or {}).items():
            if name not in _DIMENSIONS or isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 16_000:
                raise ConfigurationError(
                    f"dimensions: {name}: {size!r}; expected 1 to 16,000 for one of {', '.join(_DIMENSIONS)}"
                )
        self._shown = hide_secrets(str(url))
        self._url = resolve(str(url))
        self._words = _words_of(self._url, self._shown)
        self._opened: _Layout | None = None
        if create:
            with self._connected(write=True) as connection:
                _create(connection, schema, _DIMENSIONS | dict(dimensions or {}))
        with self._connected() as connection:
            self._layout = _layout_of(connection, schema)
        self._opened = self._layout
        where = f'{self._shown}, schema "{self._layout.schema}"'
        if missing := [table for table in (_DOCUMENTS, _CHUNKS) if table not in self._layout.tables]:
            raise SourceError(f"{where}: there is no table {' and no table '.join(missing)}; pass create=True to create them")
        for table, columns in self._layout.tables.items():
            if lacking := [name for name in _NEEDED[table] if name not in columns]:
                raise SourceError(
                    f"{where}: table {table} has no column {', '.join(lacking)} (found: {', '.join(columns)}); rename the "
                    "columns, or create a view with these names in another schema"
                )

    def __repr__(self) -> str:
        return f"ChunkTables({self._shown!r}, schema={self._layout.schema!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: a connection lives as long as its transaction."""

    @contextmanager
    def _connected(self, *, write: bool = False) -> Iterator[Connection[Any]]:
        """Open a transaction: one that sees a single state of the database, or one that writes all or nothing."""
        import psycopg

        try:
            with psycopg.connect(**self._words) as connection:
                connection.read_only = not write
                if write:
                    connection.execute("SELECT pg_advisory_xact_lock(hashtext('nlp_retrieval.chunk_tables'))")
                else:
                    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                if self._opened is not None:
                    _look_in(connection, self._opened)
                yield connection
        except RetrievalError:
            raise
        except (psycopg.Error, OSError, UnicodeError) as error:
            reason = scrub(error, self._url)
            if password := self._words.get("password"):
                reason = reason.replace(str(password), "***")
            reason = printable(" ".join(reason.split()))[:300] + _cure(getattr(error, "sqlstate", None) or "", reason)
            if write:
                raise OutputError(f"{self._shown}: the tables cannot be written: {reason}; nothing was written") from None
            raise SourceError(f"{self._shown}: the tables cannot be read: {reason}") from None

    @property
    def dimensions(self) -> dict[str, int | None]:
        """Return the dimension of each column's vectors; None if the column has none."""
        return {name: dimension for name, (_, dimension) in self._layout.vectors.items()}

    def counts(self) -> ChunkCounts:
        """Return the numbers of rows, and of missing vectors and countries.

        Raises:
            SourceError: the database cannot be read.
        """
        columns = list(self._layout.vectors)
        missing = "".join(f", count(*) FILTER (WHERE chunk.{_quoted(column)} IS NULL)" for column in columns)
        relations = "(SELECT count(*) FROM logical_relationships)" if _RELATIONS in self._layout.tables else "0"
        statement = (
            f"SELECT (SELECT count(*) FROM documents), count(*), {relations}, "
            f"count(*) FILTER (WHERE {self._layout.country} IS NULL){missing} FROM {self._layout.rows}"
        )
        with self._connected() as connection:
            row: tuple[Any, ...] = connection.execute(statement, []).fetchone() or ()
        documents, chunks, related, without_country, *without = row
        return ChunkCounts(documents, chunks, related, dict(zip(columns, without, strict=True)), without_country)

    def countries(self) -> list[str]:
        """Return the countries of the chunks, in alphabetical order."""
        with self._connected() as connection:
            return self._countries(connection)

    def _countries(self, connection: Connection[Any], wanted: Sequence[str] = ()) -> list[str]:
        """Return the countries of the chunks.

        Raises:
            QueryError: a wanted one is not among them.
        """
        country = self._layout.country
        rows = connection.execute(f"SELECT DISTINCT {country} FROM {self._layout.rows} WHERE {country} IS NOT NULL")
        known = sorted(row[0] for row in rows)
        for name in wanted:
            if name not in known:
                raise QueryError(
                    f"there is no chunk of {name!r}; {nearest(name, known) if known else 'no chunk has a country'}"
                )
        return known

    def stream(self, country: str | Sequence[str] | None = None) -> Iterator[SearchableItem]:
        """Yield the chunks as items, from a cursor of the server; memory does not grow with their number.

        They come document by document, in the order of ``position`` if the chunks have one. The metadata are those of the
        document and the chunk, with ``document`` and ``country``.

        Raises:
            SourceError: the database cannot be read, or a row cannot be an item.
            QueryError: there is no chunk of such a country.
        """
        layout, wanted = self._layout, _several(country)
        position = layout.data("position")
        columns = {
            "data": "chunk.chunk_data" if layout.has(_CHUNKS, "chunk_data") else "NULL",
            "about": "document.metadata" if layout.has(_DOCUMENTS, "metadata") else "NULL",
            "filename": "document.filename" if layout.has(_DOCUMENTS, "filename") else "NULL",
        }
        selected = ", ".join(f"{value}::text AS {name}" for name, value in columns.items())
        statement = (
            f"SELECT chunk.id::text AS id, chunk.content, chunk.doc_id::text AS doc_id, {selected}, "
            f"{layout.country} AS country FROM {layout.rows} WHERE %(all)s OR {layout.country} = ANY(%(countries)s) "
            "ORDER BY filename, chunk.doc_id, "
            f"CASE WHEN {position} ~ '^[0-9]{{1,9}}$' THEN ({position})::int END NULLS LAST, chunk.id"
        )
        from psycopg.rows import dict_row

        with self._connected() as connection:
            if wanted is not None:
                self._countries(connection, wanted)
            with connection.cursor("chunks", row_factory=dict_row) as cursor:
                cursor.itersize = _AT_ONCE
                cursor.execute(statement, {"all": wanted is None, "countries": wanted or []})
                for row in cursor:
                    yield item_of(f"{self._shown}, chunk", row)

    def relations(self) -> Iterator[ChunkRelation]:
        """Yield the relations between chunks, streamed; nothing if there is no such table.

        Raises:
            SourceError: the database cannot be read, a relation leads to a missing chunk, or a row is not a relation.
        """
        if _RELATIONS not in self._layout.tables:
            return
        about = "relation.metadata::text" if self._layout.has(_RELATIONS, "metadata") else "NULL"
        ends = [
            f"LEFT JOIN doc_chunks AS {end} ON {end}.id::text = relation.{end}_chunk_id::text" for end in ("source", "target")
        ]
        statement = (
            f"SELECT source.id::text, {self._layout.data('item_id', 'source')}, target.id::text, "
            f"{self._layout.data('item_id', 'target')}, relation.relationship_type::text, relation.confidence_score, {about}, "
            "relation.source_chunk_id::text, relation.target_chunk_id::text FROM logical_relationships AS relation "
            f"{' '.join(ends)} ORDER BY 1, 3, 5"
        )
        with self._connected() as connection, connection.cursor("relations") as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(statement)
            for row in cursor:
                yield _relation_of(row, self._shown)

    def batch_similarity_calculation(
        self,
        vectors: NDArray[Any],
        *,
        column: str = "transformer_embedding",
        country: str | Sequence[str] | None = None,
        k: int | None = 20,
        exact: bool = True,
    ) -> list[ChunkSimilarities]:
        """Return the cosine similarities of vectors with those of chunks, in one statement.

        Args:
            vectors: ``[queries, dimension]``.
            column: of the chunks.
            country: only chunks of this one, or of these; filtered before the cut.
            k: at most this many chunks for each vector; None: all.
            exact: whether all chunks are compared. Otherwise an index of ``index_vectors`` may be used, which may miss some;
                with a filter only by pgvector 0.8 or newer, which continues until k pass.

        Raises:
            QueryError: there is no such column or country, or a vector has another dimension.
            SourceError: the database cannot be read.
        """
        wanted = _several(country)
        if k is not None:
            check_k(k)
        with self._connected() as connection:
            _checked(vectors, column, self._layout.kind(column)[1])
            if wanted is not None:
                self._countries(connection, wanted)
            passing = f"({self._layout.country}) = ANY(%(wanted)s)" if wanted is not None else None
            counted = (
                f"SELECT count(*), count(*) FILTER (WHERE chunk.{_quoted(column)} IS NULL) FROM {self._layout.rows} "
                f"WHERE {passing or 'true'}"
            )
            every, missing = connection.execute(counted, {"wanted": wanted}).fetchone() or (0, 0)
            if missing:
                warnings.warn(
                    f"{missing:,} of {every:,} chunks have no {column}, so they are left out", RetrievalWarning, stacklevel=2
                )
            return self._similar(connection, vectors, column, k, passing, wanted, exact=exact)

    def nearest(
        self, vectors: NDArray[Any], column: str, item_ids: Sequence[str] | None, k: int | None, *, exact: bool
    ) -> list[ChunkSimilarities]:
        """Return the chunks nearest to each vector, as :meth:`batch_similarity_calculation`, among those of some items."""
        passing = None if item_ids is None else self._is_one_of
        wanted = None if item_ids is None else self._keys_of(item_ids)
        with self._connected() as connection:
            return self._similar(connection, vectors, column, k, passing, wanted, exact=exact)

    def _similar(
        self,
        connection: Connection[Any],
        vectors: NDArray[Any],
        column: str,
        k: int | None,
        passing: str | None,
        wanted: Sequence[str] | None,
        *,
        exact: bool,
    ) -> list[ChunkSimilarities]:
        stored, dimension = self._layout.kind(column)
        matrix = _checked(vectors, column, dimension)
        filters = self._require_pgvector()
        if not len(matrix):
            return []
        compared_as = _VECTOR_TYPES[stored]
        distance = f"chunk.{_quoted(column)}{'' if stored == compared_as else '::' + compared_as} <=> asked.vector"
        by_index = not exact and (passing is None or filters)
        rows = self._layout.rows if passing is not None else "doc_chunks AS chunk"
        # vectors are read once each, and not again for every chunk; an index cannot serve an order by more than the distance
        statement = (
            f"WITH asked AS MATERIALIZED (SELECT number, text::{compared_as} AS vector FROM "
            "unnest(%(vectors)s::text[]) WITH ORDINALITY AS given(text, number)) "
            "SELECT asked.number, near.id, near.kept, near.similarity FROM asked CROSS JOIN LATERAL ("
            f"SELECT chunk.id::text AS id, {self._layout.data('item_id')} AS kept, 1 - ({distance}) AS similarity "
            f"FROM {rows} WHERE chunk.{_quoted(column)} IS NOT NULL AND {passing or 'true'} "
            f"ORDER BY {distance if by_index else f'({distance}) + 0, chunk.id'} LIMIT %(k)s) AS near "
            "WHERE near.similarity < 2 ORDER BY 1, 4 DESC, 2"  # in PostgreSQL, NaN is more than every number
        )
        if by_index:
            connection.execute(f"SET LOCAL hnsw.ef_search = {min(max(k or 1000, 40), 1000):d}")
            if filters:
                connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        values = {"vectors": [_as_text(vector) for vector in matrix], "k": k, "wanted": wanted}
        lists: list[tuple[list[str], list[float]]] = [([], []) for _ in matrix]
        for number, key, kept, similarity in connection.execute(statement, values):
            lists[number - 1][0].append(own_id(key, kept))
            lists[number - 1][1].append(similarity)
        return [ChunkSimilarities(ids, np.array(similarities, np.float64)) for ids, similarities in lists]

    def _require_pgvector(self) -> bool:
        """Return whether an index of pgvector finds k chunks whenever k pass a filter."""
        if self._layout.extension is None:
            raise QueryError("this database has no pgvector, so vectors cannot be compared; CREATE EXTENSION vector in it")
        return self._layout.extension[1] >= _FILTERS_IN_INDEX

    @property
    def _has_uuids(self) -> bool:
        return self._layout.tables[_CHUNKS]["id"][0] == "uuid"

    @property
    def _is_one_of(self) -> str:
        return "chunk.id = ANY(%(wanted)s::uuid[])" if self._has_uuids else "chunk.id::text = ANY(%(wanted)s)"

    def _keys_of(self, item_ids: Sequence[str]) -> list[str]:
        """Return the ids of the rows of items; in tables of other programs whose ids are no UUIDs, they are the same."""
        return [str(chunk_uuid(item_id)) for item_id in item_ids] if self._has_uuids else list(item_ids)

    @cached_property
    def n_chunks(self) -> int:
        """Return the number of chunks when it was first asked for."""
        return self.counts().chunks

    def keys_of(self, item_ids: Sequence[str]) -> list[bool]:
        """Return for each item whether there is a chunk of it."""
        keys = self._keys_of(item_ids)
        statement = f"SELECT chunk.id::text FROM doc_chunks AS chunk WHERE {self._is_one_of}"
        with self._connected() as connection:
            existing = {row[0] for row in connection.execute(statement, {"wanted": keys})}
        return [key in existing for key in keys]

    def limits_of(self, column: str, *, approximate: bool) -> list[str]:
        """Return what a search of a column has to do without: vectors, an index, a pgvector that filters before the cut.

        Raises:
            QueryError: there is no such column of vectors, or no pgvector to compare them.
        """
        self._layout.kind(column)
        filters = self._require_pgvector()
        counts, said = self.counts(), []
        if missing := counts.without_vector[column]:
            said.append(f"{missing:,} of {counts.chunks:,} chunks have no {column}; they come last, and have no such signal")
        if approximate:
            with self._connected() as connection:
                indexed = connection.execute(_HNSW, [self._layout.schema, _CHUNKS, column]).fetchone()
            if indexed is None:
                said.append(f"{column} has no HNSW index, so searches are exact; ChunkTables.index_vectors creates one")
            elif not filters:
                said.append("pgvector before 0.8 filters after the cut, so searches with a filter are exact")
        return said

    def write(
        self,
        items: Iterable[SearchableItem],
        *,
        encoders: Mapping[str, BaseEncoder] | None = None,
        vectors: Mapping[str, NDArray[Any]] | None = None,
    ) -> WrittenChunks:
        """Write items as chunks, replacing those of the same ids: all of them, or none.

        An item is of the document that its metadata name, else a document of its own. An id that is not a UUID is mapped to
        one, and restored when it is read.

        Args:
            items: streamed.
            encoders: of the vectors, by column.
            vectors: ``[items, dimension]`` by column, if they exist already. A zero vector counts as none.

        Raises:
            ItemError: an item cannot be stored, or there are not as many vectors as items.
            QueryError: there is no such column.
            ModelError: vectors are not finite, or not of the column's dimension.
            OutputError: the database cannot be written.
        """
        given_vectors, remaining = dict(vectors or {}), iter(items)
        documents: set[object] = set()
        n_chunks, zero = 0, dict.fromkeys([*given_vectors, *(encoders or {})], 0)
        names = [_quoted(name) for name in zero if self._layout.kind(name)]
        put_document = (
            "INSERT INTO documents AS kept (id, filename, country) VALUES (%s, %s, %s) "
            "ON CONFLICT (id) DO UPDATE SET country = coalesce(excluded.country, kept.country)"
        )
        own = ["content", "doc_id", "chunk_data", *names]
        put_chunk = (
            f"INSERT INTO doc_chunks (id, {', '.join(own)}) VALUES (%s{', %s' * len(own)}) ON CONFLICT (id) "
            f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in own)}"
        )
        with self._connected(write=True) as connection, connection.cursor() as cursor:
            while part := list(islice(remaining, _AT_ONCE)):
                columns = {name: matrix[n_chunks : n_chunks + len(part)] for name, matrix in given_vectors.items()}
                texts = [item.text for item in part]
                columns |= {name: encoder.encode_passages(texts) for name, encoder in (encoders or {}).items()}
                stored = [self._stored(name, columns[name], part) for name in zero]
                for name, column in zip(zero, stored, strict=True):
                    zero[name] += column.count(None)
                of_documents = {row[0]: row for row in map(document_row, part)}
                cursor.executemany(put_document, list(of_documents.values()))
                cursor.executemany(put_chunk, [(*chunk_row(item), *row) for item, *row in zip(part, *stored, strict=True)])
                documents |= of_documents.keys()
                n_chunks += len(part)
            if wrong := [column for column, matrix in given_vectors.items() if len(matrix) != n_chunks]:
                raise ItemError(
                    f"{wrong[0]}: {len(given_vectors[wrong[0]]):,} vectors for {n_chunks:,} items; pass one for each"
                )
        return WrittenChunks(len(documents), n_chunks, zero)

    def _stored(self, column: str, vectors: object, items: Sequence[SearchableItem]) -> list[str | None]:
        """Return the vectors of items as text; None for one that is zero.

        Raises:
            QueryError: there is no such column.
            ModelError: vectors are not numbers, not of the column's dimension, not as many as items, or not finite.
        """
        dimension = self._layout.kind(column)[1]
        matrix = _as_floats(vectors, column, ModelError)
        wanted = (len(items), matrix.shape[-1] if dimension is None else dimension)
        if matrix.shape != wanted:
            raise ModelError(f"{column}: expected vectors of the shape {wanted}, found {matrix.shape}")
        if len(wrong := np.flatnonzero(~np.isfinite(matrix).all(1))):
            raise ModelError(f"{column}: the vector of item {items[wrong[0]].item_id!r} is not finite")
        return [_as_text(vector) if vector.any() else None for vector in matrix]

    def write_relations(self, relations: Iterable[ChunkRelation]) -> int:
        """Write relations, replacing those of the same chunks and type, all or none; return their number.

        Raises:
            ItemError: a relation is of an unknown type.
            OutputError: a relation leads from or to a chunk that does not exist, or the database cannot be written.
        """
        rows = []
        for one in relations:
            if one.type not in RELATION_TYPES:
                raise ItemError(f"there is no type of relation {one.type!r:.80}; {nearest(one.type, RELATION_TYPES)}")
            source, target = chunk_uuid(one.source_id), chunk_uuid(one.target_id)
            about = json.dumps(dict(one.metadata), allow_nan=False)
            rows.append((relation_uuid(source, target, one.type), source, target, one.type, one.confidence, about))
        put_relation = (
            "INSERT INTO logical_relationships (id, source_chunk_id, target_chunk_id, relationship_type, confidence_score, "
            "metadata) VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET "
            "confidence_score = excluded.confidence_score, metadata = excluded.metadata"
        )
        with self._connected(write=True) as connection, connection.cursor() as cursor:
            cursor.executemany(put_relation, rows)
        return len(rows)

    def index_vectors(self, column: str) -> None:
        """Create an HNSW index over a column of vectors, for approximate similarities.

        Raises:
            QueryError: there is no such column.
            OutputError: the database cannot be written, or the vectors are longer than pgvector indexes.
        """
        operators = f"{_VECTOR_TYPES[self._layout.kind(column)[0]]}_cosine_ops"
        index = _quoted(f"ix_{_CHUNKS}_{column}")
        with self._connected(write=True) as connection:
            statement = f"CREATE INDEX IF NOT EXISTS {index} ON doc_chunks USING hnsw ({_quoted(column)} {operators})"
            connection.execute(statement, [])


def _words_of(url: str, shown: str) -> dict[str, Any]:
    """Return the parameters of a connection."""
    try:
        import psycopg
    except ImportError as error:
        raise DependencyError(f"ChunkTables need psycopg: {install('policy')} ({error})") from error
    how = "write postgresql://user@host/database or host=... dbname=..."
    if "://" in url and not _DRIVER.match(url):
        raise SourceError(f"{shown}: chunk tables live in PostgreSQL; {how}")
    try:
        words = psycopg.conninfo.conninfo_to_dict(_DRIVER.sub("postgresql://", url))
    except psycopg.Error:
        raise SourceError(f"{shown}: not a URL of PostgreSQL; {how}") from None
    if not words.get("dbname") and not words.get("service"):
        raise SourceError(f"{shown}: no database is named; {how}")
    return {"application_name": "nlp_retrieval", "connect_timeout": _CONNECT_SECONDS} | words


def _create(connection: Connection[Any], schema: str | None, dimensions: Mapping[str, int]) -> None:
    """Create the tables that are missing."""
    if schema is not None and not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone():
        connection.execute(f"CREATE SCHEMA {_quoted(schema)}", [])
    if _NEEDED.keys() <= _layout_of(connection, schema).tables.keys():
        return
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    before = _layout_of(connection, schema)
    _look_in(connection, before)
    connection.execute(_TABLES)
    if _CHUNKS not in before.tables:
        vectors = ", ".join(f"ADD {name} vector({size:d})" for name, size in dimensions.items())
        connection.execute(f"ALTER TABLE doc_chunks {vectors}")


def _look_in(connection: Connection[Any], layout: _Layout) -> None:
    """Let the names of a transaction be those of a schema, and of pgvector."""
    schemas = [layout.schema, *(layout.extension or ())[:1]]
    path = ", ".join('"' + name.replace('"', '""') + '"' for name in schemas)
    connection.execute("SELECT set_config('search_path', %s, true)", [path])


def _quoted(name: str) -> str:
    """Return a name as part of a statement with parameters."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


def _layout_of(connection: Connection[Any], schema: str | None) -> _Layout:
    current = (connection.execute("SELECT coalesce(%s, current_schema(), '')", [schema]).fetchone() or ("",))[0]
    tables: dict[str, dict[str, tuple[str, int | None]]] = {}
    for table, name, kind, modifier in connection.execute(_COLUMNS, [current, list(_NEEDED)]):
        dimension = modifier if kind in ("vector", "halfvec") and modifier > 0 else None
        tables.setdefault(table, {})[name] = (kind, dimension)
    row = connection.execute(
        "SELECT n.nspname, e.extversion FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace "
        "WHERE e.extname = 'vector'"
    ).fetchone()
    extension = None if row is None else (row[0], tuple(int(part) for part in row[1].split(".") if part.isdigit()))
    return _Layout(current, tables, extension)


def _relation_of(row: Sequence[Any], shown: str) -> ChunkRelation:
    source, source_kept, target, target_kept, kind, confidence, about, *stored = row
    where = f"{shown}: {_RELATIONS}"
    if source is None or target is None:
        raise SourceError(f"{where}: {stored[0]} -> {stored[1]} leads from or to a missing chunk; delete or restore it")
    try:
        metadata = json.loads(about or "{}")
        known = metadata if isinstance(metadata, dict) else {"metadata": metadata}
        worth = float("nan") if confidence is None else float(confidence)
        return ChunkRelation(own_id(source, source_kept), own_id(target, target_kept), type_of(kind), worth, known)
    except (ItemError, ValueError, RecursionError) as error:
        raise SourceError(f"{where}: {error}") from None


def _checked(vectors: object, column: str, dimension: int | None) -> NDArray[np.float32]:
    matrix = _as_floats(vectors, column, QueryError)
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


def _as_floats(vectors: object, column: str, error: type[RetrievalError]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            return np.asarray(vectors).astype(np.float32, casting="same_kind" if hasattr(vectors, "dtype") else "unsafe")
    except (TypeError, ValueError) as problem:
        raise error(f"{column}: the vectors are not numbers of one length ({problem}); pass an array of floats") from None


def _as_text(vector: NDArray[np.float32]) -> str:
    """Return a vector as text for pgvector; every float is restored exactly."""
    return f"[{','.join(map(repr, vector.astype(float).tolist()))}]"


_CURES = (
    ("42501", "create extension", "ask a superuser to run CREATE EXTENSION vector in this database, once"),
    ("42501", "", "let the owner GRANT this role USAGE on the schema, SELECT and, to write, INSERT, UPDATE, DELETE"),
    ("", "database .* does not exist", "name an existing database: postgresql://user@host/DATABASE"),
    ("", "vector.* (?:not available|does not exist)", "install pgvector on the server, and CREATE EXTENSION vector"),
    ("23503", "", "write the chunks first"),
    ("", "connection|host", "check host, port, user and password, and that the server is running"),
)
"""What to do about an error of PostgreSQL: its code, if that says it, words of its message, and the cure."""


def _cure(state: str, reason: str) -> str:
    return next((f"; {cure}" for code, words, cure in _CURES if code in ("", state) and re.search(words, reason)), "")


def _several(country: str | Sequence[str] | None) -> list[str] | None:
    if country is None:
        return None
    wanted = [country] if isinstance(country, str) else list(country)
    if not wanted or not all(isinstance(value, str) and value.strip() for value in wanted):
        raise ConfigurationError(f"country={country!r}: expected the name of a country, or several; None means all")
    return wanted


class ChunkTablesLoader(BaseLoader):
    """Chunks of documents from the tables ``documents`` and ``doc_chunks`` of a PostgreSQL, of this or another program.

    Metadata are those of the chunk's data, with ``document`` and ``country``; see ``ChunkTables.stream``.

    Args:
        url: ``postgresql://user@host/database``, or ``env:NAME``, the name of an environment variable that holds it, so that a
            config file needs no password. A password in the URL itself is shown as ``***`` by ``repr`` and ``config``, which
            then cannot open the database again.
        schema: of the tables. None: the first of the search path.
        country: only chunks of this country, or of these. None: of all.

    Examples:
        >>> ChunkTablesLoader("env:PLANS_URL", country="Ostland")  # connects when it is read
        ChunkTablesLoader(url='env:PLANS_URL', country='Ostland')
    """

    name = "chunk_tables"
    manifest_may_set = may_set("schema", "country", url=given("ask the database"))

    def __init__(self, url: str, schema: str | None = None, country: str | Sequence[str] | None = None) -> None:
        # config, repr and fingerprints use these arguments, and are written to disk and to W&B
        self._arguments["url"] = hide_secrets(url)
        self._url = url
        self.schema = schema
        self.country = country

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy.copy(self)  # keeps the URL with its password, which the arguments do not hold

    def reader(self) -> ChunkTables:
        """Open the tables, to be read."""
        return ChunkTables(self._url, schema=self.schema)

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the chunks, from a cursor of the server.

        Raises:
            DependencyError: psycopg is not installed.
            SourceError: the database cannot be read, has no such tables, or a row cannot be an item.
            QueryError: there is no chunk of such a country.
        """
        yield from self.reader().stream(self.country)

    def relations(self) -> Iterator[ChunkRelation]:
        """Yield the relations between all chunks, of any country, from a cursor of the server.

        Raises:
            DependencyError: psycopg is not installed.
            SourceError: the database cannot be read, has no such tables, or a relation leads to a missing chunk.
        """
        yield from self.reader().relations()
