"""A pool of connections to PostgreSQL, whose errors come with advice.

A URL is libpq's own (``postgresql://user@host/name`` or ``host=... dbname=...``) or ``env:NAME``, the name of an environment
variable that holds it. A driver's messages are shown without the secrets of the URL.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString

from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, IndexWriteError, RetrievalError, ServerError
from nlp_retrieval.loaders.database import scrub
from nlp_retrieval.retrievers.servers.retriever import MISSING
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composable, Composed
    from psycopg_pool import ConnectionPool

    PostgresConnection = Connection[tuple[Any, ...]]

_SECONDS_TO_CONNECT, _SECONDS_TO_SEARCH, _AT_ONCE = 10, 60, 8
_CURES = {
    "57014": f"a search took longer than {_SECONDS_TO_SEARCH} s; search with an index (index_type='hnsw')",
    "54000": "use index_type='exact', or for up to 4,000 dimensions precision='halfvec'",
    "42602": "upgrade pgvector to 0.8 and run ALTER EXTENSION vector UPDATE",
    "0A000": "install pgvector on the server (Debian: postgresql-<version>-pgvector), and CREATE EXTENSION vector as superuser",
    "42501": "GRANT the role CREATE on the database or schema (to index), and USAGE and SELECT (to search)",
}
"""What to do about an error of the server, by its SQLSTATE."""
_GONE = ("3F000", "42P01", "42703")
"""SQLSTATEs of a schema, table or column that does not exist."""


class Connections:
    """Connections to one server, opened on demand and kept for reuse; each new one is handed to ``prepare``."""

    def __init__(self, url: str, shown: str, prepare: Callable[[PostgresConnection], None]) -> None:
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
            "options": f"-c client_min_messages=error -c statement_timeout={_SECONDS_TO_SEARCH}s",
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
            max_size=_AT_ONCE,
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
            cause = f"the server cannot be reached: {reason}; check that it runs, the URL, user and password"
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
