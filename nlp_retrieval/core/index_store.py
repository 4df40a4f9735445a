"""Writing an index directory: one writer builds aside and publishes.

A build writes into a scratch folder, syncs it, renames it, and last replaces ``manifest.json``. Killed at any moment,
the directory holds the old state or the new one; scratch left by a dead build is cleared by the next. Folders are named
after the fingerprint of what is in them and never change once a manifest names them; an old one is removed only when no
reader holds it (:mod:`nlp_retrieval.core.generation`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from nlp_retrieval._version import __version__
from nlp_retrieval.core.checksums import record_folder
from nlp_retrieval.core.component import Config
from nlp_retrieval.core.durable import explained_writes, publish_folder
from nlp_retrieval.core.generation import check_folder, fingerprint_of
from nlp_retrieval.core.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.lock_owner import owner_of, owning
from nlp_retrieval.core.manifest import (
    BuildCost,
    CorpusRecord,
    FolderRecord,
    Manifest,
    RetrieverRecord,
    Segment,
    read_manifest,
    write_manifest,
)
from nlp_retrieval.core.measure import PeakMemory
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    IndexConflictError,
    IndexDamagedError,
    IndexLockedError,
    SourceError,
)

_SCRATCH = ".scratch-"
_LOCK_FILE = ".lock"
_MARK = ".nlp_retrieval"
"""An empty file in every folder that was published here: only such a folder is ever removed."""


@dataclass(frozen=True)
class Builder:
    """A retriever, as the store sees it.

    Args:
        name: begins the names of its folders.
        identity: what decides the content of its index, apart from the items.
        config: all of its parameters.
        build: writes the index of these items into an empty folder.
    """

    name: str
    identity: Config
    config: Config
    build: Callable[[ItemTable, Path], None]


@dataclass(frozen=True)
class IndexReport:
    """What an indexing run did.

    Args:
        path: the index directory.
        n_items: size of the corpus.
        built: names of what was built.
        fingerprints: of what was built.
        found: names of what was there already and was left as it is.
        seconds: all of it.
    """

    path: Path
    n_items: int
    built: list[str]
    found: list[str]
    seconds: float
    fingerprints: frozenset[str] = frozenset()


def build_index(
    items: Iterable[SearchableItem], path: str | Path, builders: Sequence[Builder], *, replace: bool = False
) -> IndexReport:
    """Bring an index directory to hold these items and these retrievers; what is there already is not built again.

    Args:
        items: a corpus, streamed once.
        path: the index directory; made where it does not exist.
        builders: the retrievers; equal ones are built once.
        replace: give up an index of other items that is there.

    Raises:
        IndexConflictError: the directory holds other items, and ``replace`` is False.
        IndexLockedError: another process is writing to it.
        IndexWriteError: it cannot be written.
        ItemError: the items cannot be indexed.
    """
    begin = time.perf_counter()
    directory = Path(path)
    with explained_writes(directory), _writing(directory):
        old = _readable_manifest(directory, replace)
        scratch = _scratch(directory)
        n_items, fingerprint = write_items(_guarded(items), scratch)
        same = old is not None and old.corpus.fingerprint == fingerprint
        if old is not None and not same and not replace:
            raise IndexConflictError(
                f"{directory} holds an index of {old.corpus.n_items:,} other items (now given: {n_items:,}); choose "
                "another folder, or pass replace=True to give that index up"
            )
        if old is not None and same and _usable(directory, old.corpus, replace):
            corpus = old.corpus
            shutil.rmtree(scratch)
        else:
            folder = _publish(scratch, directory, "items", fingerprint)
            corpus = CorpusRecord(**dict(folder), fingerprint=fingerprint, n_items=n_items)
        kept = old.retrievers if old is not None and same else []
        kept = [record for record in kept if all(_usable(directory, s, replace) for s in record.segments)]
        built: list[str] = []
        found: list[str] = []
        table = ItemTable(directory / corpus.folder / ITEMS_FILE)
        for builder in builders:
            wanted = fingerprint_of(corpus.fingerprint, builder.identity)
            if any(record.fingerprint == wanted for record in kept):
                found.append(builder.name)
                continue
            kept.append(_build_one(builder, wanted, table, directory))
            built.append(builder.name)
        if old is None or old.corpus != corpus or old.retrievers != kept:
            generation = old.generation + 1 if old is not None else 1
            manifest = Manifest(generation=generation, version=__version__, corpus=corpus, retrievers=kept)
            write_manifest(directory, manifest)
        else:
            manifest = old
        _sweep(directory, set(manifest.folders))
    fingerprints = frozenset(record.fingerprint for record in kept[len(kept) - len(built) :])
    return IndexReport(directory, n_items, built, found, time.perf_counter() - begin, fingerprints)


def _build_one(builder: Builder, fingerprint: str, items: ItemTable, directory: Path) -> RetrieverRecord:
    scratch = _scratch(directory)
    begin = time.perf_counter()
    with PeakMemory() as peak:
        builder.build(items, scratch)
    seconds = time.perf_counter() - begin
    folder = _publish(scratch, directory, builder.name, fingerprint)
    segment = Segment(**dict(folder), first_row=0, end_row=len(items))
    cost = BuildCost(seconds=round(seconds, 3), peak_bytes=peak.bytes)
    return RetrieverRecord(
        fingerprint=fingerprint,
        identity=without_secrets(builder.identity),
        config=without_secrets(builder.config),
        segments=[segment],
        cost=cost,
    )


@contextmanager
def _writing(directory: Path) -> Iterator[None]:
    """Be the only writer, and leave no scratch behind."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = FileLock(directory / _LOCK_FILE, timeout=0)
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
        lock.release()


