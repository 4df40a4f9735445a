"""Updating an index in place: new items become a separate segment, deleted ones are marked, and segments are joined.

Existing files are never written to. An updated item is deleted and added, so it moves to the end. Segments are joined when the
later ones hold half as many rows as an earlier one, so that an index of n items has about log n segments and an item is copied
about log n times. All are joined when a quarter of the rows belong to deleted items.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.components.registry import numbered_names
from nlp_retrieval.core.files.cache import digest_of_key
from nlp_retrieval.core.files.frames import Items
from nlp_retrieval.core.index.build import Builder, IndexWriter, checked_items, writing
from nlp_retrieval.core.index.generation import (
    DELETED_FILE,
    CorpusRecord,
    FolderRecord,
    Manifest,
    Segment,
    check_folder,
    checked_segments,
    fingerprint_of,
    index_directory,
    open_items,
    require_manifest,
)
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.errors import ConfigurationError, ItemError, RetrievalError, RetrievalWarning, nearest

_JOINED_AT = 0.5
_DELETED_AT = 0.25

Resolve = Callable[[Path, Manifest], Sequence[Builder]]
"""Returns a builder for each retriever in the manifest of a directory, in its order."""


class IndexChange:
    """One writer's work on an index: each change is published before the next begins."""

    def __init__(self, writer: IndexWriter, manifest: Manifest, begin: float) -> None:
        self._begin = begin
        self.writer = writer
        self.identities = [builder.identity for builder in writer.builders]
        self.directory = writer.directory
        self.manifest = manifest
        self.items = open_items(self.directory, manifest.corpus)
        self.added = self.replaced = self.deleted = 0

    def change(self, gone: Rows, added: Segment | None = None, of_added: str = "") -> None:
        """Publish the index with some rows deleted, ascending and not deleted yet, and a segment of new items appended."""
        corpus = self.manifest.corpus
        n_items = corpus.n_items - len(gone) + (0 if added is None else added.end_row - added.first_row)
        if n_items == 0:
            raise ItemError(f"no item would be left in {self.directory}; remove the folder instead, or keep one")
        fingerprint = _fingerprint(corpus.fingerprint, of_added, gone.tobytes().hex())
        segments = [*corpus.segments, *([] if added is None else [added])]
        deleted = self._written(np.union1d(self._deleted(), gone), fingerprint) if len(gone) else corpus.deleted
        changed = CorpusRecord(fingerprint=fingerprint, n_items=n_items, segments=segments, deleted=deleted)
        self._publish(changed, len(corpus.segments), joined=False)

    def join(self, first: int) -> None:
        """Publish the index with the segments from ``first`` on replaced by one without deleted items."""
        corpus = self.manifest.corpus
        kept, tail = corpus.segments[:first], corpus.segments[first:]
        for segment in tail:  # what is copied gets a new checksum
            check_folder(self.directory, segment, contents=True)
        begin, deleted = tail[0].first_row, self._deleted()
        n_live = corpus.n_rows - begin - int((deleted >= begin).sum())
        deleted = deleted[deleted < begin]
        segments, fingerprint = list(kept), _fingerprint(corpus.fingerprint, f"joined from {first}")
        if n_live:
            scratch = self.writer.new_scratch()
            _, of_items = write_items(self.items.stream_live(begin), scratch)
            fingerprint = fingerprint if kept else of_items  # with all joined, the same as if indexed at once
            segments.append(self.writer.publish_segment(scratch, "items", fingerprint, begin, begin + n_live))
        record = self._written(deleted, fingerprint) if len(deleted) else None
        changed = CorpusRecord(fingerprint=fingerprint, n_items=corpus.n_items, segments=segments, deleted=record)
        self._publish(changed, first, joined=True)

    def join_where_due(self) -> None:
        """Join segments if there are many, or if many items were deleted; the change is published, so a failure only warns."""
        corpus = self.manifest.corpus
        sizes = [segment.end_row - segment.first_row for segment in corpus.segments]
        due = [n for n, size in enumerate(sizes[:-1]) if sum(sizes[n + 1 :]) >= _JOINED_AT * size]
        if corpus.n_rows - corpus.n_items > _DELETED_AT * corpus.n_rows:
            due = [0]
        try:
            if due:
                self.join(due[0])
        except Exception as error:  # engines may raise anything
            warnings.warn(
                f"{self.directory} was updated, but its segments could not be joined ({error}); it works as it is, and the "
                "next update, or compact(), tries again",
                RetrievalWarning,
                stacklevel=2,
            )

    def report(self) -> UpdateReport:
        """Return what was done so far."""
        corpus, seconds = self.manifest.corpus, time.perf_counter() - self._begin
        changes = self.added, self.replaced, self.deleted
        return UpdateReport(self.directory, corpus.n_items, *changes, len(corpus.segments), seconds)

    def _deleted(self) -> Rows:
        live = self.items.live
        return np.zeros(0, np.int64) if live is None else np.flatnonzero(~live)

    def _written(self, deleted: Rows, fingerprint: str) -> FolderRecord:
        scratch = self.writer.new_scratch()
        np.save(scratch / DELETED_FILE, deleted.astype(np.int64), allow_pickle=False)
        return self.writer.publish(scratch, "deleted", fingerprint)

    def _publish(self, corpus: CorpusRecord, n_kept: int, *, joined: bool) -> None:
        """Publish the index of these items: each retriever keeps ``n_kept`` segments, and writes one more if the items do."""
        items = open_items(self.directory, corpus)
        new = [(rows, ItemTable(self.directory / rows.folder / ITEMS_FILE)) for rows in corpus.segments[n_kept:]]
        retrievers = []
        for builder, identity, old in zip(self.writer.builders, self.identities, self.manifest.retrievers, strict=True):
            segments, seconds = old.segments[:n_kept], old.seconds
            for rows, new_items in new:
                if joined and not (builder.joins_by_extending and n_kept):  # which says what cannot be joined
                    parts = checked_segments(self.directory, old.segments[n_kept:], self.items, contents=True)
                    write = partial(builder.join, parts, new_items)
                else:
                    before = checked_segments(self.directory, segments, items)
                    write = partial(builder.extend, new_items, segments=before, everything=items)
                segment, more = self.writer.write_segment(builder, identity, corpus, rows, write)
                segments, seconds = [*segments, segment], round(seconds + more, 3)
            fingerprint = fingerprint_of(corpus.fingerprint, identity)
            retrievers.append(old.model_copy(update={"fingerprint": fingerprint, "segments": segments, "seconds": seconds}))
        self.manifest = self.writer.publish_manifest(self.manifest, corpus, retrievers)
        self.items = items


