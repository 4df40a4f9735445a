"""Changes of an index, one at a time: new folders, and then a manifest that names them beside the old ones.

Existing files are never written to.

Segments are joined when those after one hold half as many rows as it does, so that an index of n items has about log n
segments and an item is copied about log n times; and all of them when a quarter of the rows belong to deleted items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nlp_retrieval._version import __version__
from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.index.checkpoint import keep_checkpoints
from nlp_retrieval.core.index.deleted import write_deleted
from nlp_retrieval.core.index.generation import checked_segments, fingerprint_of, open_items
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.index.manifest import (
    BuildCost,
    CorpusRecord,
    FolderRecord,
    Manifest,
    RetrieverRecord,
    Segment,
    write_manifest,
)
from nlp_retrieval.core.index.publishing import new_scratch, publish, write_segment
from nlp_retrieval.core.index.segments import Builder
from nlp_retrieval.errors import ItemError

_JOINED_AT = 0.5
_DELETED_AT = 0.25

_Write = Callable[[Builder, RetrieverRecord, ItemTable, Path], None]
"""Writes the last segment of a retriever into an empty folder."""


class NewItems(NamedTuple):
    """Items that join an index: where they were written, their fingerprint and their ids."""

    scratch: Path
    fingerprint: str
    ids: list[str]


class IndexChange:
    """One writer's work on an index: each change is published before the next begins."""

    def __init__(self, directory: Path, manifest: Manifest, builders: Sequence[Builder]) -> None:
        self.directory = directory
        self.manifest = manifest
        self.items = open_items(directory, manifest.corpus)
        self.added = self.replaced = self.deleted = 0
        self.builders = builders

    def change(self, gone: Rows, joining: NewItems | None) -> None:
        """Publish the index with some rows deleted and new items added at the end.

        Args:
            gone: rows to delete, ascending, not deleted yet.
            joining: the new items, or None.
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

        def written(builder: Builder, old: RetrieverRecord, new_items: ItemTable, scratch: Path) -> None:
            builder.extend(new_items, scratch, checked_segments(self.directory, old.segments, items), items)
            builder.require_unchanged()

        self._publish(changed, len(corpus.segments), written, items)

    def join(self, first: int) -> None:
        """Publish the index with one segment in place of those from ``first`` on, without their deleted items."""
        corpus = self.manifest.corpus
        kept, tail = corpus.segments[:first], corpus.segments[first:]
        begin = tail[0].first_row
        deleted = self._deleted()
        n_live = corpus.n_rows - begin - int((deleted >= begin).sum())
        deleted = deleted[deleted < begin]
        segments, fingerprint = list(kept), _fingerprint(corpus.fingerprint, f"joined from {first}")
        if n_live:
            scratch = new_scratch(self.directory)
            _, of_items = write_items(self.items.stream_live(begin), scratch)
            fingerprint = fingerprint if kept else of_items  # with all joined, the same as if indexed at once
            folder = publish(scratch, self.directory, "items", fingerprint)
            segments.append(Segment(**dict(folder), first_row=begin, end_row=begin + n_live))
        record = self._written(deleted, fingerprint) if len(deleted) else None
        changed = CorpusRecord(fingerprint=fingerprint, n_items=corpus.n_items, segments=segments, deleted=record)

        def written(builder: Builder, old: RetrieverRecord, new_items: ItemTable, scratch: Path) -> None:
            builder.join(checked_segments(self.directory, old.segments[first:], self.items), new_items, scratch)

        self._publish(changed, first, written, open_items(self.directory, changed))

    def join_where_due(self) -> None:
        """Join segments if there are many, or if many items were deleted."""
        corpus = self.manifest.corpus
        if corpus.n_rows - corpus.n_items > _DELETED_AT * corpus.n_rows:
            self.join(0)
            return
        sizes = [segment.end_row - segment.first_row for segment in corpus.segments]
        for number, size in enumerate(sizes[:-1]):
            if sum(sizes[number + 1 :]) >= _JOINED_AT * size:
                self.join(number)
                return

    def _deleted(self) -> Rows:
        live = self.items.live
        return np.zeros(0, np.int64) if live is None else np.flatnonzero(~live)

    def _written(self, deleted: Rows, fingerprint: str) -> FolderRecord:
        scratch = new_scratch(self.directory)
        write_deleted(scratch, deleted)
        return publish(scratch, self.directory, "deleted", fingerprint)

    def _publish(self, corpus: CorpusRecord, n_kept: int, write: _Write, items: ItemTable) -> None:
        """Publish the index of these items.

        Args:
            corpus: record of the items.
            n_kept: how many of their segments the retrievers have already; there may be one more.
            write: writes that one for a retriever.
            items: the opened items.
        """
        new = [(rows, ItemTable(self.directory / rows.folder / ITEMS_FILE)) for rows in corpus.segments[n_kept:]]
        retrievers = []
        keep_checkpoints(self.directory, corpus.fingerprint)
        for builder, old in zip(self.builders, self.manifest.retrievers, strict=True):
            fingerprint, segments, cost = fingerprint_of(corpus.fingerprint, builder.identity), old.segments[:n_kept], old.cost
            for rows, new_items in new:
                writes = partial(write, builder, old, new_items)
                written_segment = write_segment(self.directory, builder.name, fingerprint, corpus.fingerprint, rows, writes)
                segments = [*segments, written_segment.segment]
                seconds = round(cost.seconds + written_segment.seconds, 3)
                cost = BuildCost(seconds=seconds, peak_bytes=max(cost.peak_bytes, written_segment.peak_bytes))
            retrievers.append(old.model_copy(update={"fingerprint": fingerprint, "segments": segments, "cost": cost}))
        generation = self.manifest.generation + 1
        manifest = Manifest(generation=generation, version=__version__, corpus=corpus, retrievers=retrievers)
        write_manifest(self.directory, manifest)
        self.manifest, self.items = manifest, items


def _fingerprint(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode() if isinstance(part, str) else part
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()
