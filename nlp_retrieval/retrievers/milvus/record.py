"""``milvus.json``, the only file in the folder of a segment of an index whose data lives in Milvus; and names of collections.

A collection is never renamed, and its name is used only once. The name contains the index directory, so that the writer of a
directory finds its own collections that no folder names any more, and no others:

``nlpr_<token>_<directory>_<path>_<random>``
    the token is random and stays with the directory; the directory is its inode, which a move keeps and a copy does not.

A collection belongs to a directory if it was created in this same directory, and at this path or for this token. So a copied
directory never drops what the original uses, and a moved one keeps its own.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import socket
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from nlp_retrieval.retrievers.servers.records import ServerRecord, inode_of, place_of

IndexType = Literal["flat", "hnsw", "ivf", "diskann", "rabitq"]

_COLLECTION = r"nlpr_([0-9a-f]{12})_([0-9a-f]{12})_([0-9a-f]{12})_[0-9a-f]{16}"


class CollectionRecord(ServerRecord):
    """A collection of a segment.

    Args:
        format: of this record.
        server: the version of the server that it was built on.
        database: its name there; empty for the default one.
        collection: its name, never used again.
        dimension: of the vectors; 0 without.
        words: whether it holds texts for BM25.
        index_type: of the vectors.
        sample: checksum of the ids of rows evenly spread over a large collection, or of all rows of a small one.
        content: checksum of vectors and texts.
    """

    file: ClassVar[str] = "milvus.json"

    format: Literal[1] = 1
    server: str = Field(max_length=100)
    database: str = Field(max_length=255)
    collection: str = Field(pattern=f"^{_COLLECTION}$")
    dimension: int = Field(ge=0, le=32_768)
    words: bool
    index_type: IndexType
    sample: str = Field(pattern=r"^-?\d{1,30}$")
    content: str = Field(pattern=r"^-?\d{1,30}$")

    @property
    def shown(self) -> str:
        """Return its name in messages."""
        return f"collection {self.collection!r}"


def new_name(directory: Path, token: str) -> str:
    """A name for a collection of an index directory."""
    return f"nlpr_{token[:12]}_{_inode(directory)}_{_digest(place_of(directory))}_{secrets.token_hex(8)}"


def orphans(directory: Path, names: list[str], *, embedded: bool) -> list[str]:
    """The collections of a server that are an index directory's own, and that none of its folders names.

    Args:
        directory: of the index.
        names: of all collections.
        embedded: whether the server, with all its collections, belongs to the directory.
    """
    records = CollectionRecord.named(directory)
    named, tokens = {record.collection for record in records}, {record.token[:12] for record in records}
    inode, place = _inode(directory), _digest(place_of(directory))
    found = []
    for name in names:
        match = re.fullmatch(_COLLECTION, name)
        if match and name not in named and (embedded or (match[2] == inode and (match[3] == place or match[1] in tokens))):
            found.append(name)
    return found


def _inode(directory: Path) -> str:
    return _digest(f"{socket.gethostname()}:{inode_of(directory)}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
