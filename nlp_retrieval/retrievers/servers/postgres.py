"""The base of engines whose data lives in PostgreSQL: a pool of connections, and a table for each segment.

A URL is libpq's own (``postgresql://user@host/name`` or ``host=... dbname=...``) or ``env:NAME``, the name of an environment
variable that holds it. A driver's messages are shown without the secrets of the URL.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, LiteralString

import numpy as np
from pydantic import Field

from nlp_retrieval.core.candidates import Hits, Mask
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    IndexDamagedError,
    IndexWriteError,
    RetrievalError,
    ServerError,
    install,
)
from nlp_retrieval.loaders.database import hide_secrets, resolve, scrub
from nlp_retrieval.retrievers.servers.embedded import EmbeddedServer
from nlp_retrieval.retrievers.servers.retriever import MISSING, ServerRecord, ServerRetriever
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed
    from psycopg_pool import ConnectionPool

    PostgresConnection = Connection[tuple[Any, ...]]

_SECONDS_TO_CONNECT = 10
_CURES = {
    "57014": "a statement took too long; raise statement_timeout, or search with an index (index_type='hnsw')",
    "54000": "use index_type='exact', or for up to 4,000 dimensions precision='halfvec'",
    "42704": "upgrade pgvector to 0.7 and run ALTER EXTENSION vector UPDATE, or use precision='float32'",
    "0A000": "install pgvector on the server (Debian: postgresql-<version>-pgvector), and CREATE EXTENSION vector as superuser",
    "42501": "GRANT the role CREATE on the database or schema (to index), and USAGE and SELECT (to search)",
}
"""What to do about an error of the server, by its SQLSTATE."""
_GONE = ("3F000", "42P01", "42703")
"""SQLSTATEs of a schema, table or column that does not exist."""


class Connections:
    """Connections to one server, opened on demand and kept for reuse; each new one is handed to ``prepare``."""

    version: tuple[int, ...] = ()
    """Of the extension that an engine needs."""

    def __init__(
        self, url: str, shown: str, statement_timeout: float, most: int, prepare: Callable[[PostgresConnection], None]
    ) -> None:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
        from psycopg_pool import ConnectionPool

        self.process = os.getpid()
        self.shown = shown
        self._url = url.replace("postgresql+psycopg://", "postgresql://", 1)
        settings: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": None,  # servers that pool connections may not know of prepared statements
            "connect_timeout": _SECONDS_TO_CONNECT,
            "application_name": "nlp_retrieval",
            "client_encoding": "utf8",
            "options": f"-c client_min_messages=error -c statement_timeout={int(statement_timeout * 1000)}",
        }
        try:
            conninfo_to_dict(self._url)
        except psycopg.ProgrammingError:  # its message quotes the URL, which may hold a password anywhere
            raise ConfigurationError(f"{shown}: not the URL of a PostgreSQL; write postgresql://user@host/name") from None
        with self._explaining(), psycopg.connect(self._url, **settings) as connection:
            prepare(connection)  # the pool only logs why it cannot connect
        self._pool: ConnectionPool[PostgresConnection] = ConnectionPool(
            self._url,
            kwargs=settings,
            min_size=0,
            max_size=most,
            timeout=_SECONDS_TO_CONNECT,
            check=ConnectionPool.check_connection,
            configure=prepare,
            open=True,
        )
        weakref.finalize(self, _close, self._pool, self.process)

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        """Lend a connection for statements that read."""
        with self._explaining(), self._pool.connection() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[PostgresConnection]:
        """Lend a connection for one transaction without a time-out: all of it is kept, or nothing."""
        with (
            self._explaining("; nothing was written: run it again"),
            self._pool.connection() as connection,
            connection.transaction(),
        ):
            connection.execute("SET LOCAL statement_timeout = 0")
            yield connection

    @contextmanager
    def _explaining(self, and_so: str = "") -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise self._explained(error, and_so) from None

    def _explained(self, error: Exception, and_so: str) -> RetrievalError:
        """Turn a driver's error into one with advice."""
        state = getattr(error, "sqlstate", None) or ""
        reason = printable(" ".join(scrub(error, self._url).split()))[:400]
        if state.startswith("53") or "No space left" in reason:
            return IndexWriteError(f"{self.shown}: the server has no room: {reason}; free some disk or memory there{and_so}")
        if state in _GONE:
            return IndexDamagedError(f"{self.shown}: a table of the index was dropped or changed ({reason}); {MISSING}")
        if not state or (state[:2] in ("08", "57") and state != "57014"):
            cause = f"the server cannot be reached: {reason}; check that it runs, the URL, user and password, and connections"
        else:
            cause = f"the server refuses: {reason}; {_CURES.get(state, 'see its log')}"
        return ServerError(f"{self.shown}: {cause}{and_so}")


def _close(pool: ConnectionPool[Any], process: int) -> None:
    if os.getpid() == process:  # in a forked process, they still belong to the parent
        pool.close()


def sql(text: LiteralString, **parts: Composable) -> Composed:
    """A statement with parts in it that are SQL themselves."""
    from psycopg.sql import SQL

    return SQL(text).format(**parts)


Schema = Annotated[str, Field(pattern=r"^[^\x00%]{1,63}$")]
"""The name of a schema of PostgreSQL; its driver takes no ``%``."""

Fill = Callable[["PostgresConnection", "Composable"], object]
"""Writes the rows of a new table (row and the searched column), in the transaction that creates it."""

FEW = 20_000
"""Most rows of a filter that are listed, and fetched by the index of the rows; of more, there is one bit for each."""


