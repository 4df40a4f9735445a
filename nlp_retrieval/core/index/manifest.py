"""``manifest.json``: the contents of an index directory. Only this file is ever replaced; the files it names never change.

The manifest contains its own checksum, and only plain file names, so that neither a flipped bit nor a planted path can lead
a reader elsewhere.
"""

from __future__ import annotations

import hashlib
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.checksums import FileRecord
from nlp_retrieval.core.files.columns import damaged
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.files.opening import explain_file_limit, open_regular
from nlp_retrieval.core.unicode import find_lone_surrogate
from nlp_retrieval.errors import ConfigurationError, IndexDamagedError, IndexMissingError

MANIFEST_FILE = "manifest.json"
"""The name of the manifest in an index directory."""

FORMAT = 3
_MOST_BYTES = 2**26

_PlainName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=255)]


class _ManifestField(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FolderRecord(_ManifestField):
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


class CorpusRecord(_ManifestField):
    """The items: how many are not deleted, their segments in the order of their rows, and the rows of deleted ones.

    The fingerprint is that of the items and, if they were updated since they were indexed, of the updates.
    """

    fingerprint: str
    n_items: int = Field(ge=1)
    segments: Annotated[list[Segment], Field(min_length=1)]
    deleted: FolderRecord | None = None

    @property
    def n_rows(self) -> int:
        """Return how many rows there are, including those of deleted items."""
        return self.segments[-1].end_row

    @property
    def folders(self) -> list[FolderRecord]:
        """All folders of the items."""
        return [*self.segments, *([] if self.deleted is None else [self.deleted])]

    @property
    def updated(self) -> bool:
        """Return whether items were added or deleted since the segments were last joined."""
        return len(self.segments) > 1 or self.deleted is not None


class BuildCost(_ManifestField):
    """The cost of a build: seconds, and the peak resident memory of the process."""

    seconds: float
    peak_bytes: int


class RetrieverRecord(_ManifestField):
    """One retriever of the index: the identity that its fingerprint covers, and its configuration, both without secrets.

    It has one segment for each segment of the items, with the same rows.
    """

    fingerprint: str
    identity: dict[str, Any]
    config: dict[str, Any]
    segments: list[Segment]
    cost: BuildCost


class Manifest(_ManifestField):
    """The state of an index directory."""

    format: Literal[3] = 3
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
        return self

    @property
    def records(self) -> list[FolderRecord]:
        """All folders in use."""
        return [*self.corpus.folders, *(segment for record in self.retrievers for segment in record.segments)]

    @property
    def folders(self) -> list[str]:
        """Names of all folders in use."""
        return [record.folder for record in self.records]

    def retriever(self, fingerprint: str) -> RetrieverRecord | None:
        """The retriever with this fingerprint, or None."""
        return next((record for record in self.retrievers if record.fingerprint == fingerprint), None)


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest of a directory atomically."""
    content = manifest.model_dump(mode="json")
    stated = canonical_json(content | {"checksum": _checksum(content)})
    write_atomically(directory / MANIFEST_FILE, f"{stated}\n".encode())


def manifest_state(directory: Path) -> tuple[int, int, int] | None:
    """Return a state that changes whenever the manifest is replaced: inode, time of change, size; None without a manifest."""
    try:
        status = (directory / MANIFEST_FILE).stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_size


def index_directory(path: str | Path) -> Path:
    """Return the path of an index directory; ConfigurationError if it is none."""
    if not isinstance(path, str | PathLike):
        raise ConfigurationError(f"an index directory is named by its path, not by {path!r}")
    if find_lone_surrogate(str(path)) is not None or "\0" in str(path):
        raise ConfigurationError(f"the path {str(path)!r} is not valid text; choose a folder of another name")
    return Path(path)


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of a directory, or None if there is none.

    Raises:
        IndexDamagedError: it was not written by :func:`write_manifest`, or by another version.

    Examples:
        >>> report = Searcher(["bm25"]).index(items, "index")
        >>> manifest = read_manifest(Path("index"))
        >>> manifest.corpus.n_items, manifest.retrievers[0].config["name"]
        (3, 'bm25')
    """
    path = directory / MANIFEST_FILE
    try:
        with explain_file_limit(path), open_regular(path) as file:
            raw = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise IndexDamagedError(f"{path} cannot be read: {error.strerror}") from error
    try:
        content = parse_json(raw, max_bytes=_MOST_BYTES)
        stated, written = content.pop("checksum"), content["format"]
        actual = _checksum(content)
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
        field = ".".join(map(str, first["loc"]))
        raise damaged(path, f"{field}: {first['msg']}") from None


def require_manifest(directory: Path) -> Manifest:
    """Return the manifest of a directory; IndexMissingError if there is none."""
    manifest = read_manifest(directory)
    if manifest is None:
        raise IndexMissingError(f"there is no index at {directory} (no {MANIFEST_FILE}); index a corpus there first")
    return manifest
