"""Writing an index directory: existing parts are kept, missing ones are built, and the result is published.

A crash leaves the old state or the new one. :mod:`nlp_retrieval.core.index.update` updates an existing index.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from uuid import uuid4

from filelock import FileLock, Timeout

from nlp_retrieval._version import __version__
from nlp_retrieval.core.files.atomic import READ_ONLY, clear_asides, explained_writes, make_folder, publish_folder, sync_folder
from nlp_retrieval.core.files.checksums import record_folder
from nlp_retrieval.core.files.frames import Items, items_of
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.index.checkpoint import CheckpointContext, checkpoints_at, keep_checkpoints
from nlp_retrieval.core.index.generation import Builder, SegmentFolder, check_folder, fingerprint_of
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.index.manifest import (
    MANIFEST_FILE,
    BuildCost,
    CorpusRecord,
    FolderRecord,
    Manifest,
    RetrieverRecord,
    Segment,
    index_directory,
    manifest_state,
    read_manifest,
    write_manifest,
)
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.processes import PeakMemory, use_one_thread_after_fork
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    IndexConflictError,
    IndexDamagedError,
    IndexLockedError,
    RetrievalWarning,
    SourceError,
)

# Publishing into an index directory: one writer at a time, scratch folders, and the removal of unused folders.


# The process that is writing to an index directory, for messages to other writers.
#
# The lock itself belongs to the operating system and ends with its process; the file here only informs, and the name of a
# process that no longer exists is ignored.

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
    """Record the writer in a directory while the block runs; if the file cannot be written, there is no record."""
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
    """Return the process writing to a directory, or None if unknown."""
    try:
        content = read_json_file(directory / OWNER_FILE)
        owner = Owner(int(content["pid"]), str(content["host"]), str(content["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return owner if owner.host != socket.gethostname() or _is_running(owner.pid) else None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


SCRATCH = ".scratch-"
"""Prefix of folders that are not published yet."""

_LOCK_FILE = ".lock"
_MARK = ".nlp_retrieval"
"""An empty marker file in every published folder; only folders that have it are ever removed."""


@contextmanager
def writing(directory: Path) -> Iterator[list[CheckpointContext]]:
    """Be the only writer, and clean up scratch folders; if nothing was published, also remove the folders created for it.

    Yields:
        The checkpoints of this writer; :func:`write_segment` adds those of each segment.

    Raises:
        IndexLockedError: another process is writing; the message names it if it is known.
        KeyboardInterrupt: the user interrupted it; the message says what remains.
    """
    created, lock = make_folder(directory), FileLock(directory / _LOCK_FILE, timeout=0)
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
    before, contexts = manifest_state(directory), list[CheckpointContext]()
    try:
        with owning(directory):
            _clear_scratch(directory)
            yield contexts
    except KeyboardInterrupt as error:
        error.args = error.args or (_describe_state(directory, before, sum(context.kept for context in contexts)),)
        raise
    finally:
        try:
            _clear_scratch(directory)
            _remove_empty(directory, created)
        finally:
            lock.release()


def _describe_state(directory: Path, before: tuple[int, int, int] | None, kept: int) -> str:
    """Return, for a message, what an interrupted writer leaves behind."""
    if (now := manifest_state(directory)) != before:
        return f"the index in {directory} was published before that, and is complete"
    state = f"the index in {directory} is as it was before" if now is not None else f"there is no index in {directory} yet"
    going_on = f"; {kept:,} encoded passages are stored there: the same call continues from them" if kept else ""
    return f"{state}, and no lock is left{going_on}"


def _remove_empty(directory: Path, created: list[Path]) -> None:
    """Remove the lock file of a directory that holds nothing else, and the folders created for it.

    The lock is still held: a process that opened the file meanwhile gets the lock, finds the file gone, and creates another.
    """
    with suppress(OSError):
        if [entry.name for entry in directory.iterdir()] == [_LOCK_FILE]:
            (directory / _LOCK_FILE).unlink()
            for folder in created:
                folder.rmdir()


def new_scratch(directory: Path) -> Path:
    """Return a new scratch folder, empty."""
    scratch = directory / f"{SCRATCH}{uuid4().hex}"
    scratch.mkdir()
    return scratch


def _clear_scratch(directory: Path) -> None:
    for leftover in directory.glob(f"{SCRATCH}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    clear_asides(directory / MANIFEST_FILE, seconds=0)  # this is the only writer, so none belongs to another


def checked_items(items: Items) -> Iterator[SearchableItem]:
    """Yield the items of a source; its errors become SourceErrors, to distinguish them from errors of writing the index.

    Raises:
        ItemError: it is not a source of items.
        SourceError: it cannot be read.
    """
    source = items_of(items)
    while True:
        try:
            item = next(source)
        except StopIteration:
            return
        except OSError as error:
            raise SourceError(f"the items cannot be read: {error}") from error
        yield item


def publish(scratch: Path, directory: Path, name: str, fingerprint: str) -> FolderRecord:
    """Publish a scratch folder under a name with its fingerprint; if the name is in use (by a reader, say), add a suffix."""
    files = record_folder(scratch)
    (scratch / _MARK).touch()
    folder = f"{name}-{fingerprint[:16]}"
    if (directory / folder).exists():
        folder += f"-{uuid4().hex[:6]}"
    publish_folder(scratch, directory / folder)
    return FolderRecord(folder=folder, files=files)


class Written(NamedTuple):
    """A segment written by a retriever, its cost as if it had encoded everything, and how many texts others had encoded."""

    segment: Segment
    seconds: float
    peak_bytes: int
    resumed: int
    shared: int


def write_segment(
    contexts: list[CheckpointContext],
    directory: Path,
    name: str,
    fingerprint: str,
    corpus: str,
    items: Segment,
    write: Callable[[Path], None],
) -> Written:
    """Write a segment of a retriever into a scratch folder, and publish it.

    Args:
        contexts: the checkpoints of this writer.
        directory: the index directory.
        name: name of the retriever.
        fingerprint: fingerprint of its index.
        corpus: fingerprint of all items.
        items: the items' segment with the same rows.
        write: writes the segment into an empty folder.
    """
    scratch = new_scratch(directory)
    use_one_thread_after_fork()
    begin = time.perf_counter()
    ends = contexts[0].ends if contexts else {}
    context = CheckpointContext(directory, corpus, (items.first_row, items.end_row), ends)
    contexts.append(context)
    with PeakMemory() as peak, checkpoints_at(context):
        write(scratch)
    seconds = time.perf_counter() - begin + context.seconds
    folder = publish(scratch, directory, name, fingerprint)
    segment = Segment(**dict(folder), first_row=items.first_row, end_row=items.end_row)
    return Written(segment, seconds, peak.bytes, context.resumed, context.shared)


def tidy(directory: Path) -> None:
    """Remove folders that an earlier update kept for readers that have finished; a current writer does this itself."""
    with suppress(IndexLockedError, OSError), writing(directory):
        remove_unused(directory)


def remove_unused(directory: Path) -> None:
    """Remove published folders that are not in the manifest and not held by a reader; a later build removes those still held.

    The manifest is read again, because an interrupted build may have published. If it cannot be read, nothing is removed.
    """
    with suppress(OSError, IndexDamagedError):
        manifest = read_manifest(directory)
        if manifest is not None:
            _remove_others(directory, set(manifest.folders))


def drop_orphans(directory: Path, builders: Sequence[Builder]) -> None:
    """Let engines remove data outside the directory that none of its folders refers to; the next writer retries failures."""
    for settle in {builder.name: builder.settle for builder in builders}.values():
        try:
            settle(directory)
        except Exception as error:  # engines may raise anything; the index is published and works
            warnings.warn(
                f"data outside {directory} that it no longer needs was not removed ({error}); the next write to it tries again",
                RetrievalWarning,
                stacklevel=3,
            )


def _remove_others(directory: Path, in_use: set[str]) -> None:
    for folder in directory.iterdir():
        if folder.name in in_use or folder.is_symlink() or not folder.is_dir() or not (folder / _MARK).is_file():
            continue
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except OSError:  # not readable
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            moved = folder.rename(directory / f"{SCRATCH}{uuid4().hex}")  # after a crash, the next writer clears it
            sync_folder(directory)
            shutil.rmtree(moved, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(descriptor)


@dataclass(frozen=True, repr=False)
class IndexReport:
    """Result of an indexing run.

    Args:
        path: the index directory.
        n_items: size of the corpus.
        built: names of the retrievers that were built.
        fingerprints: fingerprints of the indexes that were built.
        found: names of the retrievers that were already indexed.
        seconds: duration of the run.
        resumed: how many passages an interrupted run had encoded; counted once per encoder.
        shared: how many passages were not encoded again for a retriever, because another one of this run has the same encoder;
            the cost of each retriever includes the time anyway.

    Examples:
        >>> report = Searcher([Bm25Retriever()]).index(items, "index")
        >>> report.n_items, report.built
        (3, ['bm25'])
        >>> Searcher([Bm25Retriever()]).index(items, "index").found
        ['bm25']
    """

    path: Path
    n_items: int
    built: list[str]
    found: list[str]
    seconds: float
    fingerprints: frozenset[str] = frozenset()
    resumed: int = 0
    shared: int = 0

    def __repr__(self) -> str:
        done = [f"{word} {', '.join(names)}" for word, names in (("built", self.built), ("found", self.found)) if names]
        done += [f"{self.resumed:,} passages were encoded before"] if self.resumed else []
        return f"<{self.n_items:,} items in {self.path}; {'; '.join(done)}; {self.seconds:.1f} s>"


def build_index(items: Items, path: str | Path, builders: Sequence[Builder], *, replace: bool = False) -> IndexReport:
    """Make an index directory hold these items and these retrievers; parts that exist are not built again.

    A directory that is already complete may be read-only.

    Args:
        items: a loader, or items; streamed once.
        path: the index directory; created if it does not exist.
        builders: the retrievers; equal ones are built once.
        replace: whether to replace an existing index of other items.

    Raises:
        IndexConflictError: the directory holds other items, and ``replace`` is False.
        IndexLockedError: another process is writing to it.
        IndexWriteError: it cannot be written.
        ItemError: the items cannot be indexed.
    """
    begin = time.perf_counter()
    directory = index_directory(path)
    with explained_writes(directory), ExitStack() as stack:
        try:
            contexts = stack.enter_context(writing(directory))
            scratch = new_scratch(directory)
        except OSError as error:
            return _report_complete_index(items, directory, builders, error, begin)
        old = _readable_manifest(directory, replace)
        n_items, fingerprint = write_items(checked_items(items), scratch)
        same = old is not None and old.corpus.fingerprint == fingerprint
        if old is not None and not same and not replace:
            order = "; their order counts" if n_items == old.corpus.n_items else ""
            updated = ", which were updated since they were indexed (an updated item comes last)" if old.corpus.updated else ""
            raise IndexConflictError(
                f"{directory} holds an index of {old.corpus.n_items:,} other items{updated} (now given: {n_items:,}{order}); "
                "choose another folder, add or delete items, or pass replace=True to overwrite that index"
            )
        if old is not None and same and _usable(directory, old.corpus.segments[0], replace):
            corpus = old.corpus
            shutil.rmtree(scratch)
        else:
            folder = publish(scratch, directory, "items", fingerprint)
            segment = Segment(**dict(folder), first_row=0, end_row=n_items)
            corpus = CorpusRecord(fingerprint=fingerprint, n_items=n_items, segments=[segment])
        kept = _kept_records(directory, old, builders, replace) if old is not None and same else []
        built: list[str] = []
        reused: list[str] = []
        table = ItemTable(directory / corpus.segments[0].folder / ITEMS_FILE)
        keep_checkpoints(directory, corpus.fingerprint)
        resumed = shared = 0
        for builder in builders:
            fingerprint_wanted = fingerprint_of(corpus.fingerprint, builder.identity, kept)
            indexed = [record for record in kept if record.fingerprint == fingerprint_wanted]
            if indexed and _has_outside_data(builder, directory, indexed[0], replace):
                reused.append(builder.name)
                continue
            kept = [record for record in kept if record.fingerprint != fingerprint_wanted]
            record, written = _build_one(contexts, builder, fingerprint_wanted, table, corpus, directory)
            kept.append(record)
            resumed, shared = resumed + written.resumed, shared + written.shared
            built.append(builder.name)
        if old is not None and old.corpus == corpus and old.retrievers == kept:
            manifest = old
        else:
            generation = old.generation + 1 if old is not None else 1
            manifest = Manifest(generation=generation, version=__version__, corpus=corpus, retrievers=kept)
            write_manifest(directory, manifest)
        keep_checkpoints(directory)
        remove_unused(directory)
        drop_orphans(directory, builders)
    fingerprints = frozenset(record.fingerprint for record in kept[len(kept) - len(built) :])
    return IndexReport(directory, n_items, built, reused, time.perf_counter() - begin, fingerprints, resumed, shared)


def _kept_records(directory: Path, old: Manifest, builders: Sequence[Builder], replace: bool) -> list[RetrieverRecord]:
    """The retrievers that stay: undamaged, and not one of a builder's settings whose code or model has changed since."""
    wanted = {fingerprint_of(old.corpus.fingerprint, builder.identity, old.retrievers) for builder in builders}
    configs = [without_secrets(builder.config) for builder in builders]
    current = [record for record in old.retrievers if record.fingerprint in wanted or record.config not in configs]
    return [record for record in current if all(_usable(directory, segment, replace) for segment in record.segments)]


