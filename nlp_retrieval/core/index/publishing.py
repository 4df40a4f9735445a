"""Publishing into an index directory: one writer at a time, scratch folders aside, and folders that nobody needs removed.

A build writes into a scratch folder, syncs it, renames it, and last replaces ``manifest.json``. Killed at any moment, the
directory holds the old state or the new one; scratch left by a dead build is cleared by the next. Folders are named after
the fingerprint of what is in them and never change once a manifest names them; an old one is removed only when no reader
holds it (:mod:`nlp_retrieval.core.index.generation`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from filelock import FileLock, Timeout

from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.files.atomic import clear_asides, make_folder, publish_folder, sync_folder
from nlp_retrieval.core.files.checksums import record_folder
from nlp_retrieval.core.forks import compute_alone
from nlp_retrieval.core.index.lock_owner import owner_of, owning
from nlp_retrieval.core.index.manifest import MANIFEST_FILE, FolderRecord, Segment, read_manifest
from nlp_retrieval.core.measure import PeakMemory
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import IndexDamagedError, IndexLockedError, ItemError, SourceError

_SCRATCH = ".scratch-"
_LOCK_FILE = ".lock"
_MARK = ".nlp_retrieval"
"""An empty file in every folder that was published here: only such a folder is ever removed."""


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Be the only writer, and leave no scratch behind; where nothing was published, no folder that was made for it either.

    Raises:
        IndexLockedError: another process is writing; the message names it where that is known.
    """
    made, lock = make_folder(directory), FileLock(directory / _LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        owner = owner_of(directory)
        if owner is None:
            raise IndexLockedError(f"another process is writing to {directory}; wait for it, then try again") from None
        raise IndexLockedError(
            f"process {owner.pid} on {owner.host} is writing to {directory}, since {owner.since}; wait for it, then try again",
            owner.pid,
            owner.host,
            owner.since,
        ) from None
    try:
        with owning(directory):
            _clear_scratch(directory)
            yield
    finally:
        _clear_scratch(directory)
        _leave_nothing(directory, made)
        lock.release()


def _leave_nothing(directory: Path, made: list[Path]) -> None:
    """Remove the lock file of a directory that holds nothing else, and the folders that were made for it.

    The lock is still held: who opened the file meanwhile finds it gone once the lock is theirs, and makes another.
    """
    with suppress(OSError):
        if [entry.name for entry in directory.iterdir()] == [_LOCK_FILE]:
            (directory / _LOCK_FILE).unlink()
            for folder in made:
                folder.rmdir()


def new_scratch(directory: Path) -> Path:
    """Return a new scratch folder, empty."""
    scratch = directory / f"{_SCRATCH}{uuid4().hex}"
    scratch.mkdir()
    return scratch


def _clear_scratch(directory: Path) -> None:
    for left in directory.glob(f"{_SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)
    clear_asides(directory / MANIFEST_FILE, seconds=0)  # there is one writer, and nobody else's can be younger


def guarded(items: BaseLoader | Iterable[SearchableItem]) -> Iterator[SearchableItem]:
    """Keep what goes wrong while reading a source apart from what goes wrong while writing an index.

    Raises:
        ItemError: it is no source of items.
        SourceError: it cannot be read.
    """
    if isinstance(items, SearchableItem):
        raise ItemError(f"one item ({items.item_id!r}) is given and a list is wanted; write [item]")
    given = items.stream() if isinstance(items, BaseLoader) else items
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ItemError(f"items come as a list or from a loader, not as {type(given).__name__}; pass a loader, or [item, ...]")
    source = iter(given)
    while True:
        try:
            item = next(source)
        except StopIteration:
            return
        except OSError as error:
            raise SourceError(f"the items cannot be read: {error}") from error
        yield item


def publish(scratch: Path, directory: Path, name: str, fingerprint: str) -> FolderRecord:
    """Publish a scratch folder under the name of its content; a name that is taken (a reader may hold it) gets a suffix."""
    files = record_folder(scratch)
    (scratch / _MARK).touch()
    folder = f"{name}-{fingerprint[:16]}"
    if (directory / folder).exists():
        folder += f"-{uuid4().hex[:6]}"
    publish_folder(scratch, directory / folder)
    return FolderRecord(folder=folder, files=files)


class Written(NamedTuple):
    """A segment that a retriever wrote, and what that took."""

    segment: Segment
    seconds: float
    peak_bytes: int


def write_segment(directory: Path, name: str, fingerprint: str, items: Segment, write: Callable[[Path], None]) -> Written:
    """Have a segment of a retriever written into a scratch folder, and publish it.

    Args:
        directory: of the index.
        name: of the retriever.
        fingerprint: of its index.
        items: the segment of the items that it is of.
        write: writes it into an empty folder.
    """
    scratch = new_scratch(directory)
    compute_alone()
    begin = time.perf_counter()
    with PeakMemory() as peak:
        write(scratch)
    seconds = time.perf_counter() - begin
    folder = publish(scratch, directory, name, fingerprint)
    return Written(Segment(**dict(folder), first_row=items.first_row, end_row=items.end_row), seconds, peak.bytes)


def tidy(directory: Path) -> None:
    """Remove what an earlier update left to readers that are gone by now; where somebody writes, that writer does it."""
    with suppress(IndexLockedError, OSError), writing(directory):
        remove_unused(directory)


def remove_unused(directory: Path) -> None:
    """Remove folders of ours that the manifest does not name and no reader holds; a later build comes back for those held.

    What counts is the manifest that is there now: a build that was interrupted may have been published. Without one that can
    be read, nothing is removed.
    """
    with suppress(OSError, IndexDamagedError):
        manifest = read_manifest(directory)
        if manifest is not None:
            _remove_others(directory, set(manifest.folders))


def _remove_others(directory: Path, in_use: set[str]) -> None:
    for folder in directory.iterdir():
        if folder.name in in_use or folder.is_symlink() or not folder.is_dir() or not (folder / _MARK).is_file():
            continue
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except OSError:  # not ours to read
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left = folder.rename(directory / f"{_SCRATCH}{uuid4().hex}")  # what a crash leaves of it the next writer clears
            sync_folder(directory)
            shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(descriptor)
