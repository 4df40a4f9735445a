"""Reading an index directory: a reader keeps the generation that it opened.

A generation is what one manifest names. A reader holds a shared lock on each of its folders, so that a writer, which
removes old folders, leaves these until the reader is gone.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import weakref
from contextlib import suppress
from pathlib import Path

from nlp_retrieval.core.checksums import check_file
from nlp_retrieval.core.component import Config, canonical_json
from nlp_retrieval.core.items import ITEMS_FILE, ItemTable
from nlp_retrieval.core.manifest import MANIFEST_FILE, FolderRecord, Manifest, manifest_state, read_manifest
from nlp_retrieval.errors import IndexDamagedError, IndexMissingError


def fingerprint_of(corpus: str, identity: Config) -> str:
    """The fingerprint of a retriever's index over a corpus."""
    return hashlib.sha256(canonical_json({"corpus": corpus, "retriever": identity}).encode()).hexdigest()


class Generation:
    """One published state of an index directory, held open: what it names stays readable while this object lives."""

    def __init__(self, path: Path, manifest: Manifest, state: object) -> None:
        self.path = path
        self.manifest = manifest
        self._state = state
        descriptors: list[int] = []
        weakref.finalize(self, _close_all, descriptors)
        for folder in manifest.folders:
            descriptor = os.open(path / folder, os.O_RDONLY | os.O_DIRECTORY)
            descriptors.append(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if os.fstat(descriptor).st_nlink == 0:
                raise FileNotFoundError(path / folder)
        self.items = ItemTable(self.checked_folder(manifest.corpus) / ITEMS_FILE)

    def checked_folder(self, record: FolderRecord) -> Path:
        """Return the path of a folder after its files were compared with their checksums.

        Raises:
            IndexDamagedError: a file is missing or not what it was.
        """
        check_folder(self.path, record)
        return self.path / record.folder

    def is_current(self) -> bool:
        """Whether nothing was published here since."""
        if manifest_state(self.path) == self._state:
            return True
        return read_manifest(self.path) == self.manifest


def _close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def check_folder(directory: Path, record: FolderRecord) -> None:
    """Compare the files of a folder with their checksums; those that were checked and have not changed are not read again.

    Raises:
        IndexDamagedError: a file is missing or not what it was.
    """
    for name, file in record.files.items():
        check_file(directory / record.folder / name, file)


def open_generation(path: str | Path) -> Generation:
    """Open the newest generation of an index directory.

    Raises:
        IndexMissingError: there is none.
        IndexDamagedError: the manifest, or a file that it names, is damaged.
    """
    directory = Path(path)
    for _attempt in range(20):
        state = manifest_state(directory)  # before it is read: one that is replaced meanwhile counts as not current
        manifest = read_manifest(directory)
        if manifest is None:
            raise IndexMissingError(f"there is no index at {directory} (no {MANIFEST_FILE}); index a corpus there first")
        try:
            return Generation(directory, manifest, state)
        except (FileNotFoundError, NotADirectoryError) as error:
            missing = error.filename
            if read_manifest(directory) == manifest:  # else a writer published between the two
                break
    raise IndexDamagedError(f"{missing} is missing; restore it from a copy, or index again with replace=True")


def verify_index(path: str | Path) -> list[str]:
    """Compare every file of an index with its checksum, whatever was checked before.

    Returns:
        One message per damaged file; empty where all is well.

    Raises:
        IndexMissingError: there is no index.
        IndexDamagedError: the manifest itself is damaged.
    """
    directory = Path(path)
    manifest = read_manifest(directory)
    if manifest is None:
        raise IndexMissingError(f"there is no index at {directory} (no {MANIFEST_FILE})")
    damaged = []
    segments: list[FolderRecord] = [segment for record in manifest.retrievers for segment in record.segments]
    for folder in [manifest.corpus, *segments]:
        for name, file in folder.files.items():
            try:
                check_file(directory / folder.folder / name, file, trust_memory=False)
            except IndexDamagedError as error:
                damaged.append(str(error))
    return damaged
