"""The base of engines whose data lives in PostgreSQL: a pool of connections, and a table for each segment.

A URL is libpq's own (``postgresql://user@host/name`` or ``host=... dbname=...``) or ``env:NAME``, the name of an environment
variable that holds it. A driver's messages are shown without the secrets of the URL.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, LiteralString, TypeVar

import numpy as np

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
from nlp_retrieval.retrievers.servers.retriever import MISSING, ServerRetriever
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed
    from psycopg_pool import ConnectionPool

    PostgresConnection = Connection[tuple[Any, ...]]

T = TypeVar("T")

_SECONDS_TO_CONNECT = 10
_CURES = {
    "57014": "a statement took too long; raise statement_timeout, or search with an index (index_type='hnsw')",
    "42501": "GRANT the role CREATE on the database or schema (to index), and USAGE and SELECT (to search)",
}
"""What to do about an error of the server, by its SQLSTATE."""
_FULL = ("No space left", "Disk quota", "File too large")
_GONE = ("3F000", "42P01", "42703")
"""SQLSTATEs of a schema, table or column that does not exist."""


def require_driver() -> None:
    """Raise :class:`DependencyError` unless PostgreSQL's driver is installed."""
    try:
        import psycopg  # noqa: F401
        import psycopg_pool  # noqa: F401
    except ImportError as error:
        raise DependencyError(f"PostgreSQL needs its driver: {install('postgres')} ({error})") from error


class Connections:
    """Connections to one server, opened on demand and kept for reuse; each new one is handed to ``prepare``."""

    version: tuple[int, ...] = ()
    """Of the extension that an engine needs."""

    def __init__(
        self,
        url: str | None,
        embedded: EmbeddedServer | None,
        statement_timeout: float,
        most: int,
        prepare: Callable[[PostgresConnection], None],
    ) -> None:
        require_driver()
        import psycopg
        from psycopg_pool import ConnectionPool

        self.process = os.getpid()
        self.shown = hide_secrets(url) if url is not None else repr(embedded)
        self._url = resolve(url) if url is not None else embedded.url() if embedded is not None else ""
        self._check_url()
        address = self._url.replace("postgresql+psycopg://", "postgresql://", 1)
        settings: dict[str, Any] = {
            "autocommit": True,
            "prepare_threshold": None,  # servers that pool connections may not know of prepared statements
            "connect_timeout": _SECONDS_TO_CONNECT,
            "application_name": "nlp_retrieval",
            "client_encoding": "utf8",
            "options": f"-c client_min_messages=error -c statement_timeout={int(statement_timeout * 1000)}",
        }
        try:  # the pool only logs why it cannot connect
            with psycopg.connect(address, **settings) as connection:
                prepare(connection)
        except psycopg.Error as error:
            raise self._explained(error) from None
        self._pool: ConnectionPool[PostgresConnection] = ConnectionPool(
            address,
            kwargs=settings,
            min_size=0,
            max_size=most,
            timeout=_SECONDS_TO_CONNECT,
            check=ConnectionPool.check_connection,
            configure=prepare,
            open=True,
        )
        weakref.finalize(self, _close, self._pool, embedded, self.process)

    def read(self, work: Callable[[PostgresConnection], T]) -> T:
        """Run statements that read."""
        import psycopg

        try:
            with self._pool.connection() as connection:
                return work(connection)
        except psycopg.Error as error:
            raise self._explained(error) from None

    def write(self, work: Callable[[PostgresConnection], T]) -> T:
        """Run one transaction, without a time-out: all of it is kept, or nothing."""
        import psycopg

        try:
            with self._pool.connection() as connection, connection.transaction():
                connection.execute("SET LOCAL statement_timeout = 0")
                return work(connection)
        except psycopg.Error as error:
            raise self._explained(error, "; nothing was written: run it again") from None

    def _explained(self, error: Exception, and_so: str = "") -> RetrievalError:
        """Turn a driver's error into one with advice."""
        from psycopg_pool import PoolTimeout

        state = getattr(error, "sqlstate", None) or ""
        reason = printable(" ".join(scrub(error, self._url).split()))[:400]
        if state.startswith("53") or any(words in reason for words in _FULL):
            return IndexWriteError(f"{self.shown}: the server has no room: {reason}; free some disk or memory there{and_so}")
        if state in _GONE:
            return IndexDamagedError(f"{self.shown}: a table of the index was dropped or changed ({reason}); {MISSING}")
        if isinstance(error, PoolTimeout):
            cause = (
                f"no connection was free for {_SECONDS_TO_CONNECT} seconds; raise connections, or check that the server runs"
            )
        elif not state or (state[:2] in ("08", "57") and state != "57014"):
            cause = f"the server cannot be reached: {reason}; check that it runs, the URL, user and password"
        else:
            cause = f"the server refuses: {reason}; {_CURES.get(state, 'see its log')}"
        return ServerError(f"{self.shown}: {cause}{and_so}")

    def _check_url(self) -> None:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            parts = conninfo_to_dict(self._url.replace("postgresql+psycopg://", "postgresql://", 1))
        except ProgrammingError:  # its message quotes the URL, which may hold a password anywhere
            parts = {}
        if not parts.get("dbname") and not parts.get("service"):
            raise ConfigurationError(
                f"{self.shown}: not the URL of a database in PostgreSQL (its value is not shown); write postgresql://user@host/name"
            )


def _close(pool: ConnectionPool[Any], embedded: EmbeddedServer | None, process: int) -> None:
    if os.getpid() == process:  # in a forked process, they still belong to the parent
        pool.close()
        if embedded is not None:
            embedded.close()


_LONGEST_NAME = 63
_FEW = 20_000
"""Most rows of a filter that are listed, and fetched by the index of the rows; of more, there is one bit for each."""

