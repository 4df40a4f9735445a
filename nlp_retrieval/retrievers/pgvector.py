"""Dense retrieval in PostgreSQL, with the extension pgvector."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, LiteralString

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask, MergeRule, Rows
from nlp_retrieval.core.components.trust_rules import given, may_set, reads_model
from nlp_retrieval.core.files.columns import read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.sentence_transformer import as_encoder
from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexDamagedError, install
from nlp_retrieval.loaders.database import hide_secrets, resolve
from nlp_retrieval.retrievers.servers.embedded import EmbeddedServer
from nlp_retrieval.retrievers.servers.postgres import Connections, sql
from nlp_retrieval.retrievers.servers.retriever import MISSING, ServerRecord, ServerVectorRetriever, padded
from nlp_retrieval.retrievers.vectors import Matrix, search_past_ties, write_vectors

if TYPE_CHECKING:
    from psycopg.sql import Composable, Composed

    from nlp_retrieval.retrievers.servers.postgres import PostgresConnection

# Vectors are encoded into a file first, so that no transaction is open while a model works, and a killed build is resumed; then
# they are copied, indexed and committed at once.
#
# The planner uses the HNSW index only for ``ORDER BY embedding <#> query``. Exact search orders by another expression of the
# same value, so it is never approximate by accident.

_AT_ONCE = 4096
_VECTORS = "vectors.npy"
_BUILD_MEMORY = 512
"""Megabytes that the server may use to build a graph."""
_EXACT_BELOW = 20_000
"""Up to this many rows ``auto`` searches exactly; above, along an HNSW graph."""
_WIDEST = 1000
"""The largest ``hnsw.ef_search`` that the extension takes."""

Schema = Annotated[str, Field(pattern=r"^[^\x00%]{1,63}$")]
"""The name of a schema of PostgreSQL; its driver takes no ``%``."""

Fill = Callable[["PostgresConnection", "Composable"], object]
"""Writes the rows of a new table, in the transaction that creates it."""

_FEW = 20_000
"""Most rows of a filter that are listed, and fetched by the index of the rows; of more, there is one bit for each."""

_SEARCH: LiteralString = (
    "SELECT row, -(embedding <#> %(query)s) AS score FROM {table} WHERE {condition} ORDER BY {order} LIMIT %(k)s"
)
_NEAREST: LiteralString = "embedding <#> %(query)s"
_EXACT: LiteralString = "score DESC, row"


class PgvectorRetriever(ServerVectorRetriever[Connections]):
    """Dense retrieval with PostgreSQL and pgvector: inner product over an encoder's vectors, which live in a server.

    The index directory keeps the name of a table, but no URL. The server may have another URL later, or be a replica; a missing
    table is an error. Without a URL, an embedded server runs in the folder ``.postgres`` of the index directory while it is
    used (:class:`~nlp_retrieval.retrievers.EmbeddedServer`).

    The server applies filters and leaves out deleted items before a list is cut, so that k items are found whenever k match:
    along the graph, which the extension scans iteratively, or by comparing all allowed rows where they are few.

    Args:
        encoder: a model's hub name, a local folder, or an encoder.
        url: ``env:NAME``, an environment variable with the URL of a server, or that URL (``postgresql://user@host/name``),
            whose password is never shown. None: the embedded server.
        index_type: ``exact`` compares all rows; ``hnsw`` walks a graph (Malkov and Yashunin, 2016); ``auto`` is exact below
            20,000 items. Items that join an index are compared exactly until segments are joined.
        precision: ``halfvec`` keeps 16 bits of each number, in half the space.
        hnsw_m: hnsw: links per node.
        ef_construction: hnsw: how widely the build searches for them.
        ef_search: hnsw: how widely a search looks.
        schema: the schema of the tables, created if it does not exist.
        merge: how sub-queries of one query are merged: ``alternate``, ``max``, ``rrf`` or ``round_robin``.

    Examples:
        >>> Searcher([PgvectorRetriever(url="env:DATABASE_URL", index_type="hnsw")])
        Searcher(retrievers=[PgvectorRetriever(encoder=SentenceTransformerEncoder(), url='env:DATABASE_URL',
        index_type='hnsw')])
    """

    name = "pgvector"
    manifest_may_set = may_set(
        *("index_type", "precision", "hnsw_m", "ef_construction", "ef_search", "schema", "merge"),
        encoder=reads_model,
        url=given("ask the database"),
    )
    folder = ".postgres"
    search_only = frozenset({"url", "ef_search", "merge"})

    def __init__(
        self,
        encoder: str | BaseEncoder = "sentence-transformers/all-MiniLM-L6-v2",
        url: str | None = None,
        index_type: Literal["auto", "exact", "hnsw"] = "auto",
        precision: Literal["float32", "halfvec"] = "float32",
        hnsw_m: Annotated[int, Field(ge=2, le=100)] = 16,
        ef_construction: Annotated[int, Field(ge=4, le=1000)] = 64,
        ef_search: Annotated[int, Field(ge=1, le=1000)] = 100,
        schema: Schema = "public",
        merge: MergeRule = "alternate",
    ) -> None:
        super().__init__(url)
        self.encoder = as_encoder(encoder)
        if ef_construction < 2 * hnsw_m:
            raise ConfigurationError(
                f"{self.name}: ef_construction={ef_construction} is less than twice hnsw_m={hnsw_m}; raise it to {2 * hnsw_m}"
            )
        self.index_type = index_type
        self.precision = precision
        self.hnsw_m = hnsw_m
        self.ef_construction = ef_construction
        self.ef_search = ef_search
        self.schema = schema
        self.merge = merge
        self._arguments["encoder"] = self.encoder  # a name and its encoder are the same configuration

    # building

    def build(self, items: ItemTable, folder: Path) -> None:
        self._encode_into(items, folder, None, approximate=self._is_approximate(len(items)))

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        del everything
        self._encode_into(items, folder, self.records(segments)[0][1].dimension, approximate=False)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        """Fill the table from those of the segments, on the server: without deleted items, and with new numbers."""
        records = self.records(segments)

        def fill(connection: PostgresConnection, table: Composable) -> None:
            first = 0
            for segment, record in records:
                condition, values = _condition_of(segment.live)
                statement = (
                    "INSERT INTO {table} SELECT %(first)s - 1 + row_number() OVER (ORDER BY row), embedding FROM {old} "
                    "WHERE {condition} ORDER BY row"
                )
                copied = sql(statement, table=table, old=self._named(record.table), condition=condition)
                first += connection.execute(copied, values | {"first": first}).rowcount

        approximate = segments[0].first_row == 0 and self._is_approximate(len(items))
        self._make_table(folder, len(items), fill, records[0][1].dimension, approximate)

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

        self._make_table(folder, len(items), fill, dimension, approximate)
        path.unlink()

    @property
    def _kind(self) -> Literal["vector", "halfvec"]:
        return "vector" if self.precision == "float32" else "halfvec"

    def _make_table(self, folder: Path, rows: int, fill: Fill, dimension: int, approximate: bool) -> None:
        """Create the table of a segment and its index in one transaction, and write the segment's record."""
        from psycopg.sql import SQL, Identifier

        server, name = self.server_of(folder.parent), self.new_name(folder.parent)
        table, column = self._named(name), SQL(f"{self._kind}({dimension})")
        with server.writing() as connection:
            for setting, value in (self._settings() if approximate else {}).items():
                connection.execute("SELECT set_config(%s, %s, true)", [setting, value])
            # without the right to create schemas, IF NOT EXISTS is refused even where there is one
            if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema]).fetchone() is None:
                connection.execute(sql("CREATE SCHEMA IF NOT EXISTS {schema}", schema=Identifier(self.schema)))
            created = "CREATE TABLE {table} (row integer NOT NULL, embedding {column} NOT NULL)"
            connection.execute(sql(created, table=table, column=column))
            fill(connection, table)
            connection.execute(sql("ALTER TABLE {table} ADD PRIMARY KEY (row)", table=table))
            if approximate:
                links: Any = f"(m = {self.hnsw_m}, ef_construction = {self.ef_construction})"
                graph = "CREATE INDEX ON {table} USING hnsw (embedding {operators}) WITH {links}"
                operators = SQL("vector_ip_ops" if self._kind == "vector" else "halfvec_ip_ops")
                connection.execute(sql(graph, table=table, operators=operators, links=SQL(links)))
            connection.execute(sql("ANALYZE {table}", table=table))
        ServerRecord(table=name, rows=rows, kind=self._kind, dimension=dimension, approximate=approximate).write(folder)

    def _settings(self) -> dict[str, str]:
        """Settings for building a graph: in memory, and on one core if the memory that processes share has no room for it."""
        settings = {"maintenance_work_mem": f"{_BUILD_MEMORY}MB"}
        shared = Path("/dev/shm")  # noqa: S108 - only measured
        if self.url is None and shared.exists() and shutil.disk_usage(shared).free < 2 * _BUILD_MEMORY * 2**20:
            settings["max_parallel_maintenance_workers"] = "0"
        return settings

    # searching

    def connect(self, folder: Path | None) -> Connections:
        try:
            import pgvector  # noqa: F401
            import psycopg  # noqa: F401
            import psycopg_pool  # noqa: F401
        except ImportError as error:
            raise DependencyError(f"PostgreSQL needs its driver: {install('postgres')} ({error})") from error
        if self.url is not None:
            url, shown = resolve(self.url), hide_secrets(self.url)
        else:
            embedded = EmbeddedServer(folder or Path())
            url, shown = embedded.url(), repr(embedded)
        return Connections(url, shown, self.prepare)

    def rows_of(self, server: Connections, table: str) -> int | None:
        try:
            with server.reading() as connection:
                [(n_rows,)] = connection.execute(sql("SELECT count(*) FROM {table}", table=self._named(table)))
        except IndexDamagedError:
            return None
        return int(n_rows)

    def drop_unnamed(self, server: Connections, prefix: str, named: set[str]) -> None:
        with server.writing() as connection:
            connection.execute("SET LOCAL lock_timeout = '5s'")
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)", [self.schema, prefix]
            ).fetchall()
            for table in {name for (name,) in tables} - named:
                connection.execute(sql("DROP TABLE IF EXISTS {table}", table=self._named(table)))

    def _named(self, table: str) -> Composable:
        from psycopg.sql import Identifier

        return Identifier(self.schema, table)

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
        connection.execute("SELECT set_config('hnsw.iterative_scan', 'strict_order', false)")

    def search_table(self, record: ServerRecord, queries: Vectors, k: int, allowed: Mask | None) -> Hits:
        n_found = record.rows if allowed is None else int(np.count_nonzero(allowed))
        if not record.approximate or (allowed is not None and n_found <= _FEW):
            return self._asked(record, queries, k, allowed, _EXACT)

        def search(numbers: Rows, depth: int) -> Matrix:
            return padded(self._asked(record, queries[numbers], depth, allowed, _NEAREST), depth)

        hits = search_past_ties(search, len(queries), k, n_found)
        short = np.flatnonzero(np.diff(hits.offsets) < k).tolist()  # the graph leaves some out
        exact = {number: self._asked(record, queries[number : number + 1], k, allowed, _EXACT).of(0) for number in short}
        return hits.with_lists(exact)

    def _asked(self, record: ServerRecord, queries: Vectors, k: int, allowed: Mask | None, order: LiteralString) -> Hits:
        from psycopg.sql import SQL

        condition, values = _condition_of(allowed)
        query: Any = SQL("%(query)s::{}").format(SQL("vector" if record.kind == "vector" else "halfvec"))
        parts = {"table": self._named(record.table), "condition": condition, "order": SQL(order).format(query=query)}
        wide = {"hnsw.ef_search": str(min(max(self.ef_search, k), _WIDEST))} if order == _NEAREST else {}
        asked = [{"query": vector, "k": k, **values} for vector in queries]
        with self._server.reading() as connection, connection.cursor(binary=True) as cursor:
            for name, value in wide.items():
                cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
            cursor.executemany(sql(_SEARCH, query=query, **parts), asked, returning=True)
            columns = [np.array(cursor.fetchall(), np.float64).reshape(-1, 2) for _ in cursor.results()]
        return Hits.from_lists([(pairs[:, 0].astype(np.int64), pairs[:, 1].copy()) for pairs in columns])

    def stored_vectors(self, server: Connections, record: ServerRecord, rows: Rows) -> Vectors:
        statement = "SELECT embedding::vector FROM {table} WHERE row = ANY(%s::integer[]) ORDER BY row"
        with server.reading() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute(sql(statement, table=self._named(record.table)), [rows.tolist()])
            vectors = [vector.to_numpy() for (vector,) in cursor]
        if len(vectors) != len(rows):
            raise IndexDamagedError(f"{server.shown}: vectors of the index are not in {record.table} any more; {MISSING}")
        return np.stack(vectors)


def _condition_of(allowed: Mask | None) -> tuple[Composed, dict[str, Any]]:
    """A condition on the column ``row``, and its parameters: the server never cuts a list before a filter is applied."""
    if allowed is None:
        return sql("true"), {}
    rows = np.flatnonzero(allowed)
    if len(rows) <= _FEW:
        return sql("row = ANY(%(rows)s::integer[])"), {"rows": "{" + ",".join(map(str, rows.tolist())) + "}"}
    return sql("get_bit(%(mask)s::bytea, row) = 1"), {"mask": np.packbits(allowed, bitorder="little").tobytes()}