def _fingerprint(*parts: str) -> str:
    return digest_of_key(parts).hex()


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


def add_items(path: str | Path, items: Items, resolve: Resolve, *, replace: bool, auto_compact: bool = True) -> UpdateReport:
    """Add items to an index; with ``replace``, an item may take the place of one with the same id."""
    with _updating(path, resolve, auto_compact) as update:
        source = checked_items(items)
        if first := list(islice(source, 1)):
            scratch = update.writer.new_scratch()
            n_new, fingerprint = write_items(chain(first, source), scratch)
            ids = ItemTable(scratch / ITEMS_FILE).ids()
            there = update.items.find(ids)
            if not replace and (there >= 0).any():
                existing_id = ids[int(np.flatnonzero(there >= 0)[0])]
                raise ItemError(f"item {existing_id!r} is in {update.directory} already; update it, or leave it out")
            end = update.manifest.corpus.n_rows
            segment = update.writer.publish_segment(scratch, "items", fingerprint, end, end + n_new)
            update.change(np.sort(there[there >= 0]), segment, fingerprint)
            update.replaced = int((there >= 0).sum())
            update.added = n_new - update.replaced
    return update.report()


def delete_items(path: str | Path, item_ids: Iterable[str], resolve: Resolve, *, auto_compact: bool = True) -> UpdateReport:
    """Delete items from an index; if one does not exist, or none would be left, nothing is deleted."""
    if isinstance(item_ids, str) or not isinstance(item_ids, Iterable):
        raise ItemError(f"item ids come as a list, not as {item_ids!r}")
    ids = list(dict.fromkeys(item_ids))
    if wrong := [item_id for item_id in ids if not isinstance(item_id, str)]:
        raise ItemError(f"an item id is a string; found {wrong[0]!r}")
    with _updating(path, resolve, auto_compact) as update:
        if ids:
            rows = update.items.find(ids)
            if (rows < 0).any():
                missing = ids[int(np.flatnonzero(rows < 0)[0])]
                raise ItemError(f"no item of {update.directory} has the id {missing!r}; nothing was deleted")
            update.change(np.sort(rows))
            update.deleted = len(ids)
    return update.report()


def compact_index(path: str | Path, resolve: Resolve) -> UpdateReport:
    """Join all segments of an index without deleted items; one segment without deleted items stays as it is."""
    with _updating(path, resolve, auto_compact=False) as update:
        if update.manifest.corpus.updated:
            update.join(0)
    return update.report()


def drop_retriever(path: str | Path, name: str, resolve: Resolve) -> Manifest:
    """Remove one retriever of an index with its files and tables, and return what is left; the second bm25 is ``bm25-2``."""
    with _writing(path) as (writer, manifest):
        directory = writer.directory
        labels = numbered_names(record.config["name"] for record in manifest.retrievers)
        by_name = dict(zip(labels, manifest.retrievers, strict=True))
        if name not in by_name:
            raise ConfigurationError(f"{directory} has no retriever {name!r}; {nearest(name, by_name)}")
        dropped = by_name.pop(name)
        identity = canonical_json(dropped.identity)
        users = [other for other, record in by_name.items() if identity in canonical_json(record.identity)]
        if users or not by_name:
            why = f"{users[0]} searches with it; drop that first" if users else "it is the only one; remove the folder"
            raise ConfigurationError(f"{directory}: {name!r} cannot be dropped: {why}")
        left = writer.publish_manifest(manifest, manifest.corpus, list(by_name.values()))
        try:
            writer.builders = resolve(directory, manifest.model_copy(update={"retrievers": [dropped]}))
        except RetrievalError as error:
            warning = f"{name} was dropped, and tables that it may have in a server were not: {error}"
            warnings.warn(warning, RetrievalWarning, stacklevel=2)
    return left


@contextmanager
def _writing(path: str | Path) -> Iterator[tuple[IndexWriter, Manifest]]:
    """Be the only writer to an existing index; no folder is made where there is none."""
    directory = index_directory(path)
    require_manifest(directory)
    with writing(directory) as writer:
        yield writer, require_manifest(directory)


@contextmanager
def _updating(path: str | Path, resolve: Resolve, auto_compact: bool) -> Iterator[IndexChange]:
    begin = time.perf_counter()
    with _writing(path) as (writer, manifest):
        writer.builders = resolve(writer.directory, manifest)
        update = IndexChange(writer, manifest, begin)
        yield update
        if auto_compact:
            update.join_where_due()
        writer.remove_checkpoints()