Fill = Callable[["PostgresConnection", "Composed"], object]
"""Writes the rows of a new table (row and the searched column), in the transaction that creates it."""


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
        if not 0 < len(schema.encode()) <= _LONGEST_NAME or {"\0", "%"} & {*schema} or schema.startswith("pg_"):
            raise ConfigurationError(
                f"{self.name}: schema={schema!r:.80} cannot be the name of a schema: 1 to {_LONGEST_NAME} bytes, without %, "
                "not beginning with pg_"
            )
        self.schema = schema
        self.statement_timeout = statement_timeout
        self.connections = connections

    @staticmethod
    def prepare(connection: PostgresConnection) -> None:
        """Set up a new connection."""

    def connect(self, folder: Path | None) -> Connections:
        embedded = None if folder is None else EmbeddedServer(folder)
        return Connections(self.url, embedded, self.statement_timeout, self.connections, self.prepare)

    def rows_of(self, server: Connections, table: str) -> int | None:
        from psycopg.sql import SQL, Identifier

        statement = SQL("SELECT count(*) FROM (SELECT row, {} FROM {}) AS rows").format(
            Identifier(self.column), self.named(table)
        )
        try:
            return server.read(lambda connection: int((connection.execute(statement).fetchone() or (0,))[0]))
        except IndexDamagedError:
            return None

    def drop_unnamed(self, server: Connections, prefix: str, named: set[str]) -> None:
        from psycopg.sql import SQL

        def drop(connection: PostgresConnection) -> None:
            connection.execute("SET LOCAL lock_timeout = '5s'")
            wanted = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)"
            for (table,) in connection.execute(wanted, [self.schema, prefix]).fetchall():
                if table not in named:
                    connection.execute(SQL("DROP TABLE IF EXISTS {}").format(self.named(table)))

        server.write(drop)

    def named(self, table: str) -> Composed:
        """Return the quoted name of a table."""
        from psycopg.sql import SQL, Identifier

        return SQL("{}").format(Identifier(self.schema, table))

    def make_table(
        self, folder: Path, rows: int, column_type: LiteralString, fill: Fill, *, index: LiteralString = "", **settings: str
    ) -> str:
        """Create the table of a segment and its index in one transaction, and return its name.

        Args:
            folder: of the segment.
            rows: how many ``fill`` writes.
            column_type: of the searched column.
            fill: writes the rows.
            index: of the column, as SQL (``USING gin (words)``).
            settings: of the server, for this transaction.
        """
        require_driver()
        from psycopg.sql import SQL, Identifier

        name = self.new_name(folder.parent)
        table = self.named(name)

        def make(connection: PostgresConnection) -> None:
            for setting, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, true)", [setting, value])
            # without the right to create schemas, IF NOT EXISTS is refused even where there is one
            if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [self.schema]).fetchone() is None:
                connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(self.schema)))
            columns = SQL("(row integer NOT NULL, {} {} NOT NULL)").format(Identifier(self.column), SQL(column_type))
            connection.execute(SQL("CREATE TABLE {} ").format(table) + columns)
            fill(connection, table)
            connection.execute(SQL("ALTER TABLE {} ADD PRIMARY KEY (row)").format(table))
            if index:
                connection.execute(SQL("CREATE INDEX ON {} ").format(table) + SQL(index))
            connection.execute(SQL("ANALYZE {}").format(table))

        server = self.server_of(folder.parent)
        server.write(make)
        if (written := self.rows_of(server, name)) != rows:
            raise ServerError(f"{server.shown}: {name} holds {written} rows, and not the {rows:,} that were sent")
        return name

    def joined(self, segments: Sequence[SegmentFolder]) -> Fill:
        """Fill a table from those of segments, on the server: without the rows of deleted items, and with new numbers."""
        from psycopg.sql import SQL, Identifier

        records = self.records(segments)

        def fill(connection: PostgresConnection, table: Composed) -> None:
            first = 0
            for segment, record in records:
                live = np.ones(len(segment), np.bool_) if segment.live is None else segment.live
                condition, values = condition_of(live)
                statement = SQL(
                    "INSERT INTO {} SELECT %(first)s - 1 + row_number() OVER (ORDER BY row), {} FROM {} WHERE {} ORDER BY row"
                ).format(table, Identifier(self.column), self.named(record.table), condition)
                connection.execute(statement, values | {"first": first})
                first += int(np.count_nonzero(live))

        return fill

    def answers(self, statement: Composed, queries: Sequence[dict[str, Any]], **settings: str) -> Hits:
        """Send a statement that returns rows and their scores, best first, for each query, in one round trip."""

        def ask(connection: PostgresConnection) -> list[list[tuple[int, float]]]:
            for name, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", [name, value])
            with connection.cursor(binary=True) as cursor:
                cursor.executemany(statement, queries, returning=True)
                return [cursor.fetchall() for _ in cursor.results()]

        columns = [np.array(rows, np.float64).reshape(-1, 2) for rows in self._server.read(ask)]
        return Hits.from_lists([(found[:, 0].astype(np.int64), found[:, 1].copy()) for found in columns])


def condition_of(allowed: Mask | None) -> tuple[Composed, dict[str, Any]]:
    """A condition on the column ``row``, and its parameters: the server never cuts a list before a filter is applied."""
    from psycopg.sql import SQL

    if allowed is None:
        return SQL("true").format(), {}
    rows = np.flatnonzero(allowed)
    if len(rows) <= _FEW:
        return SQL("row = ANY(%(rows)s::integer[])").format(), {"rows": "{" + ",".join(map(str, rows.tolist())) + "}"}
    return SQL("get_bit(%(mask)s::bytea, row) = 1").format(), {"mask": np.packbits(allowed, bitorder="little").tobytes()}
