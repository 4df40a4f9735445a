"""The folders of embedded servers: private ones, sockets in them, and trust in their data.

The data of a server can hold programs, or files that native code reads. So a folder that was created on another machine, or by
another user, is used only once it is trusted.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.cache import cache_folder, make_own
from nlp_retrieval.errors import UntrustedError

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
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is no folder of this user")
    if found.st_mode & 0o077:
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
    write_atomically(_known(token, kind), b"")


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
    if token and _known(token, kind).is_file():
        return
    trusted = [Path(path).absolute() for path in os.environ.get(TRUSTED, "").split(os.pathsep) if path]
    if folder in trusted:
        return
    raise UntrustedError(
        f"{folder} holds a {server} server that was not made by this user on this machine; running it could run any program. "
        f"If you know who made it, say so with {TRUSTED}={folder}; otherwise remove that folder and index again"
    )


def _known(token: str, kind: str) -> Path:
    return cache_folder() / kind / hashlib.sha256(token.encode()).hexdigest()