def _report_complete_index(
    items: Items,
    directory: Path,
    builders: Sequence[Builder],
    refused: OSError,
    begin: float,
) -> IndexReport:
    """Report an unwritable index that is already complete; otherwise raise an error that says why it cannot be written.

    The items are written into a temporary folder to compute their fingerprint.
    """
    if refused.errno not in READ_ONLY or (manifest := read_manifest(directory)) is None:
        raise refused
    with TemporaryDirectory(prefix="nlp-retrieval-") as scratch:
        n_items, fingerprint = write_items(checked_items(items), Path(scratch))
    indexed = {record.fingerprint for record in manifest.retrievers}
    wanted = {fingerprint_of(fingerprint, builder.identity, manifest.retrievers) for builder in builders}
    if manifest.corpus.fingerprint != fingerprint or not wanted <= indexed:
        raise refused
    names = [builder.name for builder in builders]
    return IndexReport(directory, n_items, [], names, time.perf_counter() - begin)


def _build_one(
    contexts: list[CheckpointContext],
    builder: Builder,
    fingerprint: str,
    items: ItemTable,
    corpus: CorpusRecord,
    directory: Path,
) -> tuple[RetrieverRecord, Written]:
    """Build an index; return its record and its segment."""
    write = partial(_build_unchanged, builder, items)
    written = write_segment(contexts, directory, builder.name, fingerprint, corpus.fingerprint, corpus.segments[0], write)
    record = RetrieverRecord(
        fingerprint=fingerprint,
        identity=without_secrets(builder.identity),
        config=without_secrets(builder.config),
        segments=[written.segment],
        cost=BuildCost(seconds=round(written.seconds, 3), peak_bytes=written.peak_bytes),
    )
    return record, written


def _build_unchanged(builder: Builder, items: ItemTable, folder: Path) -> None:
    builder.build(items, folder)
    builder.require_unchanged()


def _readable_manifest(directory: Path, replace: bool) -> Manifest | None:
    """The manifest; a damaged one is treated as missing if the index is to be replaced anyway."""
    try:
        return read_manifest(directory)
    except IndexDamagedError:
        if replace:
            return None
        raise


def _has_outside_data(builder: Builder, directory: Path, record: RetrieverRecord, replace: bool) -> bool:
    """Return whether an engine's data outside the directory exists; raise an error if not, unless the index is replaced."""
    try:
        builder.require([SegmentFolder(directory / part.folder, part.first_row, part.end_row) for part in record.segments])
    except IndexDamagedError:
        if replace:
            return False
        raise
    return True


def _usable(directory: Path, record: FolderRecord, replace: bool) -> bool:
    """Return whether the files of a record are undamaged; raise an error for damage unless the index is to be replaced."""
    try:
        check_folder(directory, record)
    except IndexDamagedError:
        if replace:
            return False
        raise
    return True
