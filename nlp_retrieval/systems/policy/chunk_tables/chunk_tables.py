"""Store of documents, their chunks with vectors, and relations between chunks, in PostgreSQL.

Tables made by other programs are read as they are, and altered only by ``migrate(adopt=True)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from nlp_retrieval.errors import ItemError, OutputError
from nlp_retrieval.systems.policy.chunk_tables.layout import CHUNKS, DOCUMENTS
from nlp_retrieval.systems.policy.chunk_tables.migration import dimensions_of, upgrade
from nlp_retrieval.systems.policy.chunk_tables.reader import ChunkReader
from nlp_retrieval.systems.policy.chunk_tables.server import ChunkServer, driver_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from nlp_retrieval.systems.policy.chunk_tables.relations import ChunkRelation
    from nlp_retrieval.systems.policy.chunk_tables.writing import EncodesPassages, WrittenChunks

__all__ = ["ChunkTables"]

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
        encoders: Mapping[str, EncodesPassages] | None = None,
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
        from nlp_retrieval.systems.policy.chunk_tables.writing import (
            WrittenChunks,
            documents_of,
            together,
            vector_rows,
            write_documents,
        )

        self._require_own()
        given = dict(vectors or {})
        n_documents = n_chunks = 0
        zero: dict[str, int] = {}
        for documents in together(documents_of(items), _CHUNKS_TOGETHER):
            chunks = [chunk.item for theirs in documents.values() for chunk in theirs]
            own = {column: matrix[n_chunks : n_chunks + len(chunks)] for column, matrix in given.items()}
            texts = [item.text for item in chunks]
            own |= {column: encoder.encode_passages(texts) for column, encoder in (encoders or {}).items()}
            rows, left_out = vector_rows(self._layout, [item.item_id for item in chunks], own)
            self._server.write(partial(write_documents, layout=self._layout, documents=documents, vectors=rows))
            n_documents, n_chunks = n_documents + len(documents), n_chunks + len(chunks)
            zero = {column: zero.get(column, 0) + count for column, count in left_out.items()}
        if wrong := [column for column, matrix in given.items() if len(matrix) != n_chunks]:
            raise ItemError(
                f"{wrong[0]}: {len(given[wrong[0]]):,} vectors were given for {n_chunks:,} items; pass one for each"
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

        from nlp_retrieval.systems.policy.chunk_tables.ids import document_uuid
        from nlp_retrieval.systems.policy.chunk_tables.writing import chunk_table

        self._require_own()
        documents, chunks = chunk_table(self._layout, DOCUMENTS), chunk_table(self._layout, CHUNKS)
        keys = [document_uuid(document, ""), document_uuid(None, document)]

        def delete(connection: Connection) -> int:
            there = connection.execute(select(documents.c.id).where(documents.c.id.in_(keys)).with_for_update()).scalars().all()
            if not there:
                raise ItemError(f"there is no document {document!r:.80}; name it as the items do")
            count = connection.execute(select(func.count()).select_from(chunks).where(chunks.c.doc_id.in_(there))).scalar()
            connection.execute(documents.delete().where(documents.c.id.in_(there)))
            return count or 0

        return self._server.write(delete)

    def write_relations(self, relations: Iterable[ChunkRelation]) -> int:
        """Write relations, replacing those of the same chunks and type, thousands in a transaction; return their number.

        Raises:
            ItemError: a relation leads from or to a chunk that does not exist.
            OutputError: the database cannot be written; earlier transactions are kept.
        """
        from nlp_retrieval.systems.policy.chunk_tables.relations import write_relations

        self._require_own()
        count = 0
        left = iter(relations)
        while part := list(islice(left, _RELATIONS_TOGETHER)):
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
        found = self._layout.vectors(column)
        extension = self._layout.extension[0] if self._layout.extension is not None else "public"

        def make(connection: Connection) -> None:
            from psycopg import sql

            statement = sql.SQL("CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw ({} {})").format(
                sql.Identifier(f"ix_{CHUNKS}_{column}"),
                sql.Identifier(self._layout.schema, CHUNKS),
                sql.Identifier(column),
                sql.Identifier(extension, f"{found.compared_as}_cosine_ops"),
            )
            driver_of(connection).execute(statement)

        self._server.write(make)

    def _require_own(self) -> None:
        if self._layout.version is None:
            raise OutputError(
                f'{self._server.shown}, schema "{self._layout.schema}": somebody else made these tables, so they are only '
                "read; to write to them, ChunkTables.migrate(url, adopt=True)"
            )
