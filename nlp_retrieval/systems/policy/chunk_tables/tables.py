"""Documents, their chunks with vectors, and relations between chunks, in PostgreSQL: reader, store and loader.

Tables made by other programs are read as they are, and altered only by ``migrate(adopt=True)``.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import BaseLoader, given, may_set
from nlp_retrieval.errors import ConfigurationError, ItemError, OutputError
from nlp_retrieval.loaders import hide_secrets
from nlp_retrieval.systems.policy.chunk_tables.layout import (
    CHUNKS,
    DOCUMENTS,
    RELATIONS,
    Layout,
    check_version,
    dimensions_of,
    layout_of,
    upgrade,
)
from nlp_retrieval.systems.policy.chunk_tables.rows import (
    ChunkCounts,
    ChunkRelation,
    ChunkSimilarities,
    WrittenChunks,
    document_uuid,
    item_of,
)
from nlp_retrieval.systems.policy.chunk_tables.server import ChunkServer, driver_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from nlp_retrieval.encoders import BaseEncoder

_FETCHED = 500


class ChunkReader:
    """Read-only chunk tables.

    Args:
        url: ``postgresql://user@host/database``, or ``env:NAME``, the name of an environment variable that holds it.
        schema: of the tables. None: the first of the search path.

    Raises:
        DependencyError: SQLAlchemy, psycopg or Alembic is not installed.
        SourceError: the database cannot be opened, or lacks the tables or needed columns.
        IndexMismatchError: the tables are of this package, but of another version.
    """

    _may_create: ClassVar[bool] = False

    def __init__(self, url: str, *, schema: str | None = None) -> None:
        if schema is not None and (not schema or "\0" in schema or len(schema.encode("utf-8", "surrogatepass")) > 63):
            raise ConfigurationError(f"schema={schema!r:.100}: expected a name of 1 to 63 bytes")
        self._server = ChunkServer(str(url))
        self._schema = schema
        self._prepare()
        shown = self._server.shown
        self._layout: Layout = self._server.read(lambda connection: layout_of(connection, schema)).checked(
            shown, may_create=self._may_create
        )
        check_version(self._layout, shown)

    def _prepare(self) -> None:
        """Prepare the tables before they are read; nothing to do here."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._server.shown!r}, schema={self._layout.schema!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self._server.close()

    @property
    def dimensions(self) -> dict[str, int | None]:
        """Return the dimension of each column's vectors; None if the column has none."""
        columns = self._layout.tables[CHUNKS]
        return {name: column.dimension for name, column in columns.items() if column.compared_as is not None}

    def counts(self) -> ChunkCounts:
        """Return the numbers of rows, and of missing vectors and countries.

        Raises:
            SourceError: the database cannot be read.
        """
        from nlp_retrieval.systems.policy.chunk_tables.statements import counts_in

        return self._server.read(lambda connection: counts_in(connection, self._layout))

    def countries(self) -> list[str]:
        """Return the countries of the chunks, in alphabetical order."""
        from sqlalchemy import select

        from nlp_retrieval.systems.policy.chunk_tables.statements import source_of

        source = source_of(self._layout)
        statement = select(source.country).select_from(source.rows).where(source.country.is_not(None)).distinct()
        return sorted(self._server.read(lambda connection: list(connection.execute(statement).scalars())))

    def stream(self, country: str | Sequence[str] | None = None) -> Iterator[SearchableItem]:
        """Yield the chunks as items, from a cursor of the server; memory does not grow with their number.

        They come document by document, in the order of ``position`` if the chunks have one. The metadata are those of the chunk
        and its document, with ``document`` and ``country``. The document's country counts, or the chunk's if the document has
        none; a warning counts chunks with a different one.

        Raises:
            SourceError: the database cannot be read, or a row cannot be an item.
            QueryError: there is no chunk of such a country.
        """
        from nlp_retrieval.systems.policy.chunk_tables.statements import check_countries, items_statement, warn_of_countries

        wanted = _several(country)
        with self._server.reading() as connection:
            check_countries(connection, self._layout, wanted)
            warn_of_countries(connection, self._layout, self._server.shown)
            streaming = connection.execution_options(yield_per=_FETCHED)
            with streaming.execute(items_statement(self._layout, wanted)) as read:
                for row in read.mappings():
                    yield item_of(f"{self._server.shown}, chunk", dict(row))

    def relations(self) -> Iterator[ChunkRelation]:
        """Yield the relations between chunks, streamed; nothing if there is no such table.

        Raises:
            SourceError: the database cannot be read, a relation leads to a missing chunk, or a row is not a relation.
        """
        from nlp_retrieval.systems.policy.chunk_tables.statements import refuse_dangling, relations_in

        if RELATIONS not in self._layout.tables:
            return
        with self._server.reading() as connection:
            refuse_dangling(connection, self._layout, self._server.shown)
            yield from relations_in(connection, self._layout, self._server.shown)

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
        from nlp_retrieval.systems.policy.chunk_tables.statements import check_countries, similarities_in

        wanted = _several(country)

        def calculate(connection: Connection) -> list[ChunkSimilarities]:
            check_countries(connection, self._layout, wanted)
            return similarities_in(connection, self._layout, vectors, column, wanted, k, exact=exact)

        return self._server.read(calculate)

    @cached_property
    def n_chunks(self) -> int:
        """Return the number of chunks when it was first asked for."""
        return self.counts().chunks

    def require_vectors(self, column: str) -> None:
        """Raise a QueryError if there is no such column of vectors, or no pgvector to compare them."""
        from nlp_retrieval.systems.policy.chunk_tables.statements import check_comparable

        check_comparable(self._layout, column)

    def keys_of(self, item_ids: Sequence[str]) -> list[bool]:
        """Return for each item whether there is a chunk of it."""
        from nlp_retrieval.systems.policy.chunk_tables.statements import existing_of

        return self._server.read(lambda connection: existing_of(connection, self._layout, item_ids))

    def limits_of(self, column: str, *, approximate: bool) -> list[str]:
        """Return what a search of a column has to do without: vectors, an index, a pgvector that filters before the cut."""
        from nlp_retrieval.systems.policy.chunk_tables.statements import limits_in

        return self._server.read(lambda connection: limits_in(connection, self._layout, column, approximate=approximate))

    def nearest(
        self, vectors: NDArray[Any], column: str, item_ids: Sequence[str] | None, k: int | None, *, exact: bool
    ) -> list[ChunkSimilarities]:
        """Return the chunks nearest to each vector, as :meth:`batch_similarity_calculation`, among those of some items.

        Args:
            vectors: ``[queries, dimension]``.
            column: of the chunks.
            item_ids: of the chunks that are compared; None: all.
            k: at most this many chunks for each vector; None: all.
            exact: whether all of them are compared, or an index may be used.
        """
        from nlp_retrieval.systems.policy.chunk_tables.statements import similarities_in

        return self._server.read(
            lambda connection: similarities_in(
                connection, self._layout, vectors, column, None, k, exact=exact, item_ids=item_ids, warns=False
            )
        )


