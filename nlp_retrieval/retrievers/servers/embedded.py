"""An embedded server in a folder: started at first use, shared by processes, stopped with its last user.

A user holds a lock that the kernel releases when a process dies (:mod:`nlp_retrieval.retrievers.servers.keeper`), so that a
killed user keeps no server alive; a killed server is started again by the next call of :meth:`KeptServer.use`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
import subprocess
import sys
import tempfile
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.cache import cache_folder, make_own
from nlp_retrieval.errors import IndexWriteError, ServerError, UntrustedError
from nlp_retrieval.retrievers.servers import keeper
from nlp_retrieval.retrievers.servers.keeper import LOG, SERVER, STARTING, USERS
from nlp_retrieval.text.printing import printable

# The folders of embedded servers: private ones, sockets in them, and trust in their data.
#
# The data of a server can hold programs, or files that native code reads. So a folder that was created on another machine, or
# by another user, is used only once it is trusted.


TRUSTED = "NLP_RETRIEVAL_TRUSTED_SERVERS"
"""The environment variable that names folders, separated by ``:``, whose servers may run wherever they were created."""

DATA = "data"
_MADE_BY = "made_by"
_LONGEST_SOCKET = 107


def make_private(folder: Path) -> None:
    """Create a folder that only this user may enter.

    Raises:
        OSError: it exists, and is not such a folder.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a folder of this user")
    if info.st_mode & 0o077:
        folder.chmod(0o700)


def socket_folder(folder: Path, name: str) -> Path:
    """Return the path of a socket: in the folder, or in a private one with a short name; sockets have at most 107 characters.

    Args:
        folder: of the server.
        name: of the socket.
    """
    plain = str(folder).isprintable() and not {",", '"', "'", "%", "?", "#"} & {*str(folder)}
    if plain and len(os.fsencode(folder / name)) <= _LONGEST_SOCKET:
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(runtime) / f"nlpr-{os.geteuid()}-{digest}"


def remember(folder: Path, kind: str) -> None:
    """Record that this user created the data of a server; called before they get their final name.

    Args:
        folder: of the server.
        kind: of server.
    """
    token = secrets.token_hex(16)
    write_atomically(folder / _MADE_BY, token.encode())
    make_own(cache_folder() / kind)
    write_atomically(_marker_file(token, kind), b"")


def require_trust(folder: Path, kind: str, server: str) -> None:
    """Refuse data that this user did not create, unless they are declared as trusted.

    Args:
        folder: of the server.
        kind: of server, as passed to :func:`remember`.
        server: its name in messages.

    Raises:
        UntrustedError: the data are not trusted.
    """
    if not (folder / DATA).exists():
        return
    try:
        token = (folder / _MADE_BY).read_text("ascii").strip()
    except (OSError, ValueError):
        token = ""
    if token and _marker_file(token, kind).is_file():
        return
    trusted = [Path(path).absolute() for path in os.environ.get(TRUSTED, "").split(os.pathsep) if path]
    if folder in trusted:
        return
    raise UntrustedError(
        f"{folder} holds a {server} server that was not made by this user on this machine; running it could run any program. "
        f"If you know who made it, say so with {TRUSTED}={folder}; otherwise remove that folder and index again"
    )


def _marker_file(token: str, kind: str) -> Path:
    return cache_folder() / kind / hashlib.sha256(token.encode()).hexdigest()


_STOPPED_WITHIN = 60.0
_POLL = 0.005
_SURELY = 3
"""Checks that must find a user; the keeper may take and release the lock within one."""
_LONGEST_LOG = 2**20
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "TZ")


