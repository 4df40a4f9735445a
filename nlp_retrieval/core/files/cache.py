"""The cache folder, and which files of a cache are believed: those that nobody but this user, and root, could have written.

A cache is looked up by name, so whoever can put a file there decides what is found. What another user owns, or every user may
write to, is treated as if it were not there.
"""

from __future__ import annotations

import os
from pathlib import Path

_WRITABLE_BY_ALL, _WRITABLE_BY_GROUP = 0o002, 0o020


def cache_folder() -> Path:
    """Return the user's own cache folder for this project (not created)."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "nlp-retrieval"


def make_own(folder: Path) -> None:
    """Make a folder of a cache, and what is missing above it, for this user alone; what is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    for missing in reversed([above for above in (folder, *folder.parents) if not above.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def read_own(path: Path, *, trust_group: bool = True) -> bytes:
    """Return the content of a file.

    Args:
        path: of the file.
        trust_group: believe also what the file's group may write to; on many systems that is a group of one.

    Raises:
        OSError: it is missing or cannot be read; of a file of somebody else, or that everybody may write to, a PermissionError.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        others = _WRITABLE_BY_ALL if trust_group else _WRITABLE_BY_ALL | _WRITABLE_BY_GROUP
        if found.st_uid not in (os.getuid(), 0) or found.st_mode & others:
            raise PermissionError(f"{path} could have been written by another user")
        return file.read()
