"""Writing an index directory: building it, where existing parts are kept, and updating it in place.

A crash leaves the old state or the new one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import DTypeLike, NDArray

from nlp_retrieval._version import __version__
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import Component, Config, digest_of_key
from nlp_retrieval.core.context import changed_context, search_context
from nlp_retrieval.core.files.atomic import clear_asides, explained_writes, make_folder, publish_folder, sync, write_atomically
from nlp_retrieval.core.files.cache import read_own
from nlp_retrieval.core.files.frames import Items, items_of
from nlp_retrieval.core.files.opening import sha256_of
from nlp_retrieval.core.index.generation import (
    DELETED_FILE,
    MANIFEST_FILE,
    CorpusRecord,
    FileRecord,
    FolderRecord,
    RetrieverRecord,
    Segment,
    SegmentFolder,
    check_folder,
    checked_segments,
    fingerprint_of,
    index_directory,
    manifest_state,
    open_items,
    publish_manifest,
    read_manifest,
    require_manifest,
)
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.processes import use_one_thread_after_fork
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import (
    IndexConflictError,
    IndexDamagedError,
    IndexLockedError,
    IndexStateError,
    ItemError,
    RetrievalWarning,
    SourceError,
)

SCRATCH = ".scratch-"
"""Prefix of folders that are not published yet."""

_LOCK_FILE = ".lock"
_MARK = ".nlp_retrieval"
"""An empty marker file in every published folder; only folders that have it are ever removed."""


class Builder(Component, ABC):
    """A retriever, as far as an index directory needs it."""

    @abstractmethod
    def build(self, items: ItemTable, folder: Path) -> None:
        """Write this engine's index of ``items`` into an empty folder, flat files only; it is published when this returns."""

    @abstractmethod
    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        """Write the index of items added to these segments, rows from 0; ``everything`` are the items of all and these."""

    @property
    def joins_by_extending(self) -> bool:
        """Return whether a segment depends on those before it: then later ones are joined as if their items were added."""
        return False

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        """Write one index of the items of consecutive segments that are not deleted; by default it is built again."""
        del segments
        self.build(items, folder)

    def settle(self, directory: Path) -> None:
        """Remove external data that no folder of an index names: see docs/STORES.md."""

    def require_segments(self, segments: Sequence[SegmentFolder]) -> None:
        """Raise an IndexDamagedError if external data of segments is missing."""


# Checkpoints: an encoded batch is a file beside the folders of an index, named by all that decides its vectors. The next build
# finds it if one was killed, and so does the next retriever with the same encoder. The build that publishes removes all.

PREFIX = ".encoding-"
_DIGEST = hashlib.sha256().digest_size


class EncodedBatch(NamedTuple):
    """The vectors of a batch of texts in order, how many each text has, and how many texts the encoder cut."""

    rows: NDArray[Any]
    counts: NDArray[np.uint32]
    n_cut: int = 0


EncodeAll = Callable[[Iterator[list[str]]], Iterator[tuple[list[str], EncodedBatch]]]
"""Encodes batch by batch, here or elsewhere; yields the results in the order of the batches, with their texts."""


def resumed_batches(
    settings: Config, batches: Iterator[list[str]], encode: EncodeAll, dtype: DTypeLike
) -> Iterator[EncodedBatch]:
    """Yield the result of ``encode`` for each batch, reused where it is stored as ``dtype``; ``settings`` decides the rest."""
    writer: IndexWriter | None = search_context().writer
    if writer is None:
        yield from (batch for _, batch in encode(batches))
        return

    def path_of(texts: list[str]) -> Path:
        decided = digest_of_key([__version__, "npz", settings, np.dtype(dtype).str, texts])
        return writer.directory / f"{PREFIX}{decided.hex()[:32]}"

    known = ((texts, writer.find_batch(path_of(texts))) for texts in batches)
    for is_stored, group in groupby(known, lambda pair: pair[1] is not None):
        if is_stored:
            yield from (stored for _, stored in group if stored is not None)
            continue
        begin = time.perf_counter()
        for texts, batch in encode(texts for texts, _ in group):
            writer.keep_batch(path_of(texts), batch, dtype, time.perf_counter() - begin)
            yield batch
            begin = time.perf_counter()


