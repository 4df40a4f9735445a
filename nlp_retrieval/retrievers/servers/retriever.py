"""The base of engines whose data lives in a server.

A segment's folder holds one small file, its record, with the name of a table. The table is on the server before the folder is
published, its name is never used again, and its content never changes. So a killed build leaves a table that no folder names,
and never a folder without its table; the next write to the directory drops such tables. A table that is missing, or has another
number of rows, is an error and never an answer.
"""

from __future__ import annotations

import copy
import hashlib
import os
import secrets
import socket
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores, search_parts
from nlp_retrieval.core.context import stage
from nlp_retrieval.core.files.columns import damaged
from nlp_retrieval.core.index.build import SCRATCH
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.loaders.database import hide_secrets
from nlp_retrieval.retrievers.vectors import VectorRetriever

_RECORD = "server.json"
MISSING = "index again with replace=True, or correct the url"
"""What to do about a table that is not the index's."""


class ServerRecord(BaseModel):
    """What a server holds of a segment: a table of ``rows``, and in it vectors of a ``dimension``, or words, as ``kind`` says.

    No URL and no credentials: the user gives the address of the server.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str = Field(pattern=r"^nlpr_[0-9a-f]{12}_[0-9a-f]{1,16}_[0-9a-f]{16}$")
    rows: int = Field(ge=1)
    kind: str = Field(pattern=r"^[a-z]{1,20}$")
    dimension: int = Field(default=0, ge=0, le=65_535)
    approximate: bool = False

    def write(self, folder: Path) -> None:
        """Write the record of a segment."""
        (folder / _RECORD).write_text(self.model_dump_json(indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the record of a segment."""
        try:
            return cls.model_validate_json((folder / _RECORD).read_bytes())
        except (OSError, ValidationError) as error:
            reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error
            raise damaged(folder / _RECORD, f"it is not the record of what a server holds: {reason}") from None

    @classmethod
    def named(cls, directory: Path) -> list[Self]:
        """The records in the published folders of an index directory, without damaged ones, which their reader reports."""
        records = []
        for path in sorted(directory.glob(f"*/{_RECORD}")):
            if not path.parent.name.startswith(SCRATCH):
                try:
                    records.append(cls.read(path.parent))
                except IndexDamagedError:
                    continue
        return records


class Connected(Protocol):
    """Connections to one server."""

    process: int
    """That opened them; they cannot be used after a fork."""
    shown: str
    """The server, for messages."""


Server = TypeVar("Server", bound=Connected)