def _readable_manifest(directory: Path, replace: bool) -> Manifest | None:
    """The manifest; a damaged one counts as none where it is to be replaced anyway."""
    try:
        return read_manifest(directory)
    except IndexDamagedError:
        if replace:
            return None
        raise


def _scratch(directory: Path) -> Path:
    scratch = directory / f"{_SCRATCH}{uuid4().hex}"
    scratch.mkdir()
    return scratch


def _clear_scratch(directory: Path) -> None:
    for left in directory.glob(f"{_SCRATCH}*"):
        shutil.rmtree(left, ignore_errors=True)


def _guarded(items: Iterable[SearchableItem]) -> Iterator[SearchableItem]:
    """Keep what goes wrong while reading a source apart from what goes wrong while writing an index."""
    source = iter(items)
    while True:
        try:
            item = next(source)
        except StopIteration:
            return
        except OSError as error:
            raise SourceError(f"the items cannot be read: {error}") from error
        yield item


def _usable(directory: Path, record: FolderRecord, replace: bool) -> bool:
    """Whether the files of a record are whole; damage is an error unless they are to be replaced anyway."""
    try:
        check_folder(directory, record)
    except IndexDamagedError:
        if replace:
            return False
        raise
    return True


def _publish(scratch: Path, directory: Path, name: str, fingerprint: str) -> FolderRecord:
    """Publish a scratch folder under the name of its content; a name that is taken (a reader may hold it) gets a suffix."""
    files = record_folder(scratch)
    (scratch / _MARK).touch()
    folder = f"{name}-{fingerprint[:16]}"
    if (directory / folder).exists():
        folder += f"-{uuid4().hex[:6]}"
    publish_folder(scratch, directory / folder)
    return FolderRecord(folder=folder, files=files)


def _sweep(directory: Path, in_use: set[str]) -> None:
    """Remove folders of ours that no manifest names and no reader holds; a later build comes back for those still held."""
    for folder in directory.iterdir():
        if folder.name in in_use or folder.is_symlink() or not folder.is_dir() or not (folder / _MARK).is_file():
            continue
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
        finally:
            os.close(descriptor)
