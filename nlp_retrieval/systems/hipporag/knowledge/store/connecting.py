"""Transactions of a knowledge store: opened one by one, retried if that may help, and without a secret in any message.

A connection lives as long as its transaction, so the next one reconnects to a restarted database.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from nlp_retrieval.errors import ConfigurationError, OutputError, SourceError
from nlp_retrieval.loaders import hide_secrets, make_engine, resolve, scrub

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["Database"]

T = TypeVar("T")

_TRIES = 4
_LONGEST_VALUE = 2**24
_BUSY_SECONDS = 60


class Database:
    """A database by its URL.

    Args:
        url: a SQLAlchemy URL, ``env:NAME`` for the environment variable that holds it, or the path of an SQLite file.
        create: whether to create a missing file.
        wait: seconds before a failed transaction is retried, doubled with each further try.

    Raises:
        DependencyError: SQLAlchemy or the driver is not installed.
        SourceError: the URL is malformed, or there is no such file.
        ConfigurationError: the database would be in memory, or the path cannot be one.
    """

    def __init__(self, url: str, *, create: bool, wait: float) -> None:
        is_url = "://" in url or url.startswith("env:")
        if not is_url and ("?" in url or not url.strip()):
            raise ConfigurationError(
                f"{hide_secrets(url)!r:.200}: not the path of a store; name a file without a question mark, or a database URL"
            )
        self._url = resolve(url) if is_url else f"sqlite:///{Path(url).expanduser()}"
        self.shown = hide_secrets(url)
        self._wait = wait
        self.engine: Engine = make_engine(self._url, self.shown, who="KnowledgeStore", may_create=create)
        if self.engine.dialect.name == "sqlite":
            if self.engine.url.database in (None, "", ":memory:"):
                raise ConfigurationError(f"{self.shown}: a store in memory is lost at once; name a file")
            _listen(self.engine)

    def read(self, work: Callable[[Connection], T], *, tries: int = _TRIES) -> T:
        """Run work in a transaction that is rolled back.

        Args:
            work: may be repeated.
            tries: number of tries while the database is unavailable or locked.

        Raises:
            SourceError: the database cannot be read, or is not a knowledge store.
        """

        def reading() -> T:
            with self.engine.connect() as connection:
                return work(connection)

        try:
            return self._tried(reading, tries)
        except _errors() as error:
            raise SourceError(
                f"{self.shown}: the knowledge store cannot be read: {self._reason(error)}; check that the database is up, and "
                "that this is the store that `nlp-retrieval hipporag extract` wrote"
            ) from None

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run work in one transaction: all of it is committed, or nothing.

        Args:
            work: may be repeated from the beginning after a conflict with another process.

        Raises:
            OutputError: the database cannot be written.
        """

        def writing() -> T:
            with self.engine.connect().execution_options(writing=True) as connection, connection.begin():
                return work(connection)

        try:
            return self._tried(writing, _TRIES)
        except _errors() as error:
            raise OutputError(
                f"{self.shown}: the knowledge store cannot be written: {self._reason(error)}; what was committed before "
                "is kept: when the database is back, run the same again"
            ) from None

    def close(self) -> None:
        """Close what is open."""
        self.engine.dispose()

    def _tried(self, work: Callable[[], T], tries: int) -> T:
        from sqlalchemy.exc import IntegrityError, OperationalError

        for attempt in range(tries):
            try:
                return work()
            except (IntegrityError, OperationalError) as error:
                # a row that another process wrote first, a lock, a server that restarts; a missing table stays missing
                if attempt == tries - 1 or _for_good(error):
                    raise
                time.sleep(self._wait * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _reason(self, error: Exception) -> str:
        reason = scrub(getattr(error, "orig", None) or error, self._url)
        return " ".join(reason.split())[:300]


def _errors() -> tuple[type[Exception], ...]:
    from sqlalchemy.exc import SQLAlchemyError

    return (SQLAlchemyError, OSError, UnicodeError)


def _for_good(error: Exception) -> bool:
    reason = str(getattr(error, "orig", None) or error)
    return isinstance(getattr(error, "orig", None), sqlite3.Error) and not any(
        word in reason for word in ("locked", "busy", "UNIQUE", "FOREIGN")
    )


def _listen(engine: Engine) -> None:
    """Make SQLite begin transactions explicitly, and not trust the file."""
    from sqlalchemy import event

    @event.listens_for(engine, "connect")
    def opened(connection: sqlite3.Connection, record: object) -> None:
        del record
        connection.isolation_level = None
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        for pragma in (f"busy_timeout = {_BUSY_SECONDS * 1000}", "trusted_schema = OFF", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # a transaction that reads first and then writes would fail if another process wrote in between
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