def _several(country: str | Sequence[str] | None) -> list[str] | None:
    if country is None:
        return None
    wanted = [country] if isinstance(country, str) else list(country)
    if not wanted or not all(isinstance(value, str) and value.strip() for value in wanted):
        raise ConfigurationError(f"country={country!r}: expected the name of a country, or several; None means all")
    return wanted


_RELATIONS_TOGETHER = 5000
_CHUNKS_TOGETHER = 500


class ChunkTables(ChunkReader):
    """The tables ``documents``, ``doc_chunks`` and ``logical_relationships`` of a PostgreSQL with pgvector.

    Everything is written in transactions, so a killed process leaves a consistent store. Several may write at once. A
    password in the URL appears in no ``repr``, message or log.

    Args:
        url: ``postgresql://user@host/database``, or ``env:NAME``, the name of an environment variable that holds it.
        schema: of the tables. None: the first of the search path.
        create: whether to create missing tables, and to upgrade older ones of this package.
        dimensions: of the vectors by column, if the tables are created; by default 768 for ``transformer_embedding``, 300 for
            ``word2vec_embedding`` and 384 for ``hoprag_embedding``.

    Raises:
        DependencyError: SQLAlchemy, psycopg or Alembic is not installed.
        SourceError: the database cannot be opened, or lacks the tables or needed columns.
        IndexMismatchError: the tables are of this package, but of another version.
        OutputError: the tables cannot be created.

    Examples:
        >>> with ChunkTables("postgresql://me@localhost/plans", create=True) as tables:  # doctest: +SKIP
        ...     tables.write(plans)
        WrittenChunks(documents=6, chunks=16, without_vector={})
    """

    def __init__(
        self, url: str, *, schema: str | None = None, create: bool = False, dimensions: Mapping[str, int] | None = None
    ) -> None:
        self._create = create
        self._dimensions = dimensions_of(dimensions)
        super().__init__(url, schema=schema)

    _may_create = True

    def _prepare(self) -> None:
        if self._create:
            shown = self._server.shown
            self._server.write(lambda connection: upgrade(connection, self._schema, self._dimensions, shown, adopt=False))

    @classmethod
    def migrate(
        cls, url: str, *, schema: str | None = None, adopt: bool = False, dimensions: Mapping[str, int] | None = None
    ) -> ChunkTables:
        """Create the tables or upgrade them to this version, all in one transaction, and open them.

        Args:
            url: as of :class:`ChunkTables`.
            schema: as of :class:`ChunkTables`.
            adopt: whether to add missing columns to tables made by other programs; existing ones stay unchanged.
            dimensions: as of :class:`ChunkTables`.

        Raises:
            SourceError: the tables were made by another program and ``adopt`` is False, or there is no pgvector.
            IndexMismatchError: they are newer than this program.
            OutputError: the database cannot be written.
        """
        server = ChunkServer(str(url))
        sizes = dimensions_of(dimensions)
        server.write(lambda connection: upgrade(connection, schema, sizes, server.shown, adopt=adopt))
        return cls(url, schema=schema)

    def write(
        self,
        items: Iterable[SearchableItem],
        *,
        encoders: Mapping[str, BaseEncoder] | None = None,
        vectors: Mapping[str, NDArray[Any]] | None = None,
    ) -> WrittenChunks:
        """Write items as chunks, replacing those of the same ids, whole documents in a transaction.

        Items of one document (``document`` in their metadata) must be consecutive; an item without is a document of its own. An
        id that is not a UUID is mapped to one, and restored when it is read.

        Args:
            items: streamed; those of one document, or of a few small ones, are in memory at a time.
            encoders: of the vectors, by column.
            vectors: ``[items, dimension]`` by column, if they exist already. A zero vector counts as none.

        Raises:
            ItemError: an item cannot be stored; documents before its own are written.
            QueryError: there is no such column.
            ModelError: vectors are not finite, or not of the column's dimension.
            OutputError: the database cannot be written; documents before this one are written.
        """
        from nlp_retrieval.systems.policy.chunk_tables.statements import documents_of, together, vector_rows, write_documents

        self._require_own()
        by_column = dict(vectors or {})
        n_documents = n_chunks = 0
        zero: dict[str, int] = {}
        for documents in together(documents_of(items), _CHUNKS_TOGETHER):
            chunks = [chunk.item for theirs in documents.values() for chunk in theirs]
            of_part = {column: matrix[n_chunks : n_chunks + len(chunks)] for column, matrix in by_column.items()}
            texts = [item.text for item in chunks]
            of_part |= {column: encoder.encode_passages(texts) for column, encoder in (encoders or {}).items()}
            rows, left_out = vector_rows(self._layout, [item.item_id for item in chunks], of_part)
            self._server.write(partial(write_documents, layout=self._layout, documents=documents, vectors=rows))
            n_documents, n_chunks = n_documents + len(documents), n_chunks + len(chunks)
            zero = {column: zero.get(column, 0) + count for column, count in left_out.items()}
        if wrong := [column for column, matrix in by_column.items() if len(matrix) != n_chunks]:
            raise ItemError(
                f"{wrong[0]}: {len(by_column[wrong[0]]):,} vectors for {n_chunks:,} items; pass one vector for each item"
            )
        return WrittenChunks(n_documents, n_chunks, zero)

    def delete_document(self, document: str) -> int:
        """Delete a document with its chunks and their relations; return the number of its chunks.

        Args:
            document: as in the items' metadata; for an item without, the item's id.

        Raises:
            ItemError: there is none.
            OutputError: the database cannot be written.
        """
        from sqlalchemy import func, select

        from nlp_retrieval.systems.policy.chunk_tables.statements import chunk_table

        self._require_own()
        documents, chunks = chunk_table(self._layout, DOCUMENTS), chunk_table(self._layout, CHUNKS)
        keys = [document_uuid(document, ""), document_uuid(None, document)]

        def delete(connection: Connection) -> int:
            existing = (
                connection.execute(select(documents.c.id).where(documents.c.id.in_(keys)).with_for_update()).scalars().all()
            )
            if not existing:
                raise ItemError(f"there is no document {document!r:.80}; name it as the items do")
            count = connection.execute(select(func.count()).select_from(chunks).where(chunks.c.doc_id.in_(existing))).scalar()
            connection.execute(documents.delete().where(documents.c.id.in_(existing)))
            return count or 0

        return self._server.write(delete)

    def write_relations(self, relations: Iterable[ChunkRelation]) -> int:
        """Write relations, replacing those of the same chunks and type, thousands in a transaction; return their number.

        Raises:
            ItemError: a relation leads from or to a chunk that does not exist.
            OutputError: the database cannot be written; earlier transactions are kept.
        """
        from nlp_retrieval.systems.policy.chunk_tables.statements import write_relations

        self._require_own()
        count = 0
        remaining = iter(relations)
        while part := list(islice(remaining, _RELATIONS_TOGETHER)):
            self._server.write(partial(write_relations, layout=self._layout, relations=part))
            count += len(part)
        return count

    def index_vectors(self, column: str) -> None:
        """Create an HNSW index over a column of vectors, for approximate similarities.

        Raises:
            QueryError: there is no such column.
            OutputError: the database cannot be written, or the vectors are longer than pgvector indexes.
        """
        self._require_own()
        vectors = self._layout.vectors(column)
        extension = self._layout.extension[0] if self._layout.extension is not None else "public"

        def make(connection: Connection) -> None:
            from psycopg import sql

            statement = sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw ({} {})").format(
                sql.Identifier(f"ix_{CHUNKS}_{column}"),
                sql.Identifier(self._layout.schema, CHUNKS),
                sql.Identifier(column),
                sql.Identifier(extension, f"{vectors.compared_as}_cosine_ops"),
            )
            driver_of(connection).execute(statement)

        self._server.write(make)

    def _require_own(self) -> None:
        if self._layout.version is None:
            raise OutputError(
                f'{self._server.shown}, schema "{self._layout.schema}": another program created these tables, so they are read-'
                "only; to write to them, call ChunkTables.migrate(url, adopt=True)"
            )


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

    def reader(self) -> ChunkReader:
        """Open the tables, to be read."""
        return ChunkReader(self._url, schema=self.schema)

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the chunks, from a cursor of the server.

        Raises:
            DependencyError: SQLAlchemy or psycopg is not installed.
            SourceError: the database cannot be read, has no such tables, or a row cannot be an item.
            QueryError: there is no chunk of such a country.
        """
        with self.reader() as tables:
            yield from tables.stream(self.country)

    def relations(self) -> Iterator[ChunkRelation]:
        """Yield the relations between all chunks, of any country, from a cursor of the server.

        Raises:
            DependencyError: SQLAlchemy or psycopg is not installed.
            SourceError: the database cannot be read, has no such tables, or a relation leads to a missing chunk.
        """
        with self.reader() as tables:
            yield from tables.relations()
