"""Connections to a PostgreSQL server: a pool without threads, a second try after a loss, and no secrets in messages.

A URL is libpq's own (``postgresql://user@host/name`` or ``host=... dbname=...``) or ``env:NAME``, the name of an environment
variable that holds it. A driver's messages are shown without the secrets of the URL, and without the values of parameters.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, TypeVar

from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexWriteError, ServerError, install
from nlp_retrieval.loaders.database import hide_secrets, resolve, scrub
from nlp_retrieval.retrievers.postgres.embedded import EmbeddedServer
from nlp_retrieval.text.printing import printable

if TYPE_CHECKING:
    from psycopg import Connection

    PostgresConnection = Connection[tuple[Any, ...]]

__all__ = ["Connections"]

T = TypeVar("T")

_NO_ROOM = re.compile(
    r"could not (?:extend|write|create|fsync)\b.{0,300}: (?:File too large|No space left on device|Disk quota)"
)
_CONNECTED_WITHIN = 10
_BACK_WITHIN = 15.0
"""Seconds in which a starting or restarted server has to take connections."""

_OPTIONS = (
    "-c plan_cache_mode=force_custom_plan -c standard_conforming_strings=on -c client_min_messages=error -c statement_timeout="
)

_COMING = {"57P03", "57P02", "57P01"}
"""The server is starting, was killed, or is being shut down by its administrator."""


def _require_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise DependencyError(f"PostgreSQL needs its driver: {install('postgres')} ({error})") from error


class Connections:
    """Connections to one server, opened on demand and kept for reuse.

    Args:
        url: see the module; None for the embedded server.
        embedded: the server to start whenever it is not running, if ``url`` is None.
        statement_timeout: seconds that a reading statement may take.
        most: most connections at once; further users wait for one.
        prepare: is called with every new connection.

    Raises:
        DependencyError: psycopg is not installed.
        SourceError: the environment variable is not set.
        ConfigurationError: the URL is malformed, or names no database.
    """

    def __init__(
        self,
        url: str | None,
        embedded: EmbeddedServer | None = None,
        *,
        statement_timeout: float = 60.0,
        most: int = 8,
        prepare: Callable[[PostgresConnection], None] = lambda _: None,
    ) -> None:
        _require_driver()
        self._embedded = embedded
        self._given = None if url is None else resolve(url)
        self._url = None if self._given is None else self._given.replace("postgresql+psycopg://", "postgresql://", 1)
        self.shown = repr(embedded) if url is None else hide_secrets(url)
        self.timeout = statement_timeout
        self._prepare = prepare
        self._free = BoundedSemaphore(most)
        self._idle: list[PostgresConnection] = []
        self._lock = Lock()
        self.process = os.getpid()
        if self._url is not None:
            self._check_url(self._url)
        weakref.finalize(self, _close_all, self._idle, self.process)

    def read(self, work: Callable[[PostgresConnection], T]) -> T:
        """Run a read; once more, on a fresh connection, if the connection is lost.

        Raises:
            ServerError: the server cannot be reached, was lost twice, took too long, or refuses.
        """
        import psycopg

        for attempt in (1, 2):
            try:
                with self._connection() as connection:
                    return work(connection)
            except psycopg.Error as error:
                if attempt == 1 and _is_lost(error):
                    self._drop_idle()
                    continue
                raise self.explained(error) from None
        raise AssertionError("the second attempt returns or raises")

    def write(self, work: Callable[[PostgresConnection], T]) -> T:
        """Run one transaction, without a time-out: all of it is kept, or nothing.

        Raises:
            ServerError, IndexWriteError: nothing was written; the message gives the reason.
        """
        import psycopg

        self._drop_idle()  # a lost connection would be noticed too late
        try:
            with self._connection() as connection, connection.transaction():
                connection.execute("SET LOCAL statement_timeout = 0")
                return work(connection)
        except psycopg.Error as error:
            raise self.explained(error, "; nothing was written: run it again") from None

    def close(self) -> None:
        """Close all idle connections."""
        self._drop_idle()

    def explained(self, error: Exception, and_so: str = "") -> ServerError | IndexWriteError:
        """Turn a driver's error into one with advice."""
        state = getattr(error, "sqlstate", None) or _refused(str(error))
        reason = printable(" ".join(self._scrubbed(error).split()))[:400]
        if state.startswith("53") or _NO_ROOM.search(reason):
            return IndexWriteError(f"{self.shown}: the server has no room: {reason}; free some disk or memory there{and_so}")
        out_of_reach = (not state and _is_lost(error)) or (state[:2] in ("08", "57") and state != "57014")
        if out_of_reach:
            cause = f"the server cannot be reached: {reason}; check that it runs, and the URL"
        else:
            cause = self._refusal(state, reason)
        return ServerError(f"{self.shown}: {cause}{and_so}")

    def _refusal(self, state: str, reason: str) -> str:
        """The reason of a refusal, with advice, by the SQLSTATE."""
        if state == "57014":
            return (
                f"a statement took longer than statement_timeout={self.timeout:g} s; raise it, or search with an index "
                "(index_type='hnsw')"
            )
        if state == "42501":
            return (
                f"the role may not do this: {reason}; GRANT it CREATE on the database or schema (to index) and SELECT on the "
                "tables (to search)"
            )
        if state == "3D000":
            return f"no such database: {reason}; create it (createdb) or correct the URL"
        if state.startswith("28"):
            return f"the server refuses the user: {reason}; check user and password"
        return f"the server refuses: {reason}"

    @contextmanager
    def _connection(self) -> Iterator[PostgresConnection]:
        with self._free:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.closed:
                connection = self._connected()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            with self._lock:
                self._idle.append(connection)

    def _connected(self) -> PostgresConnection:
        import psycopg

        deadline = time.monotonic() + _BACK_WITHIN
        while True:
            url = self._url
            if url is None:
                assert self._embedded is not None  # noqa: S101 - of the constructor
                url = self._embedded.url()
            try:
                connection = psycopg.connect(
                    url,
                    autocommit=True,
                    prepare_threshold=None,  # connection poolers may not know of prepared statements
                    connect_timeout=_CONNECTED_WITHIN,
                    application_name="nlp_retrieval",
                    client_encoding="utf8",
                    options=_OPTIONS + str(int(self.timeout * 1000)),
                )
                break
            except psycopg.OperationalError as error:
                coming = self._url is None or getattr(error, "sqlstate", None) in _COMING or "starting up" in str(error)
                if not coming or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop_idle(self) -> None:
        with self._lock:
            dropped = [*self._idle]
            self._idle.clear()
        for connection in dropped:
            connection.close()

    def _check_url(self, url: str) -> None:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            parts = conninfo_to_dict(url)
        except ProgrammingError:  # its message quotes the URL, which may hold a password anywhere
            parts = None
        if parts is None:
            raise ConfigurationError(
                f"{self.shown}: not the URL of a PostgreSQL server (its value is not shown); write postgresql://user@host/name"
            )
        if not parts.get("dbname") and not parts.get("service") and not os.environ.get("PGDATABASE"):
            raise ConfigurationError(f"{self.shown}: names no database; write postgresql://user@host/name")

    def _scrubbed(self, error: object) -> str:
        return str(error) if self._given is None else scrub(error, self._given)


def _refused(message: str) -> str:
    """The SQLSTATE of a refused connection, which the driver does not report; empty if it is unknown."""
    if "does not exist" in message and "database " in message:
        return "3D000"
    return "28" if "authentication" in message or ("role " in message and "does not exist" in message) else ""


def _is_lost(error: Exception) -> bool:
    """Return whether the connection is lost, and not only the statement refused."""
    import psycopg

    state = getattr(error, "sqlstate", None)
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith("08") or state in _COMING


def _close_all(idle: list[PostgresConnection], process: int) -> None:
    """Close connections; in a forked process, they still belong to the parent."""
    while idle and os.getpid() == process:
        idle.pop().close()