class ServerRetriever(BaseRetriever, Generic[Server]):
    """Base of engines whose data lives in a server; their constructors pass on the URL.

    Args:
        url: of the server; None for the embedded one, in the index directory.
    """

    format_version = 2
    survives_fork: ClassVar[bool] = False
    folder: ClassVar[str]
    """The folder of the embedded server, in the index directory."""

    def __init__(self, url: str | None) -> None:
        # config, repr and fingerprints use these arguments, and are written to disk and to W&B
        self._arguments["url"] = url if url is None else hide_secrets(url)
        self.url = url
        self._servers: dict[Path | None, Server] = {}
        self._connecting = Lock()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy.copy(self)  # keeps the URL with its password, which the arguments lack

    # set by each engine

    @abstractmethod
    def connect(self, folder: Path | None) -> Server:
        """Return new connections to the server: the embedded one of a folder, or that of the URL."""

    @abstractmethod
    def rows_of(self, server: Server, table: str) -> int | None:
        """Return how many rows a table has; None if there is no such table."""

    @abstractmethod
    def drop_unnamed(self, server: Server, prefix: str, named: set[str]) -> None:
        """Drop all tables whose names begin with a prefix, without those that are named."""

    @abstractmethod
    def search_table(self, record: ServerRecord, queries: Any, k: int, allowed: Mask | None) -> Hits:
        """Search the table of one segment, as :meth:`search_batch` does, for the queries that :meth:`search_tables` got."""

    # the rest is the same for all of them

    def server_of(self, directory: Path) -> Server:
        """Return the connections to the server of an index directory."""
        folder = directory.absolute() / self.folder if self.url is None else None
        with self._connecting:
            server = self._servers.get(folder)
            if server is None or server.process != os.getpid():
                self._servers[folder] = server = self.connect(folder)
            return server

    def new_name(self, directory: Path) -> str:
        """Return a name for a table of an index directory."""
        return _own_prefix(directory) + secrets.token_hex(8)

    def records(self, segments: Sequence[SegmentFolder]) -> list[tuple[SegmentFolder, ServerRecord]]:
        """Return segments with their records, whose tables are on the server; a missing or changed one is damage."""
        server = self.server_of(segments[0].folder.parent)
        records = [(segment, ServerRecord.read(segment.folder)) for segment in segments]
        for segment, record in records:
            rows = self.rows_of(server, record.table)
            if rows is None:
                raise IndexDamagedError(f"{server.shown}: there is no {record.table}, which the index needs; {MISSING}")
            if not rows == record.rows == len(segment):
                raise IndexDamagedError(
                    f"{server.shown}: {record.table} holds {rows:,} rows, and not the {len(segment):,} of the index "
                    f"({segment.folder / _RECORD} records {record.rows:,}): it was changed; {MISSING}"
                )
        return records

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._records = self.records(segments)
        self._server = self.server_of(segments[0].folder.parent)

    def require_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self.records(segments)

    def settle(self, directory: Path) -> None:
        if self.url is None and not (directory / self.folder).exists():
            return
        prefix = "nlpr_" if self.url is None else _own_prefix(directory)
        named = {record.table for record in ServerRecord.named(directory)}
        self.drop_unnamed(self.server_of(directory), prefix, named)

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        return self.search_tables(queries, k, allowed)

    def search_tables(self, queries: Any, k: int, allowed: Mask | None) -> Hits:
        """Search all tables for queries, or for what an engine made of them, as :meth:`search_batch` does."""

        def search(record: ServerRecord, k: int, part: Mask | None) -> Hits:
            rows = record.rows if part is None else int(np.count_nonzero(part))
            return self.search_table(record, queries, min(k, rows), None if rows == record.rows else part)

        parts = [(segment.rows, partial(search, record)) for segment, record in self._records]
        return search_parts(parts, len(queries), k, allowed) if len(queries) else Hits.from_lists([])


def _own_prefix(directory: Path) -> str:
    """How the names of a directory's tables begin: a token that moves with it, and its inode, which a copy does not have."""
    place = os.fsencode(f"{socket.gethostname()}:{os.path.realpath(directory)}")
    tokens = [record.table.split("_")[1] for record in ServerRecord.named(directory)]
    token = tokens[0] if tokens else hashlib.sha256(place).hexdigest()[:12]
    return f"nlpr_{token}_{directory.stat().st_ino:x}_"


class ServerVectorRetriever(ServerRetriever[Server], VectorRetriever):
    """Base of engines that keep vectors on a server."""

    @abstractmethod
    def stored_vectors(self, server: Server, record: ServerRecord, rows: Rows) -> Vectors:
        """Return the vectors of rows of a table, ``[rows, dimension]``; of ascending rows, each once."""

    @property
    def dimension(self) -> int:
        return self._records[0][1].dimension

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        with stage(f"{self.name}.encode"):
            vectors = self.encode(queries)
        return self.search_vectors(vectors, k, allowed)

    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        return self.search_tables(vectors, k, allowed)

    def vectors_of(self, rows: Rows) -> Vectors:
        distinct, places = np.unique(rows, return_inverse=True)
        stored = np.empty((len(distinct), self.dimension), np.float32)
        for segment, record in self._records:
            part = slice(*np.searchsorted(distinct, [segment.first_row, segment.end_row]).tolist())
            if part.stop > part.start:
                stored[part] = self.stored_vectors(self._server, record, distinct[part] - segment.first_row)
        vectors: Vectors = stored[places]
        return vectors


def padded(hits: Hits, depth: int) -> tuple[Rows, Scores]:
    """Return lists as ``[queries, depth]`` rows, -1 behind their ends, and scores."""
    counts = np.diff(hits.offsets)
    rows, scores = np.full((len(counts), depth), -1, np.int64), np.zeros((len(counts), depth))
    filled = np.arange(depth) < counts[:, None]
    rows[filled], scores[filled] = hits.rows, hits.scores
    return rows, scores
