"""Writing so that a reader sees all of it or none, also after a crash: write aside, sync, rename, sync the folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from nlp_retrieval.errors import IndexWriteError

_CURES = {
    errno.EACCES: "permission denied; choose a folder that you may write to",
    errno.EPERM: "not permitted; choose a folder that you may write to",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.ENOSPC: "the disk is full; free some space and run it again",
    errno.EDQUOT: "the disk quota is used up; free some space and run it again",
    errno.EFBIG: "the file would be larger than this process may write (ulimit -f); raise the limit and run it again",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another path",
    errno.EEXIST: "a file of that name is there; choose another path",
}


@contextmanager
def explained_writes(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` inside the block into an :class:`IndexWriteError` that says what to do.

    Args:
        path: the directory being written; named where the operating system names no file.
    """
    try:
        yield
    except IndexWriteError:
        raise
    except OSError as error:
        if error.errno is None:
            raise
        place = error.filename or path
        if isinstance(place, str) and not (Path(place).is_relative_to(path) or path.is_relative_to(place)):
            raise  # an engine could not read something of its own
        reason = _CURES.get(error.errno, os.strerror(error.errno))
        raise IndexWriteError(f"cannot write to {place}: {reason}. What was there before is unchanged.") from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the content of a file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file by ``content``: a reader sees the old file or the new one, never a part."""
    aside = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def publish_folder(scratch: Path, target: Path) -> None:
    """Give a finished scratch folder its final name, after its content is durable. Nothing may have that name yet."""
    for file in scratch.iterdir():
        sync_file(file)
    sync_folder(scratch)
    scratch.rename(target)
    sync_folder(target.parent)
