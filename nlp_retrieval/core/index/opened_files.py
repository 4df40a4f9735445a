"""Detection, before a search, of changes to the files of an opened index.

Files of an index are memory-mapped. If one is truncated while being read, the process dies (SIGBUS), and if one is
overwritten, its content mixes with the old. This package does neither; changes by others are visible in inode, size and time. A
removed file stays readable for those who have it open.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from nlp_retrieval.core.files.checksums import check_file
from nlp_retrieval.core.index.manifest import FolderRecord

_State = tuple[int, int, int]


class OpenedFiles:
    """The files of some folders in their state before they were opened.

    Args:
        directory: the index directory.
        records: records of the folders, whose files are checked and opened after this object is created.
    """

    def __init__(self, directory: Path, records: Iterable[FolderRecord]) -> None:
        self._records = {
            str(directory / record.folder / name): file for record in records for name, file in record.files.items()
        }
        self._states = {path: _state_of(path) for path in self._records}

    def check(self) -> None:
        """Compare files that have changed since with their checksums; an unchanged file takes a microsecond or two.

        Raises:
            IndexDamagedError: one was truncated, changed or replaced.
        """
        for path, known in self._states.items():
            current = _state_of(path)
            if current != known and current is not None:
                check_file(Path(path), self._records[path])
                self._states[path] = current


def _state_of(path: str) -> _State | None:
    try:
        status = os.stat(path)  # noqa: PTH116 -- called for every file and search
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
