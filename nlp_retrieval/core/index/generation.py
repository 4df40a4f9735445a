"""An index directory as its readers see it: the manifest, and the generation that it describes.

Only ``manifest.json`` is ever replaced; the files it names never change. A reader holds a shared lock on each folder of its
generation, so that a writer keeps them until the reader has finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from nlp_retrieval._version import __version__
from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.components.component import Config, canonical_json, digest_of_key
from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.columns import CURE, damaged, mapped, unreadable
from nlp_retrieval.core.files.opening import expanded, explain_file_limit, open_regular, parse_json
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable
from nlp_retrieval.core.models import PlainModel
from nlp_retrieval.core.unicode import find_lone_surrogate
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, IndexMissingError

MANIFEST_FILE = "manifest.json"
"""The name of the manifest in an index directory."""

FORMAT = 5
_MOST_BYTES = 2**26
DELETED_FILE = "rows.npy"
_FOLLOWED_BLINDLY = (".faiss",)
"""Endings of files whose contents are compared at opening: their reader follows whatever numbers it finds in them."""

_PlainName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=255)]


class FileRecord(PlainModel):
    """Expected size and SHA-256 of a file."""

    bytes: int
    sha256: str


class FolderRecord(PlainModel):
    """A folder of the index, and the expected state of each of its files."""

    folder: _PlainName
    files: dict[_PlainName, FileRecord]

    @property
    def bytes(self) -> int:
        """Size of all files together."""
        return sum(record.bytes for record in self.files.values())


class Segment(FolderRecord):
    """The folder of one indexing run, which covers the item rows from ``first_row`` up to, not including, ``end_row``."""

    first_row: int = Field(ge=0)
    end_row: int = Field(ge=1)


class CorpusRecord(PlainModel):
    """The items that are not deleted, their segments by rows, the rows of deleted ones; the fingerprint covers updates too."""

    fingerprint: str
    n_items: int = Field(ge=1)
    segments: Annotated[list[Segment], Field(min_length=1)]
    deleted: FolderRecord | None = None

    @property
    def records(self) -> list[FolderRecord]:
        """All folders of the items."""
        return [*self.segments, *([] if self.deleted is None else [self.deleted])]


class RetrieverRecord(PlainModel):
    """One retriever: identity and configuration without secrets, and a segment for each of the items, with the same rows."""

    fingerprint: str
    identity: dict[str, Any]
    config: dict[str, Any]
    segments: list[Segment]
    seconds: float


class Manifest(PlainModel):
    """The state of an index directory."""

    format: Literal[5] = 5
    generation: int = Field(ge=1)
    version: str
    corpus: CorpusRecord
    retrievers: list[RetrieverRecord]

    @model_validator(mode="after")
    def _holds_together(self) -> Manifest:
        bounds = [(segment.first_row, segment.end_row) for segment in self.corpus.segments]
        if [first for first, _ in bounds] != [0, *(end for _, end in bounds[:-1])] or any(a >= b for a, b in bounds):
            raise ValueError("the segments of the items are not consecutive")
        for record in self.retrievers:
            if not isinstance(record.config.get("name"), str):
                raise ValueError("a retriever has no name")  # noqa: TRY004 -- for pydantic
            if [(segment.first_row, segment.end_row) for segment in record.segments] != bounds:
                raise ValueError(f"the segments of {record.config['name']!r} are not those of the items")
        if len(set(self.folders)) < len(self.folders):
            raise ValueError("a folder is named twice")
        return self

    @property
    def records(self) -> list[FolderRecord]:
        """All folders in use."""
        return [*self.corpus.records, *(segment for record in self.retrievers for segment in record.segments)]

    @property
    def folders(self) -> list[str]:
        """Names of all folders in use."""
        return [record.folder for record in self.records]

    def retriever(self, identity: Config) -> RetrieverRecord | None:
        """The retriever with this identity."""
        fingerprint = fingerprint_of(self.corpus.fingerprint, identity)
        return next((record for record in self.retrievers if record.fingerprint == fingerprint), None)


def fingerprint_of(corpus: str, identity: Config) -> str:
    """Return the fingerprint of a retriever's index over the corpus with this fingerprint."""
    return digest_of_key({"corpus": corpus, "retriever": identity}).hex()


def publish_manifest(
    directory: Path, before: Manifest | None, corpus: CorpusRecord, retrievers: list[RetrieverRecord]
) -> Manifest:
    """Replace the manifest, which makes these the state of the index; ConfigurationError if it would be too large to read."""
    generation = 1 if before is None else before.generation + 1
    manifest = Manifest(generation=generation, version=__version__, corpus=corpus, retrievers=retrievers)
    content = manifest.model_dump(mode="json")
    stated = f"{canonical_json(content | {'checksum': digest_of_key(content).hex()})}\n".encode()
    if len(stated) > _MOST_BYTES:
        raise ConfigurationError(f"the manifest of {directory} would have {len(stated):,} bytes; shorten the settings")
    write_atomically(directory / MANIFEST_FILE, stated)
    return manifest


def manifest_state(directory: Path) -> tuple[int, int, int] | None:
    """Return a state that changes whenever the manifest is replaced: inode, time of change, size; None without a manifest."""
    try:
        status = (directory / MANIFEST_FILE).stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_size