class IndexWriter:
    """The only writer of an index directory: its scratch folders, and what it publishes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.builders: Sequence[Builder] = ()  # whose data elsewhere is settled at the end
        self.there = {file.name for file in directory.iterdir()}  # without a manifest, nobody knows whose it is
        self.checkpoints: dict[Path, int] = {}  # how many texts each has
        self.resumed, self.saved = 0, 0.0  # how many texts were found in them, and the seconds that these had taken
        self._keeps = True

    def new_scratch(self) -> Path:
        """Return a new scratch folder, empty."""
        scratch = self.directory / f"{SCRATCH}{uuid4().hex}"
        scratch.mkdir()
        return scratch

    def clear_scratch(self) -> None:
        """Remove what is not published, also that of killed writers."""
        for leftover in self.directory.glob(f"{SCRATCH}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        clear_asides(self.directory / MANIFEST_FILE, seconds=0)  # this is the only writer, so none belongs to another

    def publish(self, scratch: Path, name: str, fingerprint: str) -> FolderRecord:
        """Publish a scratch folder under a name with its fingerprint; a name in use (by a reader, say) gets a suffix."""
        files = {file.name: FileRecord(bytes=file.stat().st_size, sha256=sha256_of(file)) for file in sorted(scratch.iterdir())}
        (scratch / _MARK).touch()
        folder = f"{name}-{fingerprint[:16]}"
        if (self.directory / folder).exists():
            folder += f"-{uuid4().hex[:6]}"
        publish_folder(scratch, self.directory / folder)
        return FolderRecord(folder=folder, files=files)

    def publish_segment(self, scratch: Path, name: str, fingerprint: str, first_row: int, end_row: int) -> Segment:
        """Publish a scratch folder that holds these rows."""
        return Segment(**dict(self.publish(scratch, name, fingerprint)), first_row=first_row, end_row=end_row)

    def write_segment(
        self, builder: Builder, identity: Config, corpus: CorpusRecord, rows: Segment, write: Callable[[Path], None]
    ) -> tuple[Segment, float]:
        """Write and publish a segment of a retriever; return also its seconds, as if nothing had been encoded before."""
        use_one_thread_after_fork()
        scratch, begin, saved = self.new_scratch(), time.perf_counter(), self.saved
        write(scratch)
        seconds = time.perf_counter() - begin + self.saved - saved
        if builder.identity != identity:
            raise SourceError(f"{builder.name}: what it reads changed while the index was written; try again")
        fingerprint = fingerprint_of(corpus.fingerprint, identity)
        segment = self.publish_segment(scratch, builder.name, fingerprint, rows.first_row, rows.end_row)
        return segment, round(seconds, 3)

    def remove_unused(self) -> None:
        """Remove published folders that the manifest does not name and no reader holds, and the engines' data elsewhere."""
        with suppress(OSError, IndexStateError):
            manifest = read_manifest(self.directory)
            in_use = set(manifest.folders) if manifest else self.there
            for folder in self.directory.iterdir():
                if folder.name not in in_use and not folder.is_symlink() and (folder / _MARK).is_file():
                    self._remove(folder)
        for builder in {builder.name: builder for builder in self.builders}.values():
            try:
                builder.settle(self.directory)
            except Exception as error:  # engines may raise anything; what is published works
                warnings.warn(
                    f"data outside {self.directory} that it no longer needs was not removed ({error}); the next write to it "
                    "tries again",
                    RetrievalWarning,
                    stacklevel=2,
                )

    def _remove(self, folder: Path) -> None:
        with suppress(OSError):  # not readable, or held by a reader
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                moved = folder.rename(self.directory / f"{SCRATCH}{uuid4().hex}")  # the next writer clears it after a crash
                sync(self.directory)
                shutil.rmtree(moved, ignore_errors=True)
            finally:
                os.close(descriptor)

    def find_batch(self, path: Path) -> EncodedBatch | None:
        """Return the batch of a checkpoint; None if it is missing or damaged, or anyone else could have written it."""
        try:
            content = read_own(path)
        except OSError:
            return None
        digest, body = content[:_DIGEST], content[_DIGEST:]
        if hashlib.sha256(body).digest() != digest:
            return None
        with np.load(BytesIO(body), allow_pickle=False) as file:
            batch = EncodedBatch(file["rows"], file["counts"], int(file["n_cut"]))
            self.saved += float(file["seconds"])
        if path not in self.checkpoints:  # or another retriever of this run needed it too
            self.resumed += len(batch.counts)
            self.checkpoints[path] = len(batch.counts)
        return batch

    def keep_batch(self, path: Path, batch: EncodedBatch, dtype: DTypeLike, seconds: float) -> None:
        """Write the checkpoint of a batch; if that fails, warn, and keep none from then on."""
        if not self._keeps:
            return
        file = BytesIO()
        np.savez(file, rows=batch.rows.astype(dtype), counts=batch.counts, n_cut=batch.n_cut, seconds=seconds)
        content = file.getvalue()
        try:
            write_atomically(path, hashlib.sha256(content).digest() + content, durable=False)
            self.checkpoints[path] = len(batch.counts)
        except OSError as error:
            self._keeps = False
            self.remove_checkpoints()
            warnings.warn(
                f"{path} cannot be written ({error.strerror}); if this build is interrupted, it will encode everything again",
                RetrievalWarning,
                stacklevel=2,
            )

    def remove_checkpoints(self) -> None:
        """Remove all checkpoints of the directory, and what killed writers left of them."""
        for file in (*self.directory.glob(f"{PREFIX}*"), *self.directory.glob(f".{PREFIX}*")):
            with suppress(OSError):
                file.unlink()