class PostgresRetriever(ServerRetriever[Connections]):
    """Base of engines over PostgreSQL; their constructors pass on these parameters.

    Args:
        url: of the server; None for the embedded one.
        schema: of the tables.
        statement_timeout: seconds a search may take.
        connections: how many at once.
    """

    folder = ".postgres"
    column: ClassVar[LiteralString]
    """The column that is searched."""

    def __init__(self, url: str | None, schema: str, statement_timeout: float, connections: int) -> None:
        super().__init__(url)
        self.schema = schema
        self.statement_timeout = statement_timeout
        self.connections = connections

    @staticmethod
    def prepare(connection: PostgresConnection) -> None:
        """Set up a new connection."""

    def connect(self, folder: Path | None) -> Connections:
        try:
            import psycopg  # noqa: F401
            import psycopg_pool  # noqa: F401
        except ImportError as error:
            raise DependencyError(f"PostgreSQL needs its driver: {install('postgres')} ({error})") from error
        if self.url is not None:
            url, shown = resolve(self.url), hide_secrets(self.url)
        else:
            server = EmbeddedServer(folder or Path())
            url, shown = server.url(), repr(server)
        return Connections(url, shown, self.statement_timeout, self.connections, self.prepare)

    def rows_of(self, server: Connections, table: str) -> int | None:
        try:
            with server.reading() as connection:
                [(n_rows,)] = connection.execute(sql("SELECT count(*) FROM {table}", table=self.named(table)))
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
                connection.execute(sql("DROP TABLE IF EXISTS {table}", table=self.named(table)))

    def named(self, table: str) -> Composable:
        """Return the quoted name of a table."""
        from psycopg.sql import Identifier

        return Identifier(self.schema, table)

    def make_table(
        self,
        folder: Path,
        rows: int,
        column_type: LiteralString,
        fill: Fill,
        *,
        index: LiteralString = "",
        settings: dict[str, str] | None = None,
        **recorded: Any,
    ) -> None:
        """Create the table of a segment and its index in one transaction, and write the segment's record.

        Args:
            folder: of the segment.
            rows: how many ``fill`` writes.
            column_type: of the searched column.
            fill: writes the rows.
            index: of the column, as SQL (``USING gin (words)``).
            settings: of the server, for this transaction.
            recorded: more of a :class:`ServerRecord`.
        """
        server, name = self.server_of(folder.parent), self.new_name(folder.parent)
        from psycopg.sql import SQL, Identifier

        table = self.named(name)
        with server.writing() as connection:
            for setting, value in (settings or {}).items():
                connection.execute("SELECT set_config(%s, %s, true)", [setting, value])
            # without the right to create schemas, IF NOT EXISTS is refused even where there is one
            if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema]).fetchone() is None:
                connection.execute(sql("CREATE SCHEMA IF NOT EXISTS {schema}", schema=Identifier(self.schema)))
            columns = {"column": SQL(self.column), "type": SQL(column_type)}
            connection.execute(
                sql("CREATE TABLE {table} (row integer NOT NULL, {column} {type} NOT NULL)", table=table, **columns)
            )
            fill(connection, table)
            connection.execute(sql("ALTER TABLE {table} ADD PRIMARY KEY (row)", table=table))
            if index:
                connection.execute(sql("CREATE INDEX ON {table} {index}", table=table, index=SQL(index)))
            connection.execute(sql("ANALYZE {table}", table=table))
        ServerRecord(table=name, rows=rows, **recorded).write(folder)

    def joined(self, segments: Sequence[SegmentFolder]) -> Fill:
        """Fill a table from those of segments, on the server: without the rows of deleted items, and with new numbers."""
        from psycopg.sql import SQL

        records = self.records(segments)

        def fill(connection: PostgresConnection, table: Composable) -> None:
            first = 0
            for segment, record in records:
                condition, values = condition_of(segment.live)
                copied = connection.execute(
                    sql(
                        "INSERT INTO {table} SELECT %(first)s - 1 + row_number() OVER (ORDER BY row), {column} FROM {old} "
                        "WHERE {condition} ORDER BY row",
                        **{"table": table, "column": SQL(self.column), "old": self.named(record.table)},
                        condition=condition,
                    ),
                    values | {"first": first},
                )
                first += copied.rowcount

        return fill

    def answers(self, statement: Composed, queries: Sequence[dict[str, Any]], **settings: str) -> Hits:
        """Send a statement that returns rows and their scores, best first, for each query, in one round trip."""
        with self._server.reading() as connection, connection.cursor(binary=True) as cursor:
            for name, value in settings.items():
                cursor.execute("SELECT set_config(%s, %s, false)", [name, value])
            cursor.executemany(statement, queries, returning=True)
            columns = [np.array(cursor.fetchall(), np.float64).reshape(-1, 2) for _ in cursor.results()]
        return Hits.from_lists([(found[:, 0].astype(np.int64), found[:, 1].copy()) for found in columns])


def condition_of(allowed: Mask | None) -> tuple[Composed, dict[str, Any]]:
    """A condition on the column ``row``, and its parameters: the server never cuts a list before a filter is applied."""
    if allowed is None:
        return sql("true"), {}
    rows = np.flatnonzero(allowed)
    if len(rows) <= FEW:
        return sql("row = ANY(%(rows)s::integer[])"), {"rows": "{" + ",".join(map(str, rows.tolist())) + "}"}
    return sql("get_bit(%(mask)s::bytea, row) = 1"), {"mask": np.packbits(allowed, bitorder="little").tobytes()}