class KeptServer(ABC):
    """A user of the server of a folder; several, in any number of processes, share it.

    Args:
        folder: holds data, socket and log; created at first use, for this user alone.
    """

    socket: ClassVar[str]
    """The name of the server's socket."""
    failed_with: ClassVar[str] = ""
    """Part of a log line that explains a failure better than the last line, if there is one."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        self._release: weakref.finalize[[Path, int, int], KeptServer] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    @abstractmethod
    def start(self) -> None:
        """Start the server of the folder; it is not running, and nobody else starts it."""

    @property
    def sockets(self) -> Path:
        """The folder of the server's socket."""
        return socket_folder(self.folder, self.socket)

    @property
    def running(self) -> bool:
        """Return whether the server runs now."""
        return _is_running(self.folder)

    def use(self) -> None:
        """Start the server if it is not running, and use it from now on.

        Raises:
            UntrustedError: the folder was created elsewhere.
            ServerError: the server does not start; the message holds its output.
            IndexWriteError: the folder cannot be written.
        """
        try:
            make_private(self.folder)
            if self._release is None or not self._release.alive:
                with _exclusive(self.folder):
                    self._use()
            if not _is_running(self.folder):
                self._start()
        except OSError as error:
            raise IndexWriteError(
                f"the embedded server cannot use {self.folder}: {error.strerror or error}; name a folder that this user may "
                "write to, or pass url=env:NAME of a server"
            ) from error

    def close(self) -> None:
        """Stop using the server; with its last user, it is stopped when this returns."""
        if self._release is not None:
            self._release()

    def keep(
        self, status: Path, command: Sequence[str | Path], uid: int | None = None, environment: dict[str, str] | None = None
    ) -> str | None:
        """Start a server under a keeper, and return when it is ready.

        Args:
            status: a file to whose last line the server writes ``ready``.
            command: starts the server.
            uid: the user that it runs as; None for the current one.
            environment: variables for it, besides paths and the time zone.

        Returns:
            The server's output if it did not become ready; None if it did.
        """
        log_file = self.folder / LOG
        with log_file.open("ab") as log:
            if log.tell() > _LONGEST_LOG:
                log.truncate(0)
            begun = log.tell()
            keeping = [sys.executable, "-I", "-S", keeper.__file__, keeper.KEEP, "-" if uid is None else str(uid)]
            output = subprocess.run(  # noqa: S603 - with our own arguments
                [*keeping, str(self.folder), str(status), str(self.sockets), *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd="/",
                env=plain_environment() | (environment or {}),
                start_new_session=True,
                check=False,
            ).stdout
        return None if output.strip() == keeper.READY.encode() else self._failure_in_log(log_file, begun)

    def _failure_in_log(self, log: Path, begun: int) -> str:
        with log.open("rb") as file:
            file.seek(begun)
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
        lines = [line for line in lines if self.failed_with and self.failed_with in line] or lines
        return printable(" | ".join(line.strip() for line in lines[-4:]))[-600:] or "it said nothing"

    def _start(self) -> None:
        """Start the server if it is not running; once more after a failure, as it may have been killed in the meantime."""
        with _exclusive(self.folder):
            if not _is_running(self.folder):
                try:
                    self.start()
                except ServerError:
                    self.start()

    def _use(self) -> None:
        descriptor = os.open(self.folder / USERS, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        self._release = weakref.finalize(self, _leave, self.folder, descriptor, os.getpid())


def plain_environment() -> dict[str, str]:
    """Return the environment for a server: none of its own variables, or of its clients', gets through."""
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | {"LC_ALL": "C.UTF-8"}


def _leave(folder: Path, descriptor: int, process: int) -> None:
    """Stop using a server, and wait until it has stopped if nobody else uses it."""
    os.close(descriptor)
    if os.getpid() != process:
        return
    deadline = time.monotonic() + _STOPPED_WITHIN
    used = 0
    while used < _SURELY and time.monotonic() < deadline and _is_running(folder):
        used = used + 1 if _is_used(folder) else 0
        time.sleep(_POLL)


def _is_used(folder: Path) -> bool:
    """Return whether there is a user; the keeper, which waits for the last one to leave, does not count."""
    return _is_held(folder / USERS, fcntl.LOCK_EX) and _is_running(folder) and _is_shared(folder / USERS)


def _is_shared(path: Path) -> bool:
    return not _is_held(path, fcntl.LOCK_SH)


def _is_running(folder: Path) -> bool:
    return _is_held(folder / SERVER, fcntl.LOCK_SH)


def _is_held(path: Path, kind: int) -> bool:
    """Return whether a lock of this kind is unavailable."""
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
def _exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock under which the server of a folder is started or stopped."""
    descriptor = os.open(folder / STARTING, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
