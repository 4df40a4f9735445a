"""Updating an index in place: new items become a separate segment, deleted ones are marked, and segments are joined.

Existing files are never written to. An updated item is deleted and added, so it moves to the end. Segments are joined when the
later ones hold half as many rows as an earlier one, so that an index of n items has about log n segments and an item is copied
about log n times. All are joined when a quarter of the rows belong to deleted items.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import digest_of_key
from nlp_retrieval.core.files.frames import Items, items_of
from nlp_retrieval.core.index.build import Builder, IndexWriter, writing
from nlp_retrieval.core.index.generation import (
    DELETED_FILE,
    CorpusRecord,
    Segment,
    check_folder,
    checked_segments,
    fingerprint_of,
    index_directory,
    open_items,
    publish_manifest,
    require_manifest,
)
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.errors import IndexConflictError, ItemError, RetrievalWarning

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
        corpus, deleted = self.manifest.corpus, np.union1d(self._deleted(), gone)
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
        begin, deleted = tail[0].first_row, self._deleted()
        n_live = corpus.n_rows - begin - int((deleted >= begin).sum())
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
        if corpus.n_rows - corpus.n_items > _DELETED_AT * corpus.n_rows:
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

    def _deleted(self) -> Rows:
        live = self.items.live
        return np.zeros(0, np.int64) if live is None else np.flatnonzero(~live)

    def _publish(self, fingerprint: str, segments: list[Segment], deleted: Rows, n_kept: int, *, joined: bool) -> None:
        """Publish the index of these items: each retriever keeps ``n_kept`` segments, and writes one more if the items do."""
        record = self.manifest.corpus.deleted if np.array_equal(deleted, self._deleted()) else None
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
    path: str | Path, items: Items, builders: Sequence[Builder], *, replace: bool, auto_compact: bool = True
) -> UpdateReport:
    """Add items to an index; with ``replace``, an item may take the place of one with the same id."""
    with writing(index_directory(path)) as writer:
        scratch, change, source = writer.new_scratch(), IndexChange(writer, builders), items_of(items)
        n_new = n_there = 0
        if first := list(islice(source, 1)):
            n_new, fingerprint = write_items(chain(first, source), scratch)
            ids = ItemTable(scratch / ITEMS_FILE).ids()
            there = change.items.find(ids)
            n_there = int((there >= 0).sum())
            if n_there and not replace:
                existing_id = ids[int(np.flatnonzero(there >= 0)[0])]
                raise ItemError(f"item {existing_id!r} is in {writer.directory} already; update it, or leave it out")
            end = change.manifest.corpus.n_rows
            segment = writer.publish_segment(scratch, "items", fingerprint, end, end + n_new)
            change.change(np.sort(there[there >= 0]), segment, fingerprint)
        return change.finish(auto_compact, added=n_new - n_there, replaced=n_there)


def delete_items(
    path: str | Path, item_ids: Iterable[str], builders: Sequence[Builder], *, auto_compact: bool = True
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
