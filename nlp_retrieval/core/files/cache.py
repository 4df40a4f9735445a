"""The cache folder. A cached file is trusted only if nobody but this user or root can have written it.

Files in a cache are found by name, so whoever can write there controls what is read. Files that another user owns, or that
every user may write to, are treated as missing.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from nlp_retrieval.core.files.atomic import replace_file
from nlp_retrieval.errors import RetrievalWarning

_WRITABLE_BY_ALL, _WRITABLE_BY_GROUP = 0o002, 0o020


def cache_folder() -> Path:
    """Return the user's own cache folder for this project (not created)."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "nlp-retrieval"


def make_own(folder: Path) -> None:
    """Create a folder of a cache and its missing parents, for this user only; existing ones stay as they are.

    Raises:
        OSError: it cannot be created.
    """
    for missing in reversed([above for above in (folder, *folder.parents) if not above.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def read_own(path: Path, *, trust_group: bool = True) -> bytes:
    """Return the content of a file.

    Args:
        path: path of the file.
        trust_group: trust also files that their group may write to; on many systems that is a group of one user.

    Raises:
        OSError: it is missing or cannot be read; a PermissionError if another user owns it or everybody may write to it.
    """
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        others = _WRITABLE_BY_ALL if trust_group else _WRITABLE_BY_ALL | _WRITABLE_BY_GROUP
        if status.st_uid not in (os.getuid(), 0) or status.st_mode & others:
            raise PermissionError(f"{path} could have been written by another user")
        return file.read()


class ContentCache:
    """Files by the hash of what they answer, in folders by its first two digits.

    A file is written whole and not synced: a lost one is made again. Its content says what it answers, and is checked by the
    reader.

    Args:
        folder: created with the first file.
        suffix: of the files' names.
        what: the contents, for the warning.
    """

    def __init__(self, folder: Path, suffix: str, what: str) -> None:
        self.folder, self._suffix, self._what = folder, suffix, what
        self._warned = False

    def path(self, key: bytes) -> Path:
        """Return the path of a file."""
        name = key.hex()
        return self.folder / name[:2] / f"{name}{self._suffix}"

    def read(self, key: bytes) -> bytes | None:
        """Return the content of a file; None if it is missing, or could have been written by another user."""
        try:
            return read_own(self.path(key))
        except OSError:
            return None

    def write(self, key: bytes, content: bytes) -> None:
        """Write a file; if that fails, the caller goes on, and the first time a warning says so."""
        path = self.path(key)
        try:
            make_own(self.folder)
            path.parent.mkdir(exist_ok=True)
            replace_file(path, content)
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"{self._what} cannot be kept in {self.folder} ({error}); they will be asked for again",
                    RetrievalWarning,
                    stacklevel=3,
                )
