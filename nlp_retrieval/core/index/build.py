"""Writing an index directory: existing parts are kept, missing ones are built, and the result is published.

A crash leaves the old state or the new one. :mod:`nlp_retrieval.core.index.update` updates an existing index.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from filelock import FileLock, Timeout

from nlp_retrieval._version import __version__
from nlp_retrieval.core.files.atomic import READ_ONLY, clear_asides, explained_writes, make_folder, publish_folder, sync
from nlp_retrieval.core.files.checksums import record_folder
from nlp_retrieval.core.files.frames import Items, items_of
from nlp_retrieval.core.index.checkpoint import Checkpoints
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
from nlp_retrieval.errors import IndexConflictError, IndexDamagedError, IndexLockedError, RetrievalWarning, SourceError

# Publishing into an index directory: one writer at a time, scratch folders, and the removal of unused folders.

SCRATCH = ".scratch-"
"""Prefix of folders that are not published yet."""

_LOCK_FILE = ".lock"
_MARK = ".nlp_retrieval"
"""An empty marker file in every published folder; only folders that have it are ever removed."""


@contextmanager
def writing(directory: Path) -> Iterator[Checkpoints]:
    """Be the only writer, and clean up scratch folders; if nothing was published, also remove the folders created for it.

    Raises:
        IndexLockedError: another process is writing.
        KeyboardInterrupt: the user interrupted it; the message says what remains.
    """
    created, lock = make_folder(directory), FileLock(directory / _LOCK_FILE, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise IndexLockedError(f"another process is writing to {directory}; wait for it, then try again") from None
    before, checkpoints = manifest_state(directory), Checkpoints(directory)
    try:
        _clear_scratch(directory)
        yield checkpoints
    except KeyboardInterrupt as error:
        error.args = error.args or (_state_left(directory, before, checkpoints.kept),)
        raise
    finally:
        try:
            _clear_scratch(directory)
            _remove_empty(directory, created)
        finally:
            lock.release()


def _state_left(directory: Path, before: object, kept: int) -> str:
    """Return, for a message, what an interrupted writer leaves behind."""
    if (now := manifest_state(directory)) != before:
        return f"the index in {directory} was published before that, and is complete"
    state = f"the index in {directory} is as it was before" if now is not None else f"there is no index in {directory} yet"
    return state + (f"; {kept:,} encoded passages are stored there: the same call continues from them" if kept else "")


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
    """Yield the items of a source; its errors become SourceErrors, to distinguish them from errors of writing the index."""
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


def publish_segment(scratch: Path, directory: Path, name: str, fingerprint: str, first_row: int, end_row: int) -> Segment:
    """Publish a scratch folder that holds these rows."""
    return Segment(**dict(publish(scratch, directory, name, fingerprint)), first_row=first_row, end_row=end_row)


def write_segment(
    checkpoints: Checkpoints, builder: Builder, fingerprint: str, items: Segment, write: Callable[[Path], None]
) -> tuple[Segment, BuildCost]:
    """Write a segment with the rows of ``items`` into a scratch folder, and publish it; its cost is as if all was encoded."""
    scratch = new_scratch(checkpoints.directory)
    use_one_thread_after_fork()
    begin, reused = time.perf_counter(), checkpoints.seconds
    with PeakMemory() as peak, checkpoints.used():
        write(scratch)
    seconds = time.perf_counter() - begin + checkpoints.seconds - reused
    cost = BuildCost(seconds=round(seconds, 3), peak_bytes=peak.bytes)
    rows = items.first_row, items.end_row
    return publish_segment(scratch, checkpoints.directory, builder.name, fingerprint, *rows), cost


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


def _remove_others(directory: Path, in_use: set[str]) -> None:
    for folder in directory.iterdir():
        if folder.name in in_use or folder.is_symlink() or not folder.is_dir() or not (folder / _MARK).is_file():
            continue
        with suppress(OSError):  # not readable, or held by a reader
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                moved = folder.rename(directory / f"{SCRATCH}{uuid4().hex}")  # after a crash, the next writer clears it
                sync(directory)
                shutil.rmtree(moved, ignore_errors=True)
            finally:
                os.close(descriptor)


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

    The items are streamed once. A directory that is already complete may be read-only. With ``replace``, an index of other
    items, or a damaged one, is overwritten.
    """
    begin = time.perf_counter()
    directory = index_directory(path)
    with explained_writes(directory), ExitStack() as stack:
        try:
            checkpoints = stack.enter_context(writing(directory))
            scratch = new_scratch(directory)
        except OSError as error:
            return _report_complete_index(items, directory, builders, error, begin)
        old = read_manifest(directory) if _is_undamaged(lambda: read_manifest(directory), replace) else None
        corpus = _written_corpus(items, scratch, directory, old, replace)
        is_same = old is not None and old.corpus.fingerprint == corpus.fingerprint
        kept = _kept_records(directory, old, builders, replace) if old is not None and is_same else []
        table = ItemTable(directory / corpus.segments[0].folder / ITEMS_FILE)
        built: list[str] = []
        found: list[str] = []
        for builder in builders:
            fingerprint = fingerprint_of(corpus.fingerprint, builder.identity)
            record = next((record for record in kept if record.fingerprint == fingerprint), None)
            if record is not None and _has_outside_data(builder, directory, record, replace):
                found.append(builder.name)
                continue
            kept = [record for record in kept if record.fingerprint != fingerprint]
            kept.append(_built(checkpoints, builder, fingerprint, table, corpus.segments[0]))
            built.append(builder.name)
        generation = old.generation + 1 if old is not None else 1
        ordered = _in_place(kept, old.retrievers if old is not None else [])
        if old is None or (old.corpus, old.retrievers) != (corpus, ordered):
            manifest = Manifest(generation=generation, version=__version__, corpus=corpus, retrievers=ordered)
            write_manifest(directory, manifest)
        checkpoints.remove()
        remove_unused(directory)
        drop_orphans(directory, builders)
    fingerprints = frozenset(record.fingerprint for record in kept[len(kept) - len(built) :])
    reused, seconds = (checkpoints.resumed, checkpoints.shared), time.perf_counter() - begin
    return IndexReport(directory, corpus.n_items, built, found, seconds, fingerprints, *reused)


