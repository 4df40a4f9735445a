"""Who is writing to an index directory, for the message to those who would like to.

The lock itself is the operating system's and ends with its process; what stands here only tells, and a process that is gone is
not told of.
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
        pid: of its process.
        host: where that runs.
        since: when it began, in ISO 8601.
    """

    pid: int
    host: str
    since: str


@contextmanager
def owning(directory: Path) -> Iterator[None]:
    """Leave word in a directory of who writes to it, while the block runs; where that cannot be written, nothing is told."""
    owner = Owner(os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat(timespec="seconds"))
    path = directory / OWNER_FILE
    with suppress(OSError):
        path.unlink(missing_ok=True)  # never written through: a link that somebody planted leads to another file
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "w") as file:
            file.write(json.dumps(asdict(owner)) + "\n")
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def owner_of(directory: Path) -> Owner | None:
    """Return who is writing to a directory, as far as that can be told."""
    try:
        told = read_json_file(directory / OWNER_FILE)
        owner = Owner(int(told["pid"]), str(told["host"]), str(told["since"]))
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
