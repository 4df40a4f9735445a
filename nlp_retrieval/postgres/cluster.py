"""The data of an embedded server and its start: made once, and never in charge of what the server does.

A folder of PostgreSQL's data can make a server run programs. So settings come from here and never from the folder, and a
folder that was made on another machine, or by another user, is not run before it is trusted.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from nlp_retrieval.core.files.atomic import sync_folder, write_atomically
from nlp_retrieval.core.files.cache import cache_folder, make_own
from nlp_retrieval.errors import ServerError, UntrustedError
from nlp_retrieval.postgres import keeper
from nlp_retrieval.postgres.binaries import has_extension, major_version, programs_of
from nlp_retrieval.postgres.keeper import DATA, LOG
from nlp_retrieval.text.printable import printable

TRUSTED = "NLP_RETRIEVAL_TRUSTED_SERVERS"
"""The environment variable that names folders, separated by ``:``, whose servers may be run wherever they were made."""

NAME = "nlp_retrieval"
_FULL = "No space left on device"
"""The database of an embedded server, and its role, which is no superuser."""

_MADE_BY, _INITIAL = "made_by", "init-"
_LONGEST_SOCKET = 107
_SOCKET = ".s.PGSQL.5432"
_LONGEST_LOG = 2**20
_SETTINGS = {
    "listen_addresses": "",
    "port": "5432",
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "jit": "off",
    "logging_collector": "off",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "archive_mode": "off",
    "shared_preload_libraries": "",
    "session_preload_libraries": "",
    "local_preload_libraries": "",
}
_MADE_IN_DATA = ("postgresql.auto.conf", "recovery.signal", "standby.signal", "postmaster.pid")
"""Files of a data folder that would decide something, or tell of a server that is not there."""


def make_private(folder: Path) -> None:
    """Make a folder that only this user may enter.

    Raises:
        OSError: it is there, and is none.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is no folder of this user")
    if found.st_mode & 0o077:
        folder.chmod(0o700)