@contextmanager
def writing(directory: Path) -> Iterator[IndexWriter]:
    """Be the only writer, and remove at the end what no manifest names; an interruption says what is left."""
    with explained_writes(directory):
        is_new = not directory.exists()
        make_folder(directory)
        lock = FileLock(directory / _LOCK_FILE, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise IndexLockedError(f"another process is writing to {directory}; wait for it, then try again") from None
        before, writer = manifest_state(directory), IndexWriter(directory)
        try:
            with changed_context(writer=writer):
                writer.clear_scratch()
                yield writer
        except KeyboardInterrupt as error:
            now, kept = manifest_state(directory), sum(writer.checkpoints.values())
            state = f"the index in {directory} is as it was before" if now else f"there is no index in {directory} yet"
            if now != before:
                state = f"the index in {directory} was published before that, and is complete"
            elif kept:
                state += f"; {kept:,} encoded passages are stored there: the same call continues from them"
            error.args = error.args or (state,)
            raise
        finally:
            try:
                writer.clear_scratch()
                writer.remove_unused()
                with suppress(OSError):
                    if [file.name for file in directory.iterdir()] == [_LOCK_FILE]:  # nothing was published
                        (directory / _LOCK_FILE).unlink()
                        if is_new:
                            directory.rmdir()
            finally:
                lock.release()


@dataclass(frozen=True)
class IndexReport:
    """Result of an indexing run: names of the retrievers that were built, and of those that were reused.

    Args:
        fingerprints: fingerprints of the indexes that were built.
        resumed: how many passages an interrupted run had encoded; counted once per encoder.

    Examples:
        >>> report = Searcher([Bm25Retriever()]).index(items, "index")
        >>> report.n_items, report.built
        (3, ['bm25'])
    """

    path: Path
    n_items: int
    built: list[str]
    reused: list[str]
    seconds: float
    fingerprints: frozenset[str] = field(default=frozenset(), repr=False)
    resumed: int = 0


def build_index(items: Items, path: str | Path, builders: Sequence[Builder], *, replace: bool = False) -> IndexReport:
    """Make an index directory hold these items and retrievers; with ``replace``, other items or damaged files give way."""
    begin, directory = time.perf_counter(), index_directory(path)
    identities = [builder.identity for builder in builders]
    accepted = (IndexDamagedError,) if replace else ()

    def is_whole(folders: Sequence[FolderRecord], builder: Builder | None = None) -> bool:
        """Return whether files, and an engine's data elsewhere, are as they were written; else an error, unless accepted."""
        with suppress(*accepted):
            for folder in folders:
                check_folder(directory, folder, contents=True)
            if builder is not None:
                parts = [part for part in folders if isinstance(part, Segment)]
                builder.require_segments([SegmentFolder(directory / p.folder, p.first_row, p.end_row) for p in parts])
            return True
        return False

    with writing(directory) as writer:
        scratch = writer.new_scratch()
        n_items, fingerprint = write_items(items_of(items), scratch)
        if n_items == 0:
            raise ItemError("the corpus is empty: there is no item to index; if a loader reads it, check its path and filters")
        owns = [fingerprint_of(fingerprint, identity) for identity in identities]
        of_builder = dict(zip(owns, builders, strict=True))
        before, corpus = None, None
        retrievers: list[RetrieverRecord] = []
        with suppress(*accepted):
            before = read_manifest(directory)
        if before is not None and before.corpus.fingerprint == fingerprint:
            corpus = before.corpus if is_whole(before.corpus.records) else None
            retrievers = [each for each in before.retrievers if is_whole(each.segments, of_builder.get(each.fingerprint))]
        elif before is not None and not replace:
            raise IndexConflictError(
                f"{directory} holds an index of {before.corpus.n_items:,} other items (now given: {n_items:,}), or in "
                "another order; choose another folder, add or delete items, or index with replace=True to overwrite that index"
            )
        if corpus is None:
            segment = writer.publish_segment(scratch, "items", fingerprint, 0, n_items)
            corpus = CorpusRecord(fingerprint=fingerprint, n_items=n_items, segments=[segment])
        rows, built, reused = corpus.segments[0], dict[str, str](), list[str]()
        table = ItemTable(directory / rows.folder / ITEMS_FILE)
        for builder, identity, own in zip(builders, identities, owns, strict=True):
            config = without_secrets(builder.recorded_config)
            record = next((record for record in retrievers if record.fingerprint == own), None)
            if record is not None:
                reused.append(builder.name)
            else:
                built[own] = builder.name
                segment, took = writer.write_segment(builder, identity, corpus, rows, partial(builder.build, table))
                record = RetrieverRecord(
                    fingerprint=own, identity=without_secrets(identity), config=config, segments=[segment], seconds=took
                )
            # in the place of the same one with other settings of its search, or of one whose code or model has changed since
            same = [n for n, other in enumerate(retrievers) if other.fingerprint == own or other.config == config]
            others = [other for n, other in enumerate(retrievers) if n not in same]
            place = same[0] if same else len(others)
            retrievers = [*others[:place], record.model_copy(update={"config": config}), *others[place:]]
        if before is None or (before.corpus, before.retrievers) != (corpus, retrievers):
            publish_manifest(directory, before, corpus, retrievers)
        writer.remove_checkpoints()
        writer.builders = builders  # a server that a failed build did not reach is not asked again
    seconds = time.perf_counter() - begin
    return IndexReport(directory, n_items, [*built.values()], reused, seconds, frozenset(built), writer.resumed)


# Updating in place: new items become a separate segment, deleted ones are marked; no existing file is written to. An updated
# item moves to the end. Segments are joined when the later ones hold half as many rows as an earlier one, so that there are
# about log n of them, and an item is copied about log n times; all are joined when a quarter of the rows are deleted.

_JOINED_AT = 0.5
_DELETED_AT = 0.25


class IndexChange:
    """One writer's work on an index: each change is published before the next begins."""

    def __init__(self, writer: IndexWriter, builders: Sequence[Builder]) -> None:
        self._begin = time.perf_counter()
        self.writer, self.directory = writer, writer.directory
        self.manifest = require_manifest(self.directory)
        self.identities = [builder.identity for builder in builders]
        if [self.manifest.retriever(identity) for identity in self.identities] != self.manifest.retrievers:
            raise IndexConflictError(f"another process changed the retrievers of {self.directory} just now; try again")
        writer.builders = builders
        self.items = open_items(self.directory, self.manifest.corpus)

    def change(self, gone: Rows, added: Segment | None = None, of_added: str = "") -> None:
        """Publish the index with some rows deleted, ascending and not deleted yet, and a segment of new items appended."""
        corpus, deleted = self.manifest.corpus, np.union1d(self.items.deleted, gone)
        segments = [*corpus.segments, *([] if added is None else [added])]
        if segments[-1].end_row == len(deleted):
            raise ItemError(f"no item would be left in {self.directory}; remove the folder instead, or keep one")
        fingerprint = digest_of_key([corpus.fingerprint, of_added, gone.tobytes().hex()]).hex()
        self._publish(fingerprint, segments, deleted, len(corpus.segments), joined=False)

    def join(self, first: int) -> None:
        """Publish the index with the segments from ``first`` on replaced by one without deleted items."""
        corpus = self.manifest.corpus
        kept, tail = corpus.segments[:first], corpus.segments[first:]
        for segment in tail:  # what is copied gets a new checksum
            check_folder(self.directory, segment, contents=True)
        begin, deleted = tail[0].first_row, self.items.deleted
        n_live = tail[-1].end_row - begin - int((deleted >= begin).sum())
        segments, fingerprint = list(kept), digest_of_key([corpus.fingerprint, f"joined from {first}"]).hex()
        if n_live:
            scratch = self.writer.new_scratch()
            _, of_items = write_items(self.items.stream_live(begin), scratch)
            fingerprint = fingerprint if kept else of_items  # with all joined, the same as if indexed at once
            segments.append(self.writer.publish_segment(scratch, "items", fingerprint, begin, begin + n_live))
        self._publish(fingerprint, segments, deleted[deleted < begin], first, joined=True)

    def finish(self, auto_compact: bool, *, added: int = 0, replaced: int = 0, deleted: int = 0) -> UpdateReport:
        """Join segments if there are many, or if many items were deleted; the change is published, so a failure only warns."""
        corpus = self.manifest.corpus
        sizes = [segment.end_row - segment.first_row for segment in corpus.segments]
        due = [n for n, size in enumerate(sizes[:-1]) if sum(sizes[n + 1 :]) >= _JOINED_AT * size]
        if sum(sizes) - corpus.n_items > _DELETED_AT * sum(sizes):
            due = [0]
        try:
            if due and auto_compact:
                self.join(due[0])
        except Exception as error:  # engines may raise anything
            warnings.warn(
                f"{self.directory} was updated, but its segments could not be joined ({error}); it works as it is, and the "
                "next update, or compact(), tries again",
                RetrievalWarning,
                stacklevel=2,
            )
        self.writer.remove_checkpoints()
        corpus, seconds = self.manifest.corpus, time.perf_counter() - self._begin
        return UpdateReport(self.directory, corpus.n_items, added, replaced, deleted, len(corpus.segments), seconds)

    def _publish(self, fingerprint: str, segments: list[Segment], deleted: Rows, n_kept: int, *, joined: bool) -> None:
        """Publish the index of these items: each retriever keeps ``n_kept`` segments, and writes one more if the items do."""
        record = self.manifest.corpus.deleted if np.array_equal(deleted, self.items.deleted) else None
        if record is None and len(deleted):
            scratch = self.writer.new_scratch()
            np.save(scratch / DELETED_FILE, deleted.astype(np.int64), allow_pickle=False)
            record = self.writer.publish(scratch, "deleted", fingerprint)
        n_items = segments[-1].end_row - len(deleted)
        corpus = CorpusRecord(fingerprint=fingerprint, n_items=n_items, segments=segments, deleted=record)
        items = open_items(self.directory, corpus)
        new = [(rows, ItemTable(self.directory / rows.folder / ITEMS_FILE)) for rows in corpus.segments[n_kept:]]
        retrievers = []
        for builder, identity, old in zip(self.writer.builders, self.identities, self.manifest.retrievers, strict=True):
            own, seconds = old.segments[:n_kept], old.seconds
            for rows, new_items in new:
                if joined and not (builder.joins_by_extending and n_kept):  # which says what cannot be joined
                    parts = checked_segments(self.directory, old.segments[n_kept:], self.items, contents=True)
                    write = partial(builder.join, parts, new_items)
                else:
                    before = checked_segments(self.directory, own, items)
                    write = partial(builder.extend, new_items, segments=before, everything=items)
                segment, more = self.writer.write_segment(builder, identity, corpus, rows, write)
                own, seconds = [*own, segment], round(seconds + more, 3)
            fingerprint = fingerprint_of(corpus.fingerprint, identity)
            retrievers.append(old.model_copy(update={"fingerprint": fingerprint, "segments": own, "seconds": seconds}))
        self.manifest = publish_manifest(self.directory, self.manifest, corpus, retrievers)
        self.items = items


@dataclass(frozen=True)
class UpdateReport:
    """Result of an update: how many items were added, replaced and deleted, and how many items and segments there are now.

    Examples:
        >>> searcher = Searcher([Bm25Retriever()])
        >>> report = searcher.index(items, "index")
        >>> searcher.delete(["fox"]).n_items
        2
    """

    path: Path
    n_items: int
    added: int
    replaced: int
    deleted: int
    segments: int
    seconds: float


def add_items(
    path: str | Path, builders: Sequence[Builder], items: Items, *, replace: bool, auto_compact: bool = True
) -> UpdateReport:
    """Add items to an index; with ``replace``, an item may take the place of one with the same id."""
    with writing(index_directory(path)) as writer:
        scratch, change, n_there = writer.new_scratch(), IndexChange(writer, builders), 0
        n_new, fingerprint = write_items(items_of(items), scratch)
        if n_new:
            ids = ItemTable(scratch / ITEMS_FILE).ids()
            there = change.items.find(ids)
            n_there = int((there >= 0).sum())
            if n_there and not replace:
                existing_id = ids[int(np.flatnonzero(there >= 0)[0])]
                raise ItemError(f"item {existing_id!r} is in {writer.directory} already; update it, or leave it out")
            end = change.manifest.corpus.segments[-1].end_row
            segment = writer.publish_segment(scratch, "items", fingerprint, end, end + n_new)
            change.change(np.sort(there[there >= 0]), segment, fingerprint)
        return change.finish(auto_compact, added=n_new - n_there, replaced=n_there)


def delete_items(
    path: str | Path, builders: Sequence[Builder], item_ids: Iterable[str], *, auto_compact: bool = True
) -> UpdateReport:
    """Delete items from an index; if one does not exist, or none would be left, nothing is deleted."""
    if isinstance(item_ids, str) or not isinstance(item_ids, Iterable):
        raise ItemError(f"item ids come as a list, not as {item_ids!r}")
    ids = list(item_ids)
    if wrong := [item_id for item_id in ids if not isinstance(item_id, str)]:
        raise ItemError(f"an item id is a string; found {wrong[0]!r:.80} ({type(wrong[0]).__name__})")
    ids = list(dict.fromkeys(ids))
    with writing(index_directory(path)) as writer:
        change = IndexChange(writer, builders)
        if ids:
            rows = change.items.find(ids)
            if (rows < 0).any():
                missing = ids[int(np.flatnonzero(rows < 0)[0])]
                raise ItemError(f"no item of {writer.directory} has the id {missing!r}; nothing was deleted")
            change.change(np.sort(rows))
        return change.finish(auto_compact, deleted=len(ids))


def compact_index(path: str | Path, builders: Sequence[Builder]) -> UpdateReport:
    """Join all segments of an index without deleted items; one segment without deleted items stays as it is."""
    with writing(index_directory(path)) as writer:
        change = IndexChange(writer, builders)
        if len(change.manifest.corpus.records) > 1:
            change.join(0)
        return change.finish(auto_compact=False)
