"""What a process does to the files below one folder, event by event, so that it can be stopped at any of them.

An event is whatever changes a name, makes content durable, or opens a file for writing, and a statement of SQL
that is about to be sent. Calls of native code are not seen.
"""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import psycopg

When = Literal["before", "after"]

_NAMED = {
    "os.rename": "rename",
    "os.remove": "unlink",
    "os.rmdir": "rmdir",
    "os.mkdir": "mkdir",
    "os.link": "link",
    "os.symlink": "symlink",
    "os.truncate": "truncate",
}
_WRAPPED = "rename replace remove unlink rmdir mkdir link symlink truncate ftruncate fsync fdatasync".split()
_SYNCS = "fsync", "fdatasync"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Events:
    """Counts the events below a folder in this process, and tells a listener of each, before and after."""

    def __init__(self, folder: Path, listener: Callable[[int, When, str, str], None]) -> None:
        self._folder = str(folder.resolve())
        self._listener = listener
        self._listening = False
        self.seen: list[str] = []

    def install(self) -> None:
        """Listen from now on; a process cannot stop listening."""
        for name in _WRAPPED:
            setattr(os, name, self._wrapped(name, getattr(os, name)))
        sqlite3.connect = self._connecting(sqlite3.connect)
        psycopg.Connection.execute = self._asked(psycopg.Connection.execute)
        psycopg.Cursor.copy = self._asked(psycopg.Cursor.copy)
        sys.addaudithook(self._audited)

    def _connecting(self, real: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
        def connect(database: str, **options: Any) -> sqlite3.Connection:
            connection = real(database, **options)
            connection.set_trace_callback(partial(self._statement, unquote(urlsplit(database).path)))
            return connection

        return connect

    def _asked(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """A method that sends a statement to PostgreSQL; all of them count, as the server lies outside the folder."""

        def ask(of: Any, query: Any, *args: Any, **options: Any) -> Any:
            text = query if isinstance(query, str) else query.as_string(of)
            self._statement(f"{self._folder}/server", text)
            return real(of, query, *args, **options)

        return ask

    def _audited(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(path, str | bytes) and isinstance(flags, int) and flags & _WRITING:
                self._tell("open", os.fsdecode(path))
        elif event in _NAMED:
            place = args[1] if event in ("os.link", "os.symlink") else args[0]
            folder = args[-1] if event in ("os.remove", "os.rmdir") else -1
            if isinstance(place, str | bytes | os.PathLike):
                base = f"{named(folder)}/" if isinstance(folder, int) and folder >= 0 else ""
                self._tell(_NAMED[event], base + os.fsdecode(place))

    def _statement(self, database: str, statement: str) -> None:
        verb = (
            statement.split(maxsplit=1)[0].upper() if statement else "SELECT"
        )  # an empty one asks whether the server is there
        if verb != "SELECT":
            self._tell(f"sql {verb}", database)

    def _tell(self, what: str, path: str) -> None:
        if self._listening or not os.path.abspath(path).startswith(self._folder):  # noqa: PTH100 - nothing may be followed
            return
        self._listening = True
        try:
            self.seen.append(f"{what} {path}")
            self._listener(len(self.seen), "before", what, path)
        finally:
            self._listening = False

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            before = len(self.seen)
            if name in _SYNCS:
                self._tell("sync", named(args[0]))
            elif name == "ftruncate":
                self._tell("truncate", named(args[0]))
            try:
                return real(*args, **options)
            finally:
                if len(self.seen) > before and not self._listening:
                    what, path = self.seen[-1].split(" ", 1)
                    self._listening = True
                    try:
                        self._listener(len(self.seen), "after", what, path)
                    finally:
                        self._listening = False

        return call


def named(descriptor: int) -> str:
    """The path of an open file."""
    return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115 - a Path would go through what is wrapped here


def killer(point: int, when: When) -> Callable[[int, When, str, str], None]:
    """A listener that kills this process at one event, with no chance to clean up."""

    def listen(number: int, now: When, what: str, path: str) -> None:
        if (number, now) == (point, when):
            os.kill(os.getpid(), signal.SIGKILL)

    return listen


def limiter(limit: int) -> Callable[[int, When, str, str], None]:
    """A listener that from the first event on lets no file grow beyond so many bytes, as if the disk were full."""

    def listen(number: int, now: When, what: str, path: str) -> None:
        if (number, now) == (1, "before"):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return listen
