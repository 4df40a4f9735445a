"""SHA-256 of files, and a record of files already checked.

Every file that native code will read is compared with its checksum once. The comparison is recorded in the user's own cache
folder by device, inode, size and time of change, so a large index is checked once and a changed file is checked again. The
record is optional: if it cannot be read or written, files are checked each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from nlp_retrieval.core.files.atomic import clear_asides, replace_file
from nlp_retrieval.core.files.cache import cache_folder, make_own, read_own
from nlp_retrieval.core.files.columns import CURE, damaged, explain_file_limit
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.errors import IndexDamagedError

_MEMORY = "checked.json"
_REMEMBERED_AT_MOST = 4096
_TICK = 100_000_000
"""Nanoseconds within which two writes may get the same time of change."""

_noting = Lock()


class FileRecord(BaseModel):
    """Expected size and checksum of a file.

    Args:
        bytes: its size.
        sha256: its checksum, in hexadecimal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int
    sha256: str


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Examples:
        >>> sha256_of(Path("qrels.txt"))[:12]
        '903cb6345d45'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """Return a state that changes on every write: device, inode, size and times. The time of change cannot be set back.

    Examples:
        >>> state_of(Path("qrels.txt").stat()) == state_of(Path("qrels.txt").stat())
        True
    """
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_settled(*statuses: os.stat_result) -> bool:
    """Return whether all files were written long enough ago that another write would change their state.

    Examples:
        >>> is_settled(Path(json.__file__).stat())
        True
    """
    return max((status.st_ctime_ns for status in statuses), default=0) < time.time_ns() - _TICK


def record_folder(folder: Path) -> dict[str, FileRecord]:
    """Record every file of a flat folder."""
    return {file.name: FileRecord(bytes=file.stat().st_size, sha256=sha256_of(file)) for file in sorted(folder.iterdir())}


def check_file(path: Path, record: FileRecord, *, trust_memory: bool = True) -> None:
    """Compare a file with its record.

    Args:
        path: the file.
        record: the expected size and checksum.
        trust_memory: whether to skip a file that was checked before and has not changed since.

    Raises:
        IndexDamagedError: it is missing, unreadable, of another size, or its content differs.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise IndexDamagedError(f"{path} is missing or unreadable ({error.strerror}); {CURE}") from error
    if not stat.S_ISREG(status.st_mode):
        raise IndexDamagedError(f"{path} is not a regular file; {CURE}")
    if status.st_size != record.bytes:
        raise IndexDamagedError(f"{path} has {status.st_size} bytes, the manifest says {record.bytes}; {CURE}")
    state = ":".join(map(str, state_of(status)))
    if trust_memory and _memory().get(state) == record.sha256:
        return
    try:
        with explain_file_limit(path):
            actual = sha256_of(path)
    except PermissionError:
        raise IndexDamagedError(f"{path} may not be read by this user; ask its owner for the permission") from None
    except OSError as error:
        raise IndexDamagedError(f"{path} cannot be read ({error.strerror}); {CURE}") from error
    if actual != record.sha256:
        raise damaged(path, f"SHA-256 {actual}, the manifest says {record.sha256}")
    _remember(state, actual)


def _memory() -> dict[str, str]:
    return _read_memory(cache_folder() / _MEMORY)


@cache
def _read_memory(file: Path) -> dict[str, str]:
    clear_asides(file)
    try:
        content = json.loads(read_own(file, trust_group=False))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _remember(state: str, checksum: str) -> None:
    memory = _memory()
    with _noting:  # other threads check files too
        if memory.get(state) == checksum:
            return
        memory[state] = checksum
        while len(memory) > _REMEMBERED_AT_MOST:
            memory.pop(next(iter(memory)))
        content = json.dumps(memory).encode()
    file = cache_folder() / _MEMORY
    try:
        make_own(file.parent)
        replace_file(file, content)
        file.chmod(0o600)
    except OSError:
        return  # the next process checks again
