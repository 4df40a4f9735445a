"""Updating an index in place: new items become a segment of their own, deleted ones are marked, and segments are joined.

What is there is never written to. An update publishes new folders and then a manifest that names them beside the old ones, so
that a reader sees all of it or none, and a crash leaves the state before or after. An item that is updated is deleted and
added, so it moves to the end.

Segments are joined when those behind one hold half as many rows as it does, so that an index of n items has about log n
segments and an item is copied about log n times; and all of them when a quarter of the rows belong to deleted items.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nlp_retrieval._version import __version__
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.deleted import write_deleted
from nlp_retrieval.core.durable import explained_writes
from nlp_retrieval.core.generation import check_folder, fingerprint_of, open_items, segment_folders
from nlp_retrieval.core.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.manifest import (
    MANIFEST_FILE,
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
from nlp_retrieval.core.publishing import guarded, new_scratch, publish, sweep, writing
from nlp_retrieval.core.segments import Builder, SegmentFolder
from nlp_retrieval.errors import IndexMissingError, ItemError

Resolve = Callable[[Manifest], Sequence[Builder]]
"""Gives what builds each retriever of a manifest, in its order."""

_JOINED_AT = 0.5
_DELETED_AT = 0.25


@dataclass(frozen=True)
class UpdateReport:
    """What an update did.

    Args:
        path: the index directory.
        n_items: how many items can be found now.
        added: how many came that were not there.
        replaced: how many took the place of an item of the same id.
        deleted: how many were deleted.
        segments: how many segments there are now; 1 where all were joined.
        seconds: all of it.
    """

    path: Path
    n_items: int
    added: int
    replaced: int
    deleted: int
    segments: int
    seconds: float


class _Joining(NamedTuple):
    """Items that join an index: where they were written, their fingerprint and their ids."""

    scratch: Path
    fingerprint: str
    ids: list[str]


def add_items(
    path: str | Path, items: Iterable[SearchableItem], resolve: Resolve, *, replace: bool, auto_compact: bool = True
) -> UpdateReport:
    """Add items to an index.

    Args:
        path: the index directory.
        items: streamed once.
        resolve: what builds the retrievers of the index.
        replace: an item whose id is there takes that item's place; else that is an error.
        auto_compact: join segments where there are many.

    Raises:
        IndexMissingError: there is no index.
        ItemError: an id is there already and ``replace`` is False, or the items cannot be indexed.
        IndexLockedError: another process is writing to it.
        IndexWriteError: it cannot be written.
    """
    begin = time.perf_counter()
    with _updating(path, resolve, auto_compact) as update:
        source = guarded(items)
        first = next(source, None)
        if first is not None:
            scratch = new_scratch(update.directory)
            _, fingerprint = write_items(chain([first], source), scratch)
            ids = ItemTable(scratch / ITEMS_FILE).ids()
            gone = update.items.find(ids)
            if not replace and (gone >= 0).any():
                taken = ids[int(np.flatnonzero(gone >= 0)[0])]
                raise ItemError(f"item {taken!r} is in {update.directory} already; update it, or leave it out")
            update.change(np.sort(gone[gone >= 0]), _Joining(scratch, fingerprint, ids))
            update.replaced = int((gone >= 0).sum())
            update.added = len(ids) - update.replaced
    return _reported(update, begin)


def delete_items(path: str | Path, item_ids: Iterable[str], resolve: Resolve, *, auto_compact: bool = True) -> UpdateReport:
    """Delete items from an index.

    Args:
        path: the index directory.
        item_ids: of the items; an id that stands twice counts once.
        resolve: what builds the retrievers of the index.
        auto_compact: join segments where many rows belong to deleted items.

    Raises:
        IndexMissingError: there is no index.
        ItemError: there is no item of an id, or no item would be left; nothing is deleted then.
        IndexLockedError: another process is writing to it.
        IndexWriteError: it cannot be written.
    """
    begin = time.perf_counter()
    with _updating(path, resolve, auto_compact) as update:
        ids = list(dict.fromkeys(item_ids))
        if wrong := [item_id for item_id in ids if not isinstance(item_id, str)]:
            raise ItemError(f"an item id is a string; found {wrong[0]!r}")
        if ids:
            rows = update.items.find(ids)
            if (rows < 0).any():
                missing = [ids[place] for place in np.flatnonzero(rows < 0).tolist()]
                others = f" and {len(missing) - 1:,} more of those given are not there either" if len(missing) > 1 else ""
                raise ItemError(f"no item of {update.directory} has the id {missing[0]!r}{others}; nothing was deleted")
            update.change(np.sort(rows), None)
            update.deleted = len(ids)
    return _reported(update, begin)


def compact_index(path: str | Path, resolve: Resolve) -> UpdateReport:
    """Join all segments of an index and drop what was deleted; an index of one segment without deleted items stays as it is.

    Args:
        path: the index directory.
        resolve: what builds the retrievers of the index.

    Raises:
        IndexMissingError: there is no index.
        IndexLockedError: another process is writing to it.
        IndexWriteError: it cannot be written.
    """
    begin = time.perf_counter()
    with _updating(path, resolve, auto_compact=False) as update:
        if update.manifest.corpus.updated:
            update.join(0)
    return _reported(update, begin)


class _Update:
    """One writer's work on an index: each change is published before the next begins."""

    def __init__(self, directory: Path, manifest: Manifest, builders: Sequence[Builder]) -> None:
        self.directory = directory
        self.manifest = manifest
        self.items = open_items(directory, manifest.corpus)
        self.added = self.replaced = self.deleted = 0
        self._builders = builders

    def change(self, gone: Rows, joining: _Joining | None) -> None:
        """Publish the index with some rows deleted and other items added behind it.

        Args:
            gone: rows, ascending, whose items are there.
            joining: what comes, or None.
        """
        corpus = self.manifest.corpus
        deleted = np.union1d(self._deleted(), gone)
        n_new = len(joining.ids) if joining else 0
        if corpus.n_items + n_new == len(gone):
            raise ItemError(f"no item would be left in {self.directory}; remove the folder instead, or keep one")
        fingerprint = _fingerprint(corpus.fingerprint, joining.fingerprint if joining else "", gone.tobytes())
        segments = list(corpus.segments)
        if joining:
            folder = publish(joining.scratch, self.directory, "items", fingerprint)
            segments.append(Segment(**dict(folder), first_row=corpus.n_rows, end_row=corpus.n_rows + n_new))
        record = self._written(deleted, fingerprint) if len(gone) else corpus.deleted
        changed = CorpusRecord(
            fingerprint=fingerprint, n_items=corpus.n_items + n_new - len(gone), segments=segments, deleted=record
        )
        items = open_items(self.directory, changed)
        retrievers = []
        for builder, old in zip(self._builders, self.manifest.retrievers, strict=True):
            if joining:
                new_items = ItemTable(self.directory / segments[-1].folder / ITEMS_FILE)
                before = self._folders(old.segments, items)

                def extend(scratch: Path, builder: Builder = builder, before: list[SegmentFolder] = before) -> None:
                    builder.extend(new_items, scratch, before, items)  # noqa: B023 -- called before the next round

                retrievers.append(self._with_segment(builder, old, old.segments, segments[-1], fingerprint, extend))
            else:
                retrievers.append(old.model_copy(update={"fingerprint": fingerprint_of(fingerprint, builder.identity)}))
        self._publish(changed, retrievers, items)

    def join(self, first: int) -> None:
        """Publish the index with one segment in place of those from a number on, without what was deleted in them."""
        corpus = self.manifest.corpus
        kept, tail = corpus.segments[:first], corpus.segments[first:]
        begin = tail[0].first_row
        n_live = corpus.n_rows - begin - int((self._deleted() >= begin).sum())
        deleted = self._deleted()[self._deleted() < begin]
        segments, fingerprint, items_file = list(kept), _fingerprint(corpus.fingerprint, f"joined from {first}"), None
        if n_live:
            scratch = new_scratch(self.directory)
            _, found = write_items(self.items.stream_live(begin), scratch)
            fingerprint = fingerprint if kept else found  # all joined, it is the index of these items
            folder = publish(scratch, self.directory, "items", fingerprint)
            segments.append(Segment(**dict(folder), first_row=begin, end_row=begin + n_live))
            items_file = self.directory / folder.folder / ITEMS_FILE
        record = self._written(deleted, fingerprint) if len(deleted) else None
        changed = CorpusRecord(fingerprint=fingerprint, n_items=corpus.n_items, segments=segments, deleted=record)
        retrievers = []
        for builder, old in zip(self._builders, self.manifest.retrievers, strict=True):
            if items_file is not None:
                new_items = ItemTable(items_file)
                joined = self._folders(old.segments[first:], self.items)

                def join(scratch: Path, builder: Builder = builder, joined: list[SegmentFolder] = joined) -> None:
                    builder.join(joined, new_items, scratch)  # noqa: B023 -- called before the next round

                retrievers.append(self._with_segment(builder, old, old.segments[:first], segments[-1], fingerprint, join))
            else:
                shorter = {"fingerprint": fingerprint_of(fingerprint, builder.identity), "segments": old.segments[:first]}
                retrievers.append(old.model_copy(update=shorter))
        self._publish(changed, retrievers, open_items(self.directory, changed))

    def join_where_due(self) -> None:
        """Join segments where there are many, or where many items were deleted."""
        corpus = self.manifest.corpus
        if corpus.n_rows - corpus.n_items > _DELETED_AT * corpus.n_rows:
            self.join(0)
            return
        sizes = [segment.end_row - segment.first_row for segment in corpus.segments]
        for place, size in enumerate(sizes[:-1]):
            if sum(sizes[place + 1 :]) >= _JOINED_AT * size:
                self.join(place)
                return

    def _deleted(self) -> Rows:
        live = self.items.live
        return np.zeros(0, np.int64) if live is None else np.flatnonzero(~live)

    def _written(self, deleted: Rows, fingerprint: str) -> FolderRecord:
        scratch = new_scratch(self.directory)
        write_deleted(scratch, deleted)
        return publish(scratch, self.directory, "deleted", fingerprint)

    def _folders(self, segments: Sequence[Segment], items: ItemTable) -> list[SegmentFolder]:
        for segment in segments:
            check_folder(self.directory, segment)
        return segment_folders(self.directory, segments, items)

    def _with_segment(
        self,
        builder: Builder,
        old: RetrieverRecord,
        kept: Sequence[Segment],
        rows: Segment,
        corpus: str,
        write: Callable[[Path], None],
    ) -> RetrieverRecord:
        """The record of a retriever with one more segment, which is written and published."""
        fingerprint = fingerprint_of(corpus, builder.identity)
        scratch = new_scratch(self.directory)
        begin = time.perf_counter()
        with PeakMemory() as peak:
            write(scratch)
        seconds = old.cost.seconds + time.perf_counter() - begin
        folder = publish(scratch, self.directory, builder.name, fingerprint)
        segment = Segment(**dict(folder), first_row=rows.first_row, end_row=rows.end_row)
        cost = BuildCost(seconds=round(seconds, 3), peak_bytes=max(old.cost.peak_bytes, peak.bytes))
        return old.model_copy(update={"fingerprint": fingerprint, "segments": [*kept, segment], "cost": cost})

    def _publish(self, corpus: CorpusRecord, retrievers: list[RetrieverRecord], items: ItemTable) -> None:
        generation = self.manifest.generation + 1
        manifest = Manifest(generation=generation, version=__version__, corpus=corpus, retrievers=retrievers)
        write_manifest(self.directory, manifest)
        self.manifest, self.items = manifest, items


@contextmanager
def _updating(path: str | Path, resolve: Resolve, auto_compact: bool) -> Iterator[_Update]:
    """Be the only writer to an index that is there; what an update that failed has published is removed again."""
    directory = Path(path)
    with explained_writes(directory):
        _existing(directory)
        with writing(directory):
            manifest = _existing(directory)
            update = _Update(directory, manifest, resolve(manifest))
            try:
                yield update
                if auto_compact:
                    update.join_where_due()
            finally:
                sweep(directory, update.manifest)


def _existing(directory: Path) -> Manifest:
    manifest = read_manifest(directory)
    if manifest is None:
        raise IndexMissingError(f"there is no index at {directory} (no {MANIFEST_FILE}); index a corpus there first")
    return manifest


def _reported(update: _Update, begin: float) -> UpdateReport:
    corpus = update.manifest.corpus
    return UpdateReport(
        path=update.directory,
        n_items=corpus.n_items,
        added=update.added,
        replaced=update.replaced,
        deleted=update.deleted,
        segments=len(corpus.segments),
        seconds=time.perf_counter() - begin,
    )


def _fingerprint(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()
