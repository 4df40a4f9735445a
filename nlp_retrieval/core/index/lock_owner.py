"""Which process is writing to an index directory, for messages to others that want to write.

The lock itself belongs to the operating system and ends with its process; the file here only informs, and the name of a
process that no longer exists is ignored.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from nlp_retrieval.core.files.json_text import read_json_file

OWNER_FILE = ".lock-owner"


@dataclass(frozen=True)
class Owner:
    """A writer.

    Args:
        pid: id of its process.
        host: name of its machine.
        since: when it began, in ISO 8601.
    """

    pid: int
    host: str
    since: str


@contextmanager
def owning(directory: Path) -> Iterator[None]:
    """Name the writer in a directory while the block runs; if the file cannot be written, there is none."""
    owner = Owner(os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat(timespec="seconds"))
    path = directory / OWNER_FILE
    with suppress(OSError):
        path.unlink(missing_ok=True)  # never write through it: it may be a planted link to another file
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w") as file:
            file.write(json.dumps(asdict(owner)) + "\n")
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def owner_of(directory: Path) -> Owner | None:
    """Return who is writing to a directory, or None if that is unknown."""
    try:
        content = read_json_file(directory / OWNER_FILE)
        owner = Owner(int(content["pid"]), str(content["host"]), str(content["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if owner.host != socket.gethostname() or _lives(owner.pid) else None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0
