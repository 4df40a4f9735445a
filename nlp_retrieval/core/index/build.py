"""Writing an index directory: existing parts are kept, missing ones are built, and the result is published.

:mod:`nlp_retrieval.core.index.publishing` makes publishing survive a crash; :mod:`nlp_retrieval.core.index.update` updates
an existing index.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from nlp_retrieval._version import __version__
from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.files.atomic import READ_ONLY, explained_writes
from nlp_retrieval.core.index.checkpoint import CheckpointContext, keep_checkpoints
from nlp_retrieval.core.index.generation import check_folder, fingerprint_of
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.index.manifest import (
    BuildCost,
    CorpusRecord,
    FolderRecord,
    Manifest,
    RetrieverRecord,
    Segment,
    index_directory,
    read_manifest,
    write_manifest,
)
from nlp_retrieval.core.index.publishing import (
    Written,
    checked_items,
    drop_orphans,
    new_scratch,
    publish,
    remove_unused,
    write_segment,
    writing,
)
from nlp_retrieval.core.index.segments import Builder, SegmentFolder
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.secrets import without_secrets
from nlp_retrieval.errors import IndexConflictError, IndexDamagedError

__all__ = ["Builder", "IndexReport", "build_index"]


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


def build_index(
    items: BaseLoader | Iterable[SearchableItem], path: str | Path, builders: Sequence[Builder], *, replace: bool = False
) -> IndexReport:
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
            return _found_whole(items, directory, builders, error, begin)
        old = _readable_manifest(directory, replace)
        n_items, fingerprint = write_items(checked_items(items), scratch)
        same = old is not None and old.corpus.fingerprint == fingerprint
        if old is not None and not same and not replace:
            order = "; their order counts" if n_items == old.corpus.n_items else ""
            updated = ", which were updated since they were indexed (an updated item stands last)" if old.corpus.updated else ""
            raise IndexConflictError(
                f"{directory} holds an index of {old.corpus.n_items:,} other items{updated} (now given: {n_items:,}{order}); "
                "choose another folder, add or delete items, or pass replace=True to give that index up"
            )
        if old is not None and same and _usable(directory, old.corpus.segments[0], replace):
            corpus = old.corpus
            shutil.rmtree(scratch)
        else:
            folder = publish(scratch, directory, "items", fingerprint)
            segment = Segment(**dict(folder), first_row=0, end_row=n_items)
            corpus = CorpusRecord(fingerprint=fingerprint, n_items=n_items, segments=[segment])
        kept = old.retrievers if old is not None and same else []
        kept = [record for record in kept if all(_usable(directory, s, replace) for s in record.segments)]
        built: list[str] = []
        found: list[str] = []
        table = ItemTable(directory / corpus.segments[0].folder / ITEMS_FILE)
        keep_checkpoints(directory, corpus.fingerprint)
        resumed = shared = 0
        for builder in builders:
            wanted = fingerprint_of(corpus.fingerprint, builder.identity, kept)
            there = [record for record in kept if record.fingerprint == wanted]
            if there and _is_whole(builder, directory, there[0], replace):
                found.append(builder.name)
                continue
            kept = [record for record in kept if record.fingerprint != wanted]
            record, written = _build_one(contexts, builder, wanted, table, corpus, directory)
            kept.append(record)
            resumed, shared = resumed + written.resumed, shared + written.shared
            built.append(builder.name)
        if old is None or old.corpus != corpus or old.retrievers != kept:
            generation = old.generation + 1 if old is not None else 1
            write_manifest(directory, Manifest(generation=generation, version=__version__, corpus=corpus, retrievers=kept))
        keep_checkpoints(directory)
        remove_unused(directory)
        drop_orphans(directory, builders)
    fingerprints = frozenset(record.fingerprint for record in kept[len(kept) - len(built) :])
    return IndexReport(directory, n_items, built, found, time.perf_counter() - begin, fingerprints, resumed, shared)


def _found_whole(
    items: BaseLoader | Iterable[SearchableItem],
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


def _is_whole(builder: Builder, directory: Path, record: RetrieverRecord, replace: bool) -> bool:
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