def _kept_records(directory: Path, old: Manifest, builders: Sequence[Builder], replace: bool) -> list[RetrieverRecord]:
    """The retrievers that stay: undamaged, and not one of a builder's settings whose code or model has changed since.

    Those of a builder take over its settings that concern the search alone.
    """
    configs = {
        fingerprint_of(old.corpus.fingerprint, builder.identity): without_secrets(builder.config)
        for builder in reversed(builders)  # of several with one index, the first
    }
    current = [
        record.model_copy(update={"config": configs.get(record.fingerprint, record.config)})
        for record in old.retrievers
        if record.fingerprint in configs or record.config not in configs.values()
    ]
    return [record for record in current if _is_whole(directory, record.segments, replace)]


def _in_place(records: list[RetrieverRecord], before: list[RetrieverRecord]) -> list[RetrieverRecord]:
    """The records in their order; one that takes the place of an earlier one is where that was, as weights are by order."""

    def place(record: RetrieverRecord) -> int:
        alike = (n for n, each in enumerate(before) if record.fingerprint == each.fingerprint or record.config == each.config)
        return next(alike, len(before))

    return sorted(records, key=place)


def _written_corpus(items: Items, scratch: Path, directory: Path, old: Manifest | None, replace: bool) -> CorpusRecord:
    """Publish the items, unless they are there already."""
    n_items, fingerprint = write_items(checked_items(items), scratch)
    if old is not None and old.corpus.fingerprint == fingerprint and _is_whole(directory, old.corpus.segments[:1], replace):
        shutil.rmtree(scratch)
        return old.corpus
    if old is not None and old.corpus.fingerprint != fingerprint and not replace:
        order = "; their order counts" if n_items == old.corpus.n_items else ""
        updated = ", which were updated since they were indexed (an updated item comes last)" if old.corpus.updated else ""
        raise IndexConflictError(
            f"{directory} holds an index of {old.corpus.n_items:,} other items{updated} (now given: {n_items:,}{order}); "
            "choose another folder, add or delete items, or pass replace=True to overwrite that index"
        )
    segment = publish_segment(scratch, directory, "items", fingerprint, 0, n_items)
    return CorpusRecord(fingerprint=fingerprint, n_items=n_items, segments=[segment])


def _report_complete_index(
    items: Items, directory: Path, builders: Sequence[Builder], refused: OSError, begin: float
) -> IndexReport:
    """Report an unwritable index that is already complete; otherwise raise the error that says why it cannot be written."""
    if refused.errno not in READ_ONLY or (manifest := read_manifest(directory)) is None:
        raise refused
    with TemporaryDirectory(prefix="nlp-retrieval-") as scratch:
        n_items, fingerprint = write_items(checked_items(items), Path(scratch))
    indexed = {record.fingerprint for record in manifest.retrievers}
    wanted = {fingerprint_of(fingerprint, builder.identity) for builder in builders}
    if manifest.corpus.fingerprint != fingerprint or not wanted <= indexed:
        raise refused
    return IndexReport(directory, n_items, [], [builder.name for builder in builders], time.perf_counter() - begin)


def _built(checkpoints: Checkpoints, builder: Builder, fingerprint: str, items: ItemTable, rows: Segment) -> RetrieverRecord:
    def write(folder: Path) -> None:
        builder.build(items, folder)
        builder.require_unchanged()

    segment, cost = write_segment(checkpoints, builder, fingerprint, rows, write)
    identity, config = without_secrets(builder.identity), without_secrets(builder.config)
    return RetrieverRecord(fingerprint=fingerprint, identity=identity, config=config, segments=[segment], cost=cost)


def _is_whole(directory: Path, records: Sequence[FolderRecord], replace: bool) -> bool:
    """Return whether all files have the recorded content."""

    def check() -> None:
        for record in records:
            check_folder(directory, record, contents=True)

    return _is_undamaged(check, replace)


def _has_outside_data(builder: Builder, directory: Path, record: RetrieverRecord, replace: bool) -> bool:
    """Return whether an engine's data outside the directory exists."""
    segments = [SegmentFolder(directory / part.folder, part.first_row, part.end_row) for part in record.segments]
    return _is_undamaged(lambda: builder.require(segments), replace)


def _is_undamaged(check: Callable[[], object], replace: bool) -> bool:
    """Return whether a check passes; damage is an error unless the index is to be replaced."""
    try:
        check()
    except IndexDamagedError:
        if not replace:
            raise
        return False
    return True
