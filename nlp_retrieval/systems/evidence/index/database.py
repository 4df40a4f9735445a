"""A file of a project, of its sources or reviews: SQLite, durable at once, shared by any number of processes.

Every change is one transaction, and is on the disk when it returns; a killed process leaves all of it or nothing.
A file of another program or a newer version, or a damaged one, is refused: its tables, triggers and views must be exactly those
written here. A connection belongs to the process that opened it.
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

from nlp_retrieval.core import Lock, explained_writes, make_folder
from nlp_retrieval.errors import IndexDamagedError, IndexLockedError, IndexWriteError

__all__ = ["EvidenceDatabase", "Row"]

Row = tuple[Any, ...]
"""Values as stored in the file; their reader checks their types."""

WAIT = 60.0
"""Seconds to wait for the transaction of another process."""

_APPLICATION, _VERSION = 0x6E6C7265, 3
_TABLES = {
    "texts": "CREATE TABLE texts (id INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE, key TEXT NOT NULL UNIQUE, "
    "content TEXT NOT NULL, passage_count INTEGER NOT NULL)",
    "passages": "CREATE TABLE passages (text_id INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, "
    "stop INTEGER NOT NULL, PRIMARY KEY (text_id, number)) WITHOUT ROWID",
    "versions": "CREATE TABLE versions (id INTEGER PRIMARY KEY, canonical TEXT NOT NULL, moment TEXT NOT NULL, "
    "text_id INTEGER NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL, quality TEXT NOT NULL, fetch_date TEXT NOT NULL, "
    "given TEXT NOT NULL DEFAULT '')",
    "doubtful": "CREATE TABLE doubtful (text_id INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL, "
    "PRIMARY KEY (text_id, start)) WITHOUT ROWID",
    "versions_by_url": "CREATE INDEX versions_by_url ON versions (canonical, moment, id)",
    "versions_by_text": "CREATE INDEX versions_by_text ON versions (text_id)",
    "deleted": "CREATE TABLE deleted (canonical TEXT PRIMARY KEY, moment TEXT NOT NULL) WITHOUT ROWID",
    "counters": "CREATE TABLE counters (name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID",
    "asked": "CREATE TABLE asked (sha256 BLOB PRIMARY KEY) WITHOUT ROWID",
    "pages": "CREATE TABLE pages (text_id INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, "
    "PRIMARY KEY (text_id, number)) WITHOUT ROWID",
    "details": "CREATE TABLE details (version_id INTEGER PRIMARY KEY, content TEXT NOT NULL)",
    "changes": "CREATE TABLE changes (id INTEGER PRIMARY KEY, canonical TEXT NOT NULL, moment TEXT NOT NULL, "
    "field TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL)",
    "changes_by_url": "CREATE INDEX changes_by_url ON changes (canonical, id)",
}

_inherited: list[sqlite3.Connection] = []
"""Connections of the parent process of a fork: closing them here could damage the file."""


class _Opened:
    """A connection, the process that opened it, and the file that it opened."""

    def __init__(self, connection: sqlite3.Connection, file: tuple[int, int]) -> None:
        self.connection = connection
        self.process = os.getpid()
        self.file = file

    def close(self) -> None:
        if self.process == os.getpid():
            with suppress(sqlite3.Error):
                self.connection.close()
        else:
            _inherited.append(self.connection)


class EvidenceDatabase:
    """The file of a project's sources, opened at first use; reading creates nothing, and writing its folder too."""

    tables: ClassVar[Mapping[str, str]] = _TABLES
    application: ClassVar[int] = _APPLICATION
    version: ClassVar[int] = _VERSION
    since: ClassVar[Mapping[str, int]] = {"pages": 3, "details": 3, "changes": 3, "changes_by_url": 3}
    """Formats that brought a table. A file of the format before that cannot be upgraded is read as if the table were empty."""

    remedy: ClassVar[str] = "add the sources again"

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._opened: _Opened | None = None
        self._closing: weakref.finalize[..., Any] | None = None

    def close(self) -> None:
        """Close the file; it is reopened when needed."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._opened = self._closing = None

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows that a statement selects; empty if there is no file.

        Raises:
            IndexDamagedError: the file is not of this package, or damaged.
            IndexLockedError: another process has locked it for a minute.
        """
        with self._lock, self._explained():
            connection = self._connection(create=False)
            return [] if connection is None else connection.execute(statement, values).fetchall()

    @contextmanager
    def changing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Make one change in full, or nothing if the block raises.

        Args:
            durable: whether it must survive a power failure; otherwise only the last changes may be lost then.

        Raises:
            IndexDamagedError: the file is not of this package, or damaged.
            IndexLockedError: another process has locked it for a minute.
            IndexWriteError: it cannot be written.
        """
        with self._lock, self._explained():
            connection = self._connection(create=True)
            if connection is None:  # pragma: no cover -- it was created
                raise IndexDamagedError(f"{self.path} is missing")
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _connection(self, *, create: bool) -> sqlite3.Connection | None:
        try:
            status = self.path.stat()
            file = (status.st_dev, status.st_ino)
        except (FileNotFoundError, NotADirectoryError):
            file = None
        opened = self._opened
        if opened is not None and (opened.process != os.getpid() or opened.file != file):
            self.close()  # forked, or the file was replaced
            opened = None
        if opened is not None:
            return opened.connection
        if file is None and not create:
            return None
        connection = self._open()
        status = self.path.stat()
        opened = _Opened(connection, (status.st_dev, status.st_ino))
        self._opened, self._closing = opened, weakref.finalize(self, opened.close)
        return connection

    def _open(self) -> sqlite3.Connection:
        with explained_writes(self.path):
            make_folder(self.path.parent)
        writable = os.access(self.path.parent, os.W_OK) and (not self.path.exists() or os.access(self.path, os.W_OK))
        # without write permission, a file that nobody is writing to is read as it is
        logged = self.path.with_name(f"{self.path.name}-wal").exists()
        target = self.path.absolute().as_uri() + ("?mode=rwc" if writable else "?mode=ro" if logged else "?immutable=1")
        connection = sqlite3.connect(target, timeout=WAIT, isolation_level=None, check_same_thread=False, uri=True)
        try:
            for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
                connection.execute(f"PRAGMA {pragma}")
            if writable and not self._is_ready(connection):
                with FileLock(self.path.with_name(f".{self.path.name}.lock"), timeout=WAIT):
                    self._create(connection)
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_ready(self, connection: sqlite3.Connection) -> bool:
        return _value(connection, "user_version") not in range(self.version) and _value(connection, "journal_mode") == "wal"

    def _create(self, connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            connection.execute("BEGIN IMMEDIATE")
            for statement in self.tables.values():
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={self.application}")
            connection.execute(f"PRAGMA user_version={self.version}")
            connection.execute("COMMIT")
        if _value(connection, "application_id") == self.application:
            if _value(connection, "user_version") in range(1, self.version):
                self._bring_up(connection)
            connection.execute("PRAGMA journal_mode=WAL")

    def _bring_up(self, connection: sqlite3.Connection) -> None:
        """Upgrade a file of an older format; the grades and titles of the first count as given by a person."""
        connection.execute("BEGIN IMMEDIATE")
        before = int(str(_value(connection, "user_version")))
        if before == 1:
            connection.execute("ALTER TABLE versions ADD COLUMN given TEXT NOT NULL DEFAULT ''")
            connection.execute("UPDATE versions SET given = 'quality title'")
            connection.execute(_TABLES["doubtful"])
        for name, since in self.since.items():
            if before < since:
                connection.execute(self.tables[name])
        connection.execute(f"PRAGMA user_version={self.version}")
        connection.execute("COMMIT")

    def _check(self, connection: sqlite3.Connection) -> None:
        if _value(connection, "application_id") != self.application:
            raise IndexDamagedError(f"{self.path} is a database of another program; move it away, and {self.remedy}")
        version = _value(connection, "user_version")
        missing = {name for name, since in self.since.items() if version == since - 1}
        if version != self.version and not missing:
            is_older = isinstance(version, int) and version < self.version
            cure = "open it once where it can be written, which upgrades it" if is_older else "install a newer one"
            raise IndexDamagedError(
                f"{self.path} has the format {version}, and this version of nlp_retrieval reads {self.version}; {cure}"
            )
        tables = dict(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
        expected = {name: statement for name, statement in self.tables.items() if name not in missing}
        if tables != expected:
            strange = sorted(map(str, tables.keys() ^ expected.keys())) or sorted(
                k for k in tables if tables[k] != expected.get(k)
            )
            raise IndexDamagedError(f"{self.path} holds other tables than it should ({strange[0]!r:.60}); it was tampered with")
        for name in self.since:  # an older file that this process may not upgrade
            if name in missing and self.tables[name].startswith("CREATE TABLE"):
                connection.execute(self.tables[name].replace("CREATE TABLE", "CREATE TEMP TABLE", 1))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite's errors into this package's."""
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise IndexLockedError(
                    f"another process has been writing to {self.path} for {WAIT:.0f} seconds; wait for it, then try again"
                ) from error
            if name.startswith(("SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_PERM")):
                raise IndexWriteError(f"cannot write to {self.path}: {error}. What was there before is unchanged.") from error
            raise IndexDamagedError(
                f"{self.path} cannot be read ({error}); put back a copy of it, or move it away and {self.remedy}"
            ) from error
        except Timeout as error:
            raise IndexLockedError(f"another process is creating {self.path}; wait for it, then try again") from error


def _value(connection: sqlite3.Connection, pragma: str) -> object:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]
