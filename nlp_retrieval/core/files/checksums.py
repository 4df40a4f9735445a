"""Sizes and SHA-256 of files: opening compares sizes; ``verify``, and what copies data, compares contents."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from nlp_retrieval.core.files.columns import damaged, unreadable
from nlp_retrieval.core.files.opening import explain_file_limit, open_regular

_TICK = 100_000_000
"""Nanoseconds within which two writes may get the same time of change."""


class FileRecord(BaseModel):
    """Expected size and SHA-256 of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes: int
    sha256: str


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Examples:
        >>> sha256_of(Path("qrels.txt"))[:12]
        '903cb6345d45'
    """
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """Return a state that changes on every write: device, inode, size and times. The time of change cannot be set back."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def is_settled(*statuses: os.stat_result) -> bool:
    """Return whether all files were written long enough ago that another write would change their state."""
    return max((status.st_ctime_ns for status in statuses), default=0) < time.time_ns() - _TICK


def record_folder(folder: Path) -> dict[str, FileRecord]:
    """Record every file of a flat folder."""
    return {file.name: FileRecord(bytes=file.stat().st_size, sha256=sha256_of(file)) for file in sorted(folder.iterdir())}


def check_file(path: Path, record: FileRecord, *, content: bool = False) -> None:
    """Raise an IndexDamagedError if the size of a file, or its whole content, is not that of its record."""
    try:
        with explain_file_limit(path), open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            actual = hashlib.file_digest(file, "sha256").hexdigest() if content and size == record.bytes else record.sha256
    except OSError as error:
        raise unreadable(path, error) from error
    if size != record.bytes:
        raise damaged(path, f"it has {size} bytes, the manifest says {record.bytes}")
    if actual != record.sha256:
        raise damaged(path, f"SHA-256 {actual}, the manifest says {record.sha256}")