def index_directory(path: str | Path) -> Path:
    """Return the path of an index directory; ConfigurationError if it is none."""
    if not isinstance(path, str | PathLike) or "\0" in str(path) or find_lone_surrogate(str(path)) is not None:
        raise ConfigurationError(f"an index directory is named by its path, not by {path!r:.80}")
    return expanded(path)


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of a directory, or None if there is none; IndexDamagedError if it is damaged, or of another version.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> read_manifest(Path("index")).corpus.n_items
        3
    """
    path = directory / MANIFEST_FILE
    try:
        with explain_file_limit(path), open_regular(path) as file:
            raw = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        content = parse_json(raw, max_bytes=_MOST_BYTES)
        stated, written = content.pop("checksum"), content["format"]
        actual = digest_of_key(content).hex()
    except (ValueError, KeyError, AttributeError, TypeError):
        raise damaged(path, "it is not a manifest") from None
    if isinstance(written, int) and written != FORMAT:
        raise IndexDamagedError(f"{path} was made by another version of nlp_retrieval; index again with replace=True")
    if stated != actual:
        raise damaged(path, "its checksum does not match its content")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def require_manifest(directory: Path) -> Manifest:
    """Return the manifest of a directory; IndexMissingError if there is none."""
    manifest = read_manifest(directory)
    if manifest is None:
        raise IndexMissingError(f"there is no index at {directory} (no {MANIFEST_FILE}); index a corpus there first")
    return manifest


@dataclass(frozen=True)
class SegmentFolder:
    """A segment of a retriever.

    Args:
        folder: folder of its files, which have the sizes that the manifest says.
        first_row: row of its first item in the index.
        end_row: the row after its last.
        live: ``[end_row - first_row]``, the items that are not deleted; None for all.

    Examples:
        >>> segment = SegmentFolder(Path("index/bm25"), first_row=0, end_row=3)
        >>> segment.rows, len(segment)
        (slice(0, 3, None), 3)
    """

    folder: Path
    first_row: int
    end_row: int
    live: Mask | None = None

    def __len__(self) -> int:
        return self.end_row - self.first_row

    @property
    def rows(self) -> slice:
        """Its rows in the index."""
        return slice(self.first_row, self.end_row)


def check_file(path: Path, record: FileRecord, *, content: bool = False) -> None:
    """Raise an IndexDamagedError if the size of a file, or its whole content, is not that of its record."""
    try:
        with explain_file_limit(path), open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            actual = hashlib.file_digest(file, "sha256").hexdigest() if content and size == record.bytes else record.sha256
    except OSError as error:
        raise unreadable(path, error) from error
    if size != record.bytes:
        raise damaged(path, f"it has {size} bytes, the manifest says {record.bytes}")
    if actual != record.sha256:
        raise damaged(path, f"SHA-256 {actual}, the manifest says {record.sha256}")


def check_folder(directory: Path, record: FolderRecord, *, contents: bool = False) -> None:
    """Compare the files of a folder with its record: their sizes, or their contents."""
    for name, file in record.files.items():
        check_file(directory / record.folder / name, file, content=contents or name.endswith(_FOLLOWED_BLINDLY))


def open_items(directory: Path, corpus: CorpusRecord) -> ItemTable:
    """Open the items of an index."""
    for record in corpus.records:
        check_folder(directory, record)
    items = ItemTable([directory / record.folder / ITEMS_FILE for record in corpus.segments])
    n_live = len(items)
    if corpus.deleted is not None:
        path = directory / corpus.deleted.folder / DELETED_FILE
        rows: Rows = mapped(path, np.int64)
        if len(rows) == 0 or rows[0] < 0 or rows[-1] >= len(items) or (np.diff(rows) <= 0).any():
            raise damaged(path, f"it does not hold ascending rows below {len(items):,}")
        items.delete(rows)
        n_live -= len(rows)
    if (len(items), n_live) != (corpus.segments[-1].end_row, corpus.n_items):
        raise IndexDamagedError(f"{directory} holds {n_live:,} items, and its manifest says {corpus.n_items:,}; {CURE}")
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


class Generation:
    """One published state of an index directory, held open: its files stay readable as long as this object exists.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> len(searcher.opened.items), searcher.opened.is_current()
        (3, True)
    """

    def __init__(self, path: Path, manifest: Manifest, state: object) -> None:
        self.path = path
        self.manifest = manifest
        self._state = state
        for folder in manifest.folders:
            with explain_file_limit(path / folder):
                descriptor = os.open(path / folder, os.O_RDONLY | os.O_DIRECTORY)
            weakref.finalize(self, os.close, descriptor)
            with suppress(OSError):  # a file system without locks; nothing can be written there
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            if os.fstat(descriptor).st_nlink == 0:
                raise FileNotFoundError(path / folder)
        self.items = open_items(path, manifest.corpus)

    def checked_segments(self, record: RetrieverRecord) -> list[SegmentFolder]:
        """Return the segments of a retriever; IndexDamagedError if a file is missing or has another size."""
        return checked_segments(self.path, record.segments, self.items)

    def is_current(self) -> bool:
        """Return whether this is still the latest generation."""
        return manifest_state(self.path) == self._state or read_manifest(self.path) == self.manifest


def open_generation(path: str | Path) -> Generation:
    """Open the newest generation of an index directory; IndexMissingError if there is none, IndexDamagedError if it is damaged.

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
    """Return a message for each file of an index with another SHA-256; IndexDamagedError if that is its manifest.

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