def start(folder: Path, given: Path | None) -> None:
    """Start the server of a folder; it is not running, and nobody else starts it."""
    _require_trust(folder)
    programs = programs_of(given)
    uid = _server_user()
    for left in folder.glob(f"{_INITIAL}*"):
        shutil.rmtree(left, ignore_errors=True)
    data = folder / DATA
    if not data.exists():
        _initialise(folder, programs, uid)
    _tame(data, uid)
    sockets = socket_folder(folder)
    make_private(sockets)
    settings = _SETTINGS | {"unix_socket_directories": str(sockets)}
    (folder / "server.conf").write_text("".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items()), "utf-8")
    (folder / "hba.conf").write_text("local all all trust\n", "utf-8")
    (folder / "ident.conf").write_text("", "utf-8")
    places = {"config_file": "server.conf", "hba_file": "hba.conf", "ident_file": "ident.conf"}
    options = [part for name, file in places.items() for part in ("-c", f"{name}={folder / file}")]
    with (folder / LOG).open("ab") as log:
        if log.tell() > _LONGEST_LOG:
            log.truncate(0)
        begun = log.tell()
        command = [sys.executable, "-I", "-S", keeper.__file__, keeper.KEEP, "-" if uid is None else str(uid)]
        told = subprocess.run(  # noqa: S603 - with our own arguments
            [*command, str(folder), str(programs / "postgres"), "-D", str(data), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env=_environment(),
            start_new_session=True,
            check=False,
        ).stdout
    if told.strip() != keeper.READY.encode():
        said = _said(folder / LOG, begun)
        if _FULL in said:
            raise ServerError(f"{folder}: PostgreSQL has no room to start: {said}. Free some disk there; its data is kept")
        raise ServerError(
            f"{folder}: PostgreSQL does not start: {said}. The data may be damaged, or of another version of PostgreSQL: index "
            "again with replace=True after removing this folder; or name a server with url="
        )


def _initialise(folder: Path, programs: Path, uid: int | None) -> None:
    """Make the data of a new server; it takes its name when all of it is there."""
    scratch = folder / f"{_INITIAL}{secrets.token_hex(8)}"
    scratch.mkdir(mode=0o700)
    if uid is not None:
        os.chown(scratch, uid, -1)
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if major_version(programs) >= 17 else []
    become = [sys.executable, "-I", "-S", keeper.__file__, keeper.RUN, "-" if uid is None else str(uid)]
    alone: list[Path | str] = [programs / "postgres", "--single", "-j", "-D", "."]
    steps: list[tuple[list[Path | str], str]] = [
        ([programs / "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", *locale, "-D", "."], ""),
        ([*alone, "postgres"], f"CREATE ROLE {NAME} LOGIN;\n\nCREATE DATABASE {NAME} OWNER {NAME};\n\n"),
    ]
    if has_extension(programs, "vector"):  # which only a superuser may create
        steps.append(([*alone, NAME], "CREATE EXTENSION vector;\n\n"))
    for command, given in steps:
        done = subprocess.run(  # noqa: S603 - with our own arguments
            [*become, *command],
            input=given.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=scratch,  # and no path in an argument, which initdb refuses where it has a line end
            env=_environment(),
            check=False,
        )
        if done.returncode != 0 or b"ERROR" in done.stdout:
            shutil.rmtree(scratch, ignore_errors=True)
            reason = " ".join(printable(done.stdout.decode("utf-8", "replace")).split())[-600:]
            raise ServerError(f"{folder}: PostgreSQL cannot make its data: {reason}; is the disk full?")
    token = secrets.token_hex(16)
    write_atomically(folder / _MADE_BY, token.encode())
    make_own(_known_servers())
    write_atomically(_known(token), b"")
    scratch.rename(folder / DATA)
    sync_folder(folder)


def _tame(data: Path, uid: int | None) -> None:
    """Let nothing in a data folder decide what its server does, and nothing in it lead elsewhere.

    Raises:
        UntrustedError: a table space lies elsewhere.
    """
    for name in _MADE_IN_DATA:
        (data / name).unlink(missing_ok=True)
    if any((data / "pg_tblspc").iterdir()) or (data / "pg_wal").is_symlink():
        raise UntrustedError(f"{data} leads to other folders (table spaces); such a server is not run: remove the folder")
    data.chmod(0o700)
    if uid is not None and data.stat().st_uid != uid:  # a copy belongs to who copied it
        for root, folders, files in os.walk(data):
            for name in [".", *folders, *files]:
                os.chown(Path(root, name), uid, -1, follow_symlinks=False)


def _require_trust(folder: Path) -> None:
    """Refuse data that this user did not make, unless it is said that it may be run."""
    if not (folder / DATA).exists():
        return
    try:
        token = (folder / _MADE_BY).read_text("ascii").strip()
    except (OSError, ValueError):
        token = ""
    if token and _known(token).is_file():
        return
    trusted = [Path(path).absolute() for path in os.environ.get(TRUSTED, "").split(os.pathsep) if path]
    if folder in trusted:
        return
    raise UntrustedError(
        f"{folder} holds a PostgreSQL server that was not made by this user on this machine; running it could run any program. "
        f"If you know who made it, say so with {TRUSTED}={folder}; otherwise remove that folder and index again"
    )


def _known_servers() -> Path:
    return cache_folder() / "postgres"


def _known(token: str) -> Path:
    return _known_servers() / hashlib.sha256(token.encode()).hexdigest()


def _server_user() -> int | None:
    """The user that PostgreSQL runs as where this one is root, which PostgreSQL refuses."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def socket_folder(folder: Path) -> Path:
    """Where the socket lies: in the folder, or in a private one with a short name, as sockets have at most 107 characters."""
    plain = str(folder).isprintable() and not {",", '"', "'"} & {*str(folder)}
    if plain and len(os.fsencode(folder / _SOCKET)) <= _LONGEST_SOCKET:
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    runtime = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(runtime) / f"nlpr-{os.geteuid()}-{digest}"


def _environment() -> dict[str, str]:
    """No variable of libpq or of PostgreSQL gets through."""
    kept = ("PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR", "TZ")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"LC_ALL": "C.UTF-8"}


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _said(log: Path, begun: int) -> str:
    with log.open("rb") as file:
        file.seek(begun)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    lines = [line for line in lines if _FULL in line] or lines
    return printable(" | ".join(line.strip() for line in lines[-4:]))[-600:] or "it said nothing"
