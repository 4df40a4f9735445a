"""Reading an index directory: a reader keeps the generation it opened.

A generation is the state described by one manifest. A reader holds a shared lock on each of its folders, so that a writer
that removes old folders keeps these until the reader has finished.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.files.checksums import check_file
from nlp_retrieval.core.files.columns import CURE, damaged, mapped
from nlp_retrieval.core.files.opening import explain_file_limit
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable
from nlp_retrieval.core.index.manifest import (
    CorpusRecord,
    FolderRecord,
    Manifest,
    RetrieverRecord,
    Segment,
    index_directory,
    manifest_state,
    read_manifest,
    require_manifest,
)
from nlp_retrieval.errors import IndexDamagedError

_FOLLOWED_BLINDLY = (".faiss",)
"""Endings of files whose contents are compared at opening: their reader follows whatever numbers it finds in them."""

_DELETED_FILE = "rows.npy"


@dataclass(frozen=True)
class SegmentFolder:
    """A segment of a retriever.

    Args:
        folder: folder of its files, which have the sizes that the manifest says.
        first_row: row of its first item in the index.
        end_row: the row after its last.
        live: ``[end_row - first_row]``, the items that are not deleted; None for all.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> generation = open_generation("index")
        >>> (segment,) = generation.checked_segments(generation.manifest.retrievers[0])
        >>> segment.rows, len(segment)
        (slice(0, 3, None), 3)
    """

    folder: Path
    first_row: int
    end_row: int
    live: Mask | None = None

    def __len__(self) -> int:
        """Return how many rows it has."""
        return self.end_row - self.first_row

    @property
    def rows(self) -> slice:
        """Its rows in the index."""
        return slice(self.first_row, self.end_row)


def write_deleted(folder: Path, rows: Rows) -> None:
    """Write the rows of deleted items, ascending, into an empty folder."""
    np.save(folder / _DELETED_FILE, rows.astype(np.int64), allow_pickle=False)


def fingerprint_of(corpus: str, identity: Config) -> str:
    """Return the fingerprint of a retriever's index over the corpus with this fingerprint."""
    return hashlib.sha256(canonical_json({"corpus": corpus, "retriever": identity}).encode()).hexdigest()


class Generation:
    """One published state of an index directory, held open: its files stay readable as long as this object exists.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> generation = open_generation("index")
        >>> len(generation.items), generation.is_current()
        (3, True)
    """

    def __init__(self, path: Path, manifest: Manifest, state: object) -> None:
        self.path = path
        self.manifest = manifest
        self._state = state
        descriptors: list[int] = []
        weakref.finalize(self, _close_all, descriptors)
        for folder in manifest.folders:
            with explain_file_limit(path / folder):
                descriptor = os.open(path / folder, os.O_RDONLY | os.O_DIRECTORY)
            descriptors.append(descriptor)
            _hold(descriptor)
            if os.fstat(descriptor).st_nlink == 0:
                raise FileNotFoundError(path / folder)
        self.items = open_items(path, manifest.corpus)

    def __repr__(self) -> str:
        return f"<generation {self.manifest.generation} of {self.path}: {self.manifest.corpus.n_items:,} items>"

    def checked_segments(self, record: RetrieverRecord) -> list[SegmentFolder]:
        """Return the segments of a retriever, each file of which has its size.

        Raises:
            IndexDamagedError: a file is missing or has changed.
        """
        return checked_segments(self.path, record.segments, self.items)

    def is_current(self) -> bool:
        """Return whether this is still the latest generation."""
        return manifest_state(self.path) == self._state or read_manifest(self.path) == self.manifest


_NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EBADF, errno.EINVAL}
"""Errors of file systems without locks; writing is refused there as well, so no folder is removed."""


def _hold(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise


def _close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def check_folder(directory: Path, record: FolderRecord, *, contents: bool = False) -> None:
    """Compare the files of a folder with its record: their sizes, or their contents."""
    for name, file in record.files.items():
        check_file(directory / record.folder / name, file, content=contents or name.endswith(_FOLLOWED_BLINDLY))


def open_items(directory: Path, corpus: CorpusRecord) -> ItemTable:
    """Open the items of an index."""
    for record in corpus.folders:
        check_folder(directory, record)
    items = ItemTable([directory / record.folder / ITEMS_FILE for record in corpus.segments])
    if len(items) == corpus.n_rows and corpus.deleted is not None:
        path = directory / corpus.deleted.folder / _DELETED_FILE
        rows: Rows = mapped(path, np.int64)
        if len(rows) == 0 or rows[0] < 0 or rows[-1] >= len(items) or (np.diff(rows) <= 0).any():
            raise damaged(path, f"it does not hold ascending rows below {len(items):,}")
        items.delete(rows)
    n_live = len(items) if items.live is None else int(items.live.sum())
    if (len(items), n_live) != (corpus.n_rows, corpus.n_items):
        raise IndexDamagedError(
            f"{directory} holds {n_live:,} items in {len(items):,} rows, and its manifest says {corpus.n_items:,} in "
            f"{corpus.n_rows:,}; {CURE}"
        )
    return items


def checked_segments(
    directory: Path, segments: Sequence[Segment], items: ItemTable, *, contents: bool = False
) -> list[SegmentFolder]:
    """Return the segments of a retriever, with masks of their items, after :func:`check_folder`."""
    opened = []
    for segment in segments:
        check_folder(directory, segment, contents=contents)
        live = None if items.live is None else items.live[segment.first_row : segment.end_row]
        opened.append(SegmentFolder(directory / segment.folder, segment.first_row, segment.end_row, live))
    return opened


def open_generation(path: str | Path) -> Generation:
    """Open the newest generation of an index directory.

    Raises:
        IndexMissingError: there is none.
        IndexDamagedError: the manifest, or a file that it names, is damaged.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> open_generation("index").items.ids()
        ['whale', 'krill', 'fox']
    """
    directory = index_directory(path).absolute()  # the working directory may change while it is open
    for _attempt in range(20):
        state = manifest_state(directory)  # before reading, so that a manifest replaced meanwhile counts as not current
        manifest = require_manifest(directory)
        try:
            return Generation(directory, manifest, state)
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = error.filename
            if read_manifest(directory) == manifest:  # otherwise a writer has published meanwhile
                break
    raise IndexDamagedError(f"{missing} is missing; {CURE}")


def verify_index(path: str | Path) -> list[str]:
    """Compare the content of every file of an index with its SHA-256.

    Returns:
        One message per damaged file; empty if there is none.

    Raises:
        IndexMissingError: there is no index.
        IndexDamagedError: the manifest itself is damaged.

    Examples:
        >>> report = Searcher([Bm25Retriever()]).index(items, "index")
        >>> verify_index("index")
        []
    """
    directory = index_directory(path)
    damaged_files = []
    for folder in require_manifest(directory).records:
        for name, file in folder.files.items():
            try:
                check_file(directory / folder.folder / name, file, content=True)
            except IndexDamagedError as error:
                damaged_files.append(str(error))
    return damaged_files
