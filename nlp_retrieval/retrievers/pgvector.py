"""Dense retrieval in PostgreSQL, with the extension pgvector."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, LiteralString

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, Matrix, Rows, search_past_ties
from nlp_retrieval.core.components.trust_rules import given, may_set, reads_model
from nlp_retrieval.core.files.columns import read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.search.joining import MergeRule
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import as_encoder
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError
from nlp_retrieval.retrievers.servers.postgres import FEW, Connections, Fill, PostgresRetriever, Schema, condition_of, sql
from nlp_retrieval.retrievers.servers.retriever import MISSING, ServerRecord, ServerVectorRetriever, padded
from nlp_retrieval.retrievers.vectors import write_vectors

if TYPE_CHECKING:
    from psycopg.sql import Composable

    from nlp_retrieval.retrievers.servers.postgres import PostgresConnection

# Vectors are encoded into a file first, so that no transaction is open while a model works, and a killed build is resumed; then
# they are copied, indexed and committed at once.
#
# The planner uses the HNSW index only for ``ORDER BY embedding <#> query``. Exact search orders by another expression of the
# same value, so it is never approximate by accident.

_AT_ONCE = 4096
_VECTORS = "vectors.npy"
_EXACT_BELOW = 20_000
"""Up to this many rows ``auto`` searches exactly; above, along an HNSW graph."""
_WIDEST = 1000
"""The largest ``hnsw.ef_search`` that the extension takes."""
_ITERATIVE_SINCE = (0, 8)

_SEARCH: LiteralString = (
    "SELECT row, -(embedding <#> %(query)s) AS score FROM {table} WHERE {condition} ORDER BY {order} LIMIT %(k)s"
)
_NEAREST: LiteralString = "embedding <#> %(query)s"
_EXACT: LiteralString = "score DESC, row"


class PgvectorRetriever(PostgresRetriever, ServerVectorRetriever[Connections]):
    """Dense retrieval with PostgreSQL and pgvector: inner product over an encoder's vectors, which live in a server.

    The index directory keeps the name of a table, but no URL. The server may have another URL later, or be a replica; a missing
    table is an error. Without a URL, an embedded server runs in the folder ``.postgres`` of the index directory while it is
    used (:class:`~nlp_retrieval.retrievers.EmbeddedServer`).

    The server applies filters and leaves out deleted items before a list is cut, so that k items are found whenever k match:
    along the graph where the extension scans it iteratively (0.8), and otherwise by comparing all allowed rows.

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        url: ``env:NAME``, an environment variable with the URL of a server, or that URL (``postgresql://user@host/name``),
            whose password is never shown. None: the embedded server.
        index_type: ``exact`` compares all rows; ``hnsw`` walks a graph (Malkov and Yashunin, 2016); ``auto`` is exact below
            20,000 items. Items that join an index are compared exactly until segments are joined.
        precision: ``halfvec`` keeps 16 bits of each number, in half the space (pgvector 0.7).
        hnsw_m: hnsw: links per node.
        ef_construction: hnsw: how widely the build searches for them.
        build_memory: hnsw: megabytes that the server may use to build it.
        ef_search: hnsw: how widely a search looks.
        schema: the schema of the tables, created if it does not exist.
        statement_timeout: seconds that one search on the server may take.
        connections: how many searches may run on the server at once.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([PgvectorRetriever(url="env:DATABASE_URL", index_type="hnsw")])
        Searcher(retrievers=[PgvectorRetriever(encoder=SentenceTransformerEncoder(), url='env:DATABASE_URL',
        index_type='hnsw')])
    """

    name = "pgvector"
    manifest_may_set = may_set(
        *("index_type", "precision", "hnsw_m", "ef_construction", "build_memory", "ef_search", "schema"),
        *("statement_timeout", "connections", "merge"),
        encoder=reads_model,
        url=given("ask the database"),
    )
    column = "embedding"
    search_only = frozenset({"url", "build_memory", "ef_search", "statement_timeout", "connections", "merge"})

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        url: str | None = None,
        index_type: Literal["auto", "exact", "hnsw"] = "auto",
        precision: Literal["float32", "halfvec"] = "float32",
        hnsw_m: Annotated[int, Field(ge=2, le=100)] = 16,
        ef_construction: Annotated[int, Field(ge=4, le=1000)] = 64,
        build_memory: Annotated[int, Field(ge=1, le=1_000_000)] = 512,
        ef_search: Annotated[int, Field(ge=1, le=1000)] = 100,
        schema: Schema = "public",
        statement_timeout: Annotated[float, Field(gt=0, le=86_400)] = 60.0,
        connections: Annotated[int, Field(ge=1, le=100)] = 8,
        merge: MergeRule = "alternate",
    ) -> None:
        super().__init__(url, schema, statement_timeout, connections)
        self.encoder = as_encoder(encoder)
        if ef_construction < 2 * hnsw_m:
            raise ConfigurationError(
                f"{self.name}: ef_construction={ef_construction} is less than twice hnsw_m={hnsw_m}; raise it to {2 * hnsw_m}"
            )
        self.index_type = index_type
        self.precision = precision
        self.hnsw_m = hnsw_m
        self.ef_construction = ef_construction
        self.build_memory = build_memory
        self.ef_search = ef_search
        self.merge = merge
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    # building

    def build(self, items: ItemTable, folder: Path) -> None:
        self._encode_into(items, folder, None, approximate=self._is_approximate(len(items)))

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        self._encode_into(items, folder, self.records(segments)[0][1].dimension, approximate=False)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        approximate = segments[0].first_row == 0 and self._is_approximate(len(items))
        dimension = ServerRecord.read(segments[0].folder).dimension
        self._make_vectors(folder, len(items), self.joined(segments), dimension, approximate)

    def _is_approximate(self, n_items: int) -> bool:
        return self.index_type == "hnsw" or (self.index_type == "auto" and n_items >= _EXACT_BELOW)

    def _encode_into(self, items: ItemTable, folder: Path, dimension: int | None, *, approximate: bool) -> None:
        path = folder / _VECTORS
        dimension = write_vectors(self, items, path, dimension)

        def fill(connection: PostgresConnection, table: Composable) -> None:
            from pgvector import HalfVector, Vector

            made = HalfVector if self._kind == "halfvec" else Vector
            with connection.cursor().copy(sql("COPY {table} FROM STDIN (FORMAT binary, FREEZE)", table=table)) as copy:
                copy.set_types(["int4", self._kind])
                for row, vector in enumerate(vector for block in read_blocks(path, _AT_ONCE) for vector in block):
                    copy.write_row((row, made(vector)))

        self._make_vectors(folder, len(items), fill, dimension, approximate)
        path.unlink()

    @property
    def _kind(self) -> Literal["vector", "halfvec"]:
        return "vector" if self.precision == "float32" else "halfvec"

    def _make_vectors(self, folder: Path, rows: int, fill: Fill, dimension: int, approximate: bool) -> None:
        index: Any = (
            f"USING hnsw (embedding {self._kind}_ip_ops) WITH (m = {self.hnsw_m}, ef_construction = {self.ef_construction})"
        )
        column: Any = f"{self._kind}({dimension})"
        self.make_table(
            folder,
            rows,
            column,
            fill,
            index=index if approximate else "",
            settings=self._settings() if approximate else {},
            **{"kind": self._kind, "dimension": dimension, "approximate": approximate},
        )

    def _settings(self) -> dict[str, str]:
        """Settings for building a graph: in memory, and on one core if the memory that processes share has no room for it."""
        settings = {"maintenance_work_mem": f"{self.build_memory}MB"}
        shared = Path("/dev/shm")  # noqa: S108 - only measured
        if self.url is None and shared.exists() and shutil.disk_usage(shared).free < 2 * self.build_memory * 2**20:
            settings["max_parallel_maintenance_workers"] = "0"
        return settings

    # searching

    def connect(self, folder: Path | None) -> Connections:
        server = super().connect(folder)
        with server.reading() as connection:
            server.version = _version(connection)
        return server

    @staticmethod
    def prepare(connection: PostgresConnection) -> None:
        """Create the extension if it is missing, and set a new connection up for its types."""
        from pgvector.psycopg import register_vector

        schema = (
            "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"
        )
        if connection.execute(schema).fetchone() is None:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        # only the schema of the extension: tables are named with theirs
        connection.execute(f"SELECT set_config('search_path', quote_ident(({schema})), false)")
        connection.execute("SELECT '[1]'::vector")  # the extension is loaded, and takes its settings from now on
        register_vector(connection)
        if _version(connection) >= _ITERATIVE_SINCE:
            connection.execute("SELECT set_config('hnsw.iterative_scan', 'strict_order', false)")

    def search_table(self, record: ServerRecord, queries: Vectors, k: int, allowed: Mask | None) -> Hits:
        n_found = record.rows if allowed is None else int(np.count_nonzero(allowed))
        iterative = self._server.version >= _ITERATIVE_SINCE
        is_cut = (allowed is not None and (n_found <= FEW or not iterative)) or (k > _WIDEST and not iterative)
        if is_cut or not record.approximate:
            return self._asked(record, queries, k, allowed, _EXACT)

        def search(numbers: Rows, depth: int) -> Matrix:
            return padded(self._asked(record, queries[numbers], depth, allowed, _NEAREST), depth)

        hits = search_past_ties(search, len(queries), k, n_found)
        short = np.flatnonzero(np.diff(hits.offsets) < k).tolist()  # the graph leaves some out
        exact = {number: self._asked(record, queries[number : number + 1], k, allowed, _EXACT).of(0) for number in short}
        return hits.with_lists(exact)

    def _asked(self, record: ServerRecord, queries: Vectors, k: int, allowed: Mask | None, order: LiteralString) -> Hits:
        from psycopg.sql import SQL

        condition, values = condition_of(allowed)
        query: Any = SQL("%(query)s::{}").format(SQL("vector" if record.kind == "vector" else "halfvec"))
        parts = {"table": self.named(record.table), "condition": condition, "order": SQL(order).format(query=query)}
        wide = {"hnsw.ef_search": str(min(max(self.ef_search, k), _WIDEST))} if order == _NEAREST else {}
        asked = [{"query": vector, "k": k, **values} for vector in queries]
        return self.answers(sql(_SEARCH, query=query, **parts), asked, **wide)

    def stored_vectors(self, server: Connections, record: ServerRecord, rows: Rows) -> Vectors:
        statement = "SELECT embedding::vector FROM {table} WHERE row = ANY(%s::integer[]) ORDER BY row"
        with server.reading() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(sql(statement, table=self.named(record.table)), [rows.tolist()])
            vectors = [vector.to_numpy() for (vector,) in cursor]
        if len(vectors) != len(rows):
            raise IndexDamagedError(f"{server.shown}: vectors of the index are not in {record.table} any more; {MISSING}")
        return np.stack(vectors)


def _version(connection: PostgresConnection) -> tuple[int, ...]:
    """Return the version of the extension."""
    [(version,)] = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    return tuple(map(int, version.split(".")))
