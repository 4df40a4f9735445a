"""What a reader has open is what it opened: files that somebody changes under it are noticed before the next search.

Files of an index are memory-mapped. One that is cut off while it is read ends the process (SIGBUS), and one that is copied over
mixes its content with the old: nothing of ours does either, and what others do is seen by inode, size and time. A file that is
removed stays readable for those who have it open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nlp_retrieval.core.files.checksums import check_file
from nlp_retrieval.core.index.manifest import FolderRecord

_State = tuple[int, int, int]


class OpenedFiles:
    """The files of some folders, as they were before they were opened.

    Args:
        directory: of the index.
        records: of the folders. Their files are compared with their checksums, and opened, after this was made.
    """

    def __init__(self, directory: Path, records: Iterable[FolderRecord]) -> None:
        self._records = {
            str(directory / record.folder / name): file for record in records for name, file in record.files.items()
        }
        self._states = {path: _state_of(path) for path in self._records}

    def check(self) -> None:
        """Compare files that changed since with their checksums; a microsecond or two for each that did not.

        Raises:
            IndexDamagedError: one was cut off, changed or replaced by another.
        """
        for path, known in self._states.items():
            found = _state_of(path)
            if found != known and found is not None:
                check_file(Path(path), self._records[path])
                self._states[path] = found


def _state_of(path: str) -> _State | None:
    try:
        found = os.stat(path)  # noqa: PTH116 -- called for every file and search
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
