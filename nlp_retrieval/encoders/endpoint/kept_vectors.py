"""Vectors of an endpoint on disk: one file each, named by a hash of server, model and text.

A file holds its key and a checksum, and is used only if both match and no other user could have written it; anything else is
a miss. It need not reach the disk at once: what is lost is asked for again.
"""

from __future__ import annotations

import hashlib
import struct
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.files.atomic import replace_file
from nlp_retrieval.core.files.cache import cache_folder, make_own, read_own
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import RetrievalWarning

_MAGIC = b"nlp_retrieval vector 1\n"
_HEAD = struct.Struct("<32sIQ")
"""The key, the dimension, and the tokens that the text took."""
_DIGEST = hashlib.sha256().digest_size


class KeptVector(NamedTuple):
    """A vector as the server gave it, and how many tokens its text took; 0 where that is not known."""

    vector: Vectors
    tokens: int


class KeptVectors:
    """Vectors by text.

    Args:
        folder: where they are stored, created with the first vector; None for the user's cache folder.
        asked: what decides a vector besides its text: server, model, dimension.
    """

    def __init__(self, folder: Path | None, asked: dict[str, object]) -> None:
        self.folder = cache_folder() / "vectors" if folder is None else folder
        self._asked = asked
        self._warned = False

    def find(self, text: str) -> KeptVector | None:
        """Return the vector of a text, or None."""
        key = self._key(text)
        try:
            content = read_own(self._path(key))
        except OSError:
            return None
        head = len(_MAGIC) + _HEAD.size
        if not content.startswith(_MAGIC) or len(content) < head:
            return None
        written, dimension, tokens = _HEAD.unpack_from(content, len(_MAGIC))
        whole = len(content) == head + 4 * dimension + _DIGEST and dimension > 0
        if not whole or written != key or hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
            return None
        vector = np.frombuffer(content, "<f4", dimension, head).astype(np.float32)
        return KeptVector(vector, tokens) if np.isfinite(vector).all() else None

    def keep(self, text: str, vector: Vectors, tokens: int) -> None:
        """Store a vector; if it cannot be written, the run goes on and the first time a warning says so."""
        key = self._key(text)
        head = _MAGIC + _HEAD.pack(key, len(vector), tokens)
        content = head + np.ascontiguousarray(vector, "<f4").tobytes()
        path = self._path(key)
        try:
            make_own(self.folder)
            path.parent.mkdir(exist_ok=True)
            replace_file(path, content + hashlib.sha256(content).digest())
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"vectors of the endpoint cannot be kept in {self.folder} ({error}); they will be asked for again",
                    RetrievalWarning,
                    stacklevel=2,
                )

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(canonical_json([self._asked, text]).encode("utf-8", "surrogatepass")).digest()

    def _path(self, key: bytes) -> Path:
        name = key.hex()
        return self.folder / name[:2] / f"{name}.vector"
