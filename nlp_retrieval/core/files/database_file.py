"""A file of a project in SQLite, durable at once, and shared by any number of processes.

Its tables, triggers and views must be exactly those written here. A connection belongs to the process that opened it.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from filelock import FileLock, Timeout

from nlp_retrieval.core.files.atomic import explained_writes, make_folder
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import IndexDamagedError, IndexLockedError, IndexWriteError

DatabaseRow = tuple[Any, ...]
"""Values as stored in the file; their reader checks their types."""

_WAIT = 60.0
"""Seconds to wait for the transaction of another process."""

_inherited: list[sqlite3.Connection] = []
"""Connections of the parent process of a fork: closing them here could damage the file."""


def _close(connection: sqlite3.Connection, process: int) -> None:
    if process != os.getpid():
        _inherited.append(connection)
    else:
        with suppress(sqlite3.Error):
            connection.close()


class DatabaseFile:
    """One SQLite file, opened at first use; reading creates nothing, and writing its folder too.

    A subclass names its tables.

    Raises:
        IndexDamagedError: the file is not of this package, or damaged.
        IndexLockedError: another process has locked it for a minute.
        IndexWriteError: it cannot be written.

    Examples:
        >>> class Notes(DatabaseFile):
        ...     tables = {"notes": "CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT NOT NULL)"}
        ...     application, version, remedy = 0x6E6C7274, 1, "write the notes again"
        >>> notes = Notes(Path("notes.sqlite3"))
        >>> with notes.changing() as connection:
        ...     _ = connection.execute("INSERT INTO notes (note) VALUES (?)", ("It hunts at night.",))
        >>> notes.rows("SELECT note FROM notes")
        [('It hunts at night.',)]
    """

    tables: ClassVar[Mapping[str, str]]
    """The statement that creates each table, index, view or trigger, by its name; a file must have exactly these."""

    application: ClassVar[int]
    """Number in the file by which its program is known."""

    version: ClassVar[int]
    """Format of the file."""

    remedy: ClassVar[str]
    """What to do if it cannot be read, for messages: ``"add the sources again"``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, ...] = ()
        self._closing: weakref.finalize[..., Any] | None = None

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._connection = None

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[DatabaseRow]:
        """Return the rows that a statement selects; empty if there is no file."""
        with self._lock, self._explained():
            return self._open().execute(statement, values).fetchall() if self.path.exists() else []

    @contextmanager
    def changing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Make one change in full, or nothing if the block raises; without ``durable``, a power failure may lose it."""
        with self._lock, self._explained():
            connection = self._open()
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _open(self) -> sqlite3.Connection:
        """Return the connection, made anew after a fork, or where the file was replaced."""
        if self._connection is not None and self._opened == self._state():
            return self._connection
        self.close()
        with explained_writes(self.path):
            make_folder(self.path.parent)
        writable = os.access(self.path.parent, os.W_OK) and (not self.path.exists() or os.access(self.path, os.W_OK))
        # without write permission, a file that nobody is writing to is read as it is
        logged = self.path.with_name(f"{self.path.name}-wal").exists()
        target = self.path.absolute().as_uri() + ("?mode=rwc" if writable else "?mode=ro" if logged else "?immutable=1")
        connection = sqlite3.connect(target, timeout=_WAIT, isolation_level=None, check_same_thread=False, uri=True)
        try:
            connection.executescript("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0")
            if writable and (_value(connection, "user_version") == 0 or _value(connection, "journal_mode") != "wal"):
                with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=_WAIT):
                    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                        numbers = f"PRAGMA application_id={self.application}", f"PRAGMA user_version={self.version}"
                        for statement in ("BEGIN IMMEDIATE", *self.tables.values(), *numbers, "COMMIT"):
                            connection.execute(statement)
                    if _value(connection, "application_id") == self.application:
                        connection.execute("PRAGMA journal_mode=WAL")
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        self._closing = weakref.finalize(self, _close, connection, os.getpid())
        self._connection, self._opened = connection, self._state()
        return connection

    def _state(self) -> tuple[int, ...]:
        with suppress(FileNotFoundError, NotADirectoryError):
            status = self.path.stat()
            return os.getpid(), status.st_dev, status.st_ino
        return ()

    def _check(self, connection: sqlite3.Connection) -> None:
        if (_value(connection, "application_id"), _value(connection, "user_version")) != (self.application, self.version):
            raise IndexDamagedError(
                f"{self.path} was made by another program, or another version of nlp_retrieval; move it away, and {self.remedy}"
            )
        tables = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
        if strange := sorted(str(name) for name, _ in tables.items() ^ self.tables.items()):
            raise IndexDamagedError(f"{self.path} holds other tables than it should ({strange[0]!r:.60}); it was tampered with")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into this package's."""
        try:
            yield
        except Timeout as error:
            raise IndexLockedError(f"another process is creating {self.path}; wait for it, then try again") from error
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise IndexLockedError(
                    f"another process has been writing to {self.path} for {_WAIT:.0f} seconds; wait for it, then try again"
                ) from error
            if name.startswith(("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM")):
                raise IndexWriteError(f"cannot write to {self.path}: {error}. What was there before is unchanged.") from error
            raise IndexDamagedError(
                f"{self.path} cannot be read ({error}); put back a copy of it, or move it away and {self.remedy}"
            ) from error


def _value(connection: sqlite3.Connection, pragma: str) -> object:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]
