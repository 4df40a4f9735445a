"""Updating an index in place: new items become a segment of their own, deleted ones are marked, and segments are joined.

Existing files are never written to. An update publishes new folders and then a manifest that names them beside the old ones,
so that a reader sees all of it or none, and a crash leaves the state before or after. An updated item is deleted and added,
so it moves to the end. :mod:`nlp_retrieval.core.index.change` writes the change, and decides when segments are joined.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.files.atomic import explained_writes
from nlp_retrieval.core.index.change import IndexChange, NewItems
from nlp_retrieval.core.index.checkpoint import keep_checkpoints
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.index.manifest import MANIFEST_FILE, Manifest, index_directory, read_manifest
from nlp_retrieval.core.index.publishing import guarded, new_scratch, remove_unused, settle_all, writing
from nlp_retrieval.core.index.segments import Builder
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.errors import IndexMissingError, ItemError, RetrievalWarning

Resolve = Callable[[Path, Manifest], Sequence[Builder]]
"""Returns a builder for each retriever in the manifest of a directory, in its order."""


@dataclass(frozen=True)
class UpdateReport:
    """What an update did.

    Args:
        path: the index directory.
        n_items: how many items can be found now.
        added: how many are new.
        replaced: how many replaced an item with the same id.
        deleted: how many were deleted.
        segments: how many segments there are now; 1 if all were joined.
        seconds: duration of the update.
    """

    path: Path
    n_items: int
    added: int
    replaced: int
    deleted: int
    segments: int
    seconds: float


def add_items(
    path: str | Path,
    items: BaseLoader | Iterable[SearchableItem],
    resolve: Resolve,
    *,
    replace: bool,
    auto_compact: bool = True,
) -> UpdateReport:
    """Add items to an index.

    Args:
        path: the index directory.
        items: a loader, or items; streamed once.
        resolve: returns builders for the retrievers of the index.
        replace: whether an item may replace one with the same id; otherwise that is an error.
        auto_compact: whether to join segments when there are many.

    Raises:
        IndexMissingError: there is no index.
        ItemError: an id exists already and ``replace`` is False, or the items cannot be indexed.
        IndexLockedError: another process is writing to it.
        IndexWriteError: it cannot be written.
    """
    begin = time.perf_counter()
    with _updating(path, resolve, auto_compact) as update:
        source = guarded(items)
        first = list(islice(source, 1))
        if first:
            scratch = new_scratch(update.directory)
            _, fingerprint = write_items(chain(first, source), scratch)
            ids = ItemTable(scratch / ITEMS_FILE).ids()
            gone = update.items.find(ids)
            if not replace and (gone >= 0).any():
                taken = ids[int(np.flatnonzero(gone >= 0)[0])]
                raise ItemError(f"item {taken!r} is in {update.directory} already; update it, or leave it out")
            update.change(np.sort(gone[gone >= 0]), NewItems(scratch, fingerprint, ids))
            update.replaced = int((gone >= 0).sum())
            update.added = len(ids) - update.replaced
    return _reported(update, begin)


def delete_items(path: str | Path, item_ids: Iterable[str], resolve: Resolve, *, auto_compact: bool = True) -> UpdateReport:
    """Delete items from an index.

    Args:
        path: the index directory.
        item_ids: ids of the items; repeated ids count once.
        resolve: returns builders for the retrievers of the index.
        auto_compact: whether to join segments when many rows belong to deleted items.

    Raises:
        IndexMissingError: there is no index.
        ItemError: there is no item with an id, or no item would be left; nothing is deleted then.
        IndexLockedError: another process is writing to it.
        IndexWriteError: it cannot be written.
    """
    begin = time.perf_counter()
    with _updating(path, resolve, auto_compact) as update:
        if isinstance(item_ids, str) or not isinstance(item_ids, Iterable):
            raise ItemError(f"item ids come as a list, not as {item_ids!r}; write [{item_ids!r}]")
        given = list(item_ids)
        if wrong := [item_id for item_id in given if not isinstance(item_id, str)]:
            raise ItemError(f"an item id is a string; found {wrong[0]!r}")
        ids = list(dict.fromkeys(given))
        if ids:
            rows = update.items.find(ids)
            if (rows < 0).any():
                missing = [ids[position] for position in np.flatnonzero(rows < 0).tolist()]
                others = f" and {len(missing) - 1:,} more of those given are not there either" if len(missing) > 1 else ""
                raise ItemError(f"no item of {update.directory} has the id {missing[0]!r}{others}; nothing was deleted")
            update.change(np.sort(rows), None)
            update.deleted = len(ids)
    return _reported(update, begin)


def compact_index(path: str | Path, resolve: Resolve) -> UpdateReport:
    """Join all segments of an index without deleted items; one segment without deleted items stays as it is.

    Args:
        path: the index directory.
        resolve: returns builders for the retrievers of the index.

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


@contextmanager
def _updating(path: str | Path, resolve: Resolve, auto_compact: bool) -> Iterator[IndexChange]:
    """Be the only writer to an existing index; folders published by a failed update are removed again."""
    directory = index_directory(path)
    with explained_writes(directory):
        _existing(directory)
        with writing(directory):
            manifest = _existing(directory)
            update = IndexChange(directory, manifest, resolve(directory, manifest))
            try:
                yield update
                if auto_compact:
                    _join_where_due(update)
                keep_checkpoints(directory)
            finally:
                remove_unused(directory)
                settle_all(directory, update.builders)


def _join_where_due(update: IndexChange) -> None:
    """Join segments if that is due; the update is already published, so a failure is only a warning."""
    try:
        update.join_where_due()
    except Exception as error:  # engines may raise anything
        warnings.warn(
            f"{update.directory} was updated, but its segments could not be joined ({error}); it works as it is, and the next "
            "update, or compact(), tries again",
            RetrievalWarning,
            stacklevel=2,
        )


def _existing(directory: Path) -> Manifest:
    manifest = read_manifest(directory)
    if manifest is None:
        raise IndexMissingError(f"there is no index at {directory} (no {MANIFEST_FILE}); index a corpus there first")
    return manifest


def _reported(update: IndexChange, begin: float) -> UpdateReport:
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
