"""The cache folder, and files in it named by a hash of all that decides them; what others could have written is not read."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.opening import open_regular
from nlp_retrieval.errors import RetrievalWarning


def cache_folder() -> Path:
    """Return the user's own cache folder for this project (not created).

    Examples:
        >>> cache_folder().name
        'nlp-retrieval'
    """
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return Path(base).expanduser() / "nlp-retrieval"
    except RuntimeError:  # a user without a home, as in some containers
        return Path(os.devnull) / "nlp-retrieval"


def make_own(folder: Path) -> None:
    """Create a folder of a cache and its missing parents, for this user only; existing ones stay as they are."""
    for above in reversed((folder, *folder.parents)):
        above.mkdir(mode=0o700, exist_ok=True)


def read_own(path: Path) -> bytes:
    """Return the content of a file; PermissionError if another user owns it, or everybody may write to it."""
    with open_regular(path) as file:
        status = os.fstat(file.fileno())
        if status.st_uid not in (os.getuid(), 0) or status.st_mode & stat.S_IWOTH:  # a group is often of one user
            raise PermissionError(f"{path} could have been written by another user")
        return file.read()


class ContentCache:
    """Files named by the digest of their key; a reader compares the key in the file with its own, and checks the rest.

    ``what`` is their name in the warning, in the plural; without ``durable``, a power failure may lose some.

    Examples:
        >>> cache, digest = ContentCache(Path("answers"), ".json", "answers", durable=False), bytes(32)
        >>> cache.keep(digest, b"{}")
        >>> cache.find(digest)
        b'{}'
    """

    def __init__(self, folder: Path, suffix: str, what: str, *, durable: bool) -> None:
        self.folder, self.suffix, self.what, self.durable = folder, suffix, what, durable
        self._warned = False

    def path_of(self, digest: bytes) -> Path:
        """Return the file of a key's digest."""
        name = digest.hex()
        return self.folder / name[:2] / f"{name}{self.suffix}"

    def find(self, digest: bytes) -> bytes | None:
        """Return the content of a file; None if there is none that can be trusted."""
        try:
            return read_own(self.path_of(digest))
        except OSError:
            return None

    def keep(self, digest: bytes, content: bytes) -> None:
        """Write a file; if that fails, continue without it and warn the first time."""
        path = self.path_of(digest)
        try:
            make_own(path.parent)
            write_atomically(path, content, durable=self.durable)
        except OSError as error:
            if not self._warned:
                self._warned = True
                message = f"{self.what} cannot be kept in {self.folder} ({error}); they will be asked for again"
                warnings.warn(message, RetrievalWarning, stacklevel=3)
