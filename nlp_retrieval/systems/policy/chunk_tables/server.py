"""Transactions on the server that holds chunk tables, without a secret in any message.

A connection lives as long as its transaction, so the next one reconnects to a restarted server. A failed transaction is rolled
back; one that conflicts with another is retried from its beginning.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from nlp_retrieval.errors import DependencyError, OutputError, RetrievalError, SourceError, install
from nlp_retrieval.loaders import HIDDEN, hide_secrets, resolve, scrub
from nlp_retrieval.text import printable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["ChunkServer", "driver_of", "exact_json"]

T = TypeVar("T")

_TRIES = 4
_WAIT = 0.05
_CONNECT_SECONDS = 10
_IN_THE_WAY = ("40001", "40P01", "55P03", "23505")
"""SQL states to retry: serialisation, deadlock, an unavailable lock, a row that another writer wrote first."""

_IN_DIGITS = 1e16
"""Least whole float that is written with an exponent."""

_DRIVER = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")


class ChunkServer:
    """A PostgreSQL server and one of its databases.

    Args:
        url: ``postgresql://user@host/database``, a libpq DSN (``host=... dbname=...``), or ``env:NAME``, the environment
            variable that holds it.

    Raises:
        DependencyError: SQLAlchemy or psycopg is not installed.
        SourceError: the variable is not set, or it is not a URL of PostgreSQL.
    """

    def __init__(self, url: str) -> None:
        self.shown = hide_secrets(url)
        self._url = resolve(url)
        self._words = _words_of(self._url, self.shown)
        self.engine = self._engine()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run work in a transaction that sees one state of the database, and is rolled back.

        Raises:
            SourceError: the database cannot be read.
        """
        with self.reading() as connection:
            return work(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the database, and is rolled back.

        Raises:
            SourceError: the database cannot be read.
        """
        try:
            with self.engine.connect() as connection:
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield connection
        except RetrievalError:
            raise
        except _errors() as error:
            raise SourceError(f"{self.shown}: the tables cannot be read: {self._reason(error)}") from None

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in one transaction: all of it is committed, or nothing.

        Args:
            work: may be repeated from its beginning after a conflict with another writer.

        Raises:
            OutputError: the database cannot be written.
        """
        for attempt in range(_TRIES):
            try:
                with self.engine.begin() as connection:
                    return work(connection)
            except RetrievalError:
                raise
            except _errors() as error:
                if attempt < _TRIES - 1 and _state(error) in _IN_THE_WAY:
                    time.sleep(_WAIT * 2**attempt)
                    continue
                raise OutputError(
                    f"{self.shown}: the tables cannot be written: {self._reason(error)}; this transaction was rolled back"
                ) from None
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Close what is open."""
        self.engine.dispose()

    def _engine(self) -> Engine:
        try:
            import psycopg
            from psycopg.types.json import set_json_dumps
            from sqlalchemy import create_engine
            from sqlalchemy.pool import NullPool
        except ImportError as error:
            raise DependencyError(f"ChunkTables need SQLAlchemy and psycopg: {install('policy')} ({error})") from error
        try:
            words = psycopg.conninfo.conninfo_to_dict(self._words)
        except psycopg.Error:
            raise SourceError(
                f"{self.shown}: not a URL of PostgreSQL; write postgresql://user@host/database or host=... dbname=..."
            ) from None
        if words.get("password") == HIDDEN:
            raise SourceError(
                f"{self.shown}: this DSN comes from a config, which never shows a secret; put the whole DSN into an "
                "environment variable NAME and pass url=env:NAME"
            )
        if not words.get("dbname") and not words.get("service"):
            raise SourceError(f"{self.shown}: no database is named; write postgresql://user@host/DATABASE")
        asked = {"application_name": "nlp_retrieval", "connect_timeout": _CONNECT_SECONDS} | words

        def connect() -> psycopg.Connection:
            connection = psycopg.connect(**asked)  # type: ignore[arg-type]
            set_json_dumps(exact_json, connection)
            return connection

        return create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool, hide_parameters=True)

    def _reason(self, error: Exception) -> str:
        reason = scrub(getattr(error, "orig", None) or error, self._url)
        password = _password(self._words)
        if password:
            reason = reason.replace(password, HIDDEN)
        return printable(" ".join(reason.split()))[:300] + _cure(_state(error), reason)


def exact_json(value: Any) -> str:
    """Return a JSON value as text from which PostgreSQL restores every number exactly.

    It stores numbers in decimal digits without exponents, so that ``1e+16`` would be read as an integer and ``1e+23`` as
    another number.
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))}: {exact_json(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(exact_json, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) >= _IN_DIGITS:
        return f"{int(value)}.0"
    return json.dumps(value, allow_nan=False)


def driver_of(connection: Connection) -> Any:
    """Return psycopg's connection under one of SQLAlchemy's, for statements whose names psycopg quotes."""
    return connection.connection.driver_connection


def _words_of(url: str, shown: str) -> str:
    """Return a libpq DSN for a SQLAlchemy URL."""
    if "://" in url and not _DRIVER.match(url):
        raise SourceError(f"{shown}: chunk tables live in PostgreSQL; write postgresql://user@host/database")
    return _DRIVER.sub("postgresql://", url)


def _password(words: str) -> str | None:
    import psycopg

    return psycopg.conninfo.conninfo_to_dict(words).get("password")  # type: ignore[return-value]


def _errors() -> tuple[type[Exception], ...]:
    import psycopg
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, psycopg.Error, OSError, UnicodeError)


def _state(error: Exception) -> str:
    """Return PostgreSQL's code of this kind of error."""
    return getattr(getattr(error, "orig", None) or error, "sqlstate", None) or ""


def _cure(state: str, reason: str) -> str:
    """Return what to do about an error, if known."""
    if state == "42501" and "create extension" in reason:
        return "; ask a superuser to run CREATE EXTENSION vector in this database, once"
    if state == "42501":
        return (
            "; let the owner GRANT this role what it needs (USAGE on the schema, SELECT and, to write, INSERT, UPDATE, DELETE)"
        )
    if state == "3D000" or ("does not exist" in reason and "database" in reason):
        return "; name an existing database: postgresql://user@host/DATABASE"
    if state == "42704" and "vector" in reason:
        return "; install pgvector, and CREATE EXTENSION vector in this database"
    if state.startswith("08") or (not state and ("connection" in reason or "host" in reason)):
        return "; check host, port, user and password, and that the server is running"
    return ""
