"""The base of engines whose data lives in a server: storing, opening and searching their segments.

A segment's folder holds only one small file, its record. The data that it names is on the server before the folder is
published. So a killed build leaves data that no folder names, and never a folder without its data; the next write to the
directory drops such data. Data on the server never changes. If it is missing, or differs from its record, that is an error and
never an answer.
"""

from __future__ import annotations

import copy
import hashlib
import os
import secrets
import socket
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlp_retrieval.core.candidates import Hits, Mask, joined_hits, offsets_of
from nlp_retrieval.core.files.columns import damaged
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.index.build import SCRATCH
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.manifest import read_manifest
from nlp_retrieval.core.processes import Lock
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.errors import IndexDamagedError

# Checksums of rows, computed here and by the server alike, so that neither has to trust the other.
#
# A row's part is 64 bits of the MD5 of its number and its value, as a signed integer; the checksum is the sum of these, which
# needs no order and no memory. It detects accidents and mix-ups, but not a forger: anyone who may write to the server decides
# what is found.


def row_sum(row: int, value: bytes) -> int:
    """Return a row's part of a checksum."""
    outer = hashlib.md5(b"%d:%s" % (row, hashlib.md5(value, usedforsecurity=False).hexdigest().encode()), usedforsecurity=False)
    return int.from_bytes(outer.digest()[:8], "big", signed=True)


def ids_sum(ids: Iterable[str]) -> str:
    """The checksum of ids in the order of their rows, from 0."""
    return str(sum(row_sum(row, stored_id(item_id).encode()) for row, item_id in enumerate(ids)))


def stored_id(item_id: str) -> str:
    """An id in a form that any server can hold: PostgreSQL's texts have no NUL."""
    return item_id.replace("\0", "\N{REPLACEMENT CHARACTER}")


# Records: one small JSON file in the folder of each segment, for an index whose data lives in a server.
#
# A record says what must be on the server. It holds no URL and no credentials: the user gives the address of the server.


class ServerRecord(BaseModel):
    """Data of a segment on a server.

    Args:
        token: random token of the index directory that it was built for.
        rows: number of rows, counted from 0.
        ids: checksum of the items' ids and their rows, by :func:`ids_sum`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: ClassVar[str] = "server.json"
    """Name of the file."""

    token: str = Field(pattern=r"^[0-9a-f]{32}$")
    rows: int = Field(ge=1)
    ids: str = Field(pattern=r"^-?\d{1,30}$")

    def write(self, folder: Path) -> None:
        """Write the record of a segment."""
        (folder / self.file).write_text(self.model_dump_json(indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, folder: Path, rows: int | None = None) -> Self:
        """Read the record of a segment.

        Args:
            folder: of the segment.
            rows: number of rows of the segment; None if unknown.

        Raises:
            IndexDamagedError: it is not a record, or not of this segment.
        """
        path = folder / cls.file
        try:
            record = cls.model_validate(parse_json(path.read_bytes()))
        except (OSError, ValueError, ValidationError) as error:
            reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error
            raise damaged(path, f"it is not the record of what a server holds: {reason}") from None
        if rows is not None and record.rows != rows:
            raise damaged(path, f"it records {record.rows:,} rows, and the segment has {rows:,}")
        return record

    @classmethod
    def named(cls, directory: Path) -> list[Self]:
        """The records in the published folders of an index directory, without damaged ones, which their reader reports."""
        records = []
        for path in sorted(directory.glob(f"*/{cls.file}")):
            if not path.parent.name.startswith(SCRATCH):
                try:
                    records.append(cls.read(path.parent))
                except IndexDamagedError:
                    continue
        return records

    @classmethod
    def of_index(cls, directory: Path) -> list[Self]:
        """The records of the segments that the manifest of an index names.

        Raises:
            IndexDamagedError: the manifest or a record is damaged.
        """
        manifest = read_manifest(directory)
        segments = [segment for record in manifest.retrievers for segment in record.segments] if manifest else []
        folders = [directory / segment.folder for segment in segments]
        return [cls.read(folder) for folder in folders if (folder / cls.file).is_file()]

    @classmethod
    def token_of(cls, directory: Path) -> str:
        """The token of an index directory: that of its records, or a new one."""
        return next((record.token for record in cls.named(directory)), secrets.token_hex(16))


def place_of(directory: Path) -> str:
    """Host and path of an index directory."""
    return f"{socket.gethostname()}:{os.path.realpath(directory)}".encode("utf-8", "replace").decode().replace("\0", "")


def inode_of(directory: Path) -> str:
    """Return the identity of an index directory: a moved one keeps it, a copy gets another."""
    return str(directory.stat().st_ino)


T = TypeVar("T")


class Pool(Protocol):
    """Connections to one server.

    Args:
        process: that opened them; they cannot be used after a fork.
        shown: the server, for messages.
    """

    process: int
    shown: str


Record = TypeVar("Record", bound=ServerRecord)
Connections = TypeVar("Connections", bound=Pool)


class ServerRetriever(BaseRetriever, Generic[Record, Connections]):
    """Base of engines whose data lives in a server; their constructors pass on these parameters.

    Args:
        url: of the server; None for the embedded one, in the index directory.
        shown: the URL without its secrets.
    """

    survives_fork: ClassVar[bool] = False
    record: ClassVar[type[ServerRecord]]
    at_once: ClassVar[int] = 16
    """Queries in one request: few round trips, but so few queries that the time-out of a request still limits a search."""

    def __init__(self, url: str | None, shown: str | None) -> None:
        # config, repr and fingerprints use these arguments, and are written to disk and to W&B
        self._arguments["url"] = shown
        self.url = url
        self._pools: dict[Path | None, Connections] = {}
        self._pooling = Lock()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy.copy(self)  # keeps the URL with its password, which the arguments lack

    # set by each engine

    @abstractmethod
    def connect(self, directory: Path | None) -> Connections:
        """Return new connections to the server.

        Args:
            directory: the index directory of the embedded server; None if there is a URL.
        """

    @abstractmethod
    def reading(self, work: Callable[[Any], T]) -> T:
        """Run work with a connection for reading the opened index, again if it is lost."""

    @abstractmethod
    def check(self, connections: Connections, record: Record) -> None:
        """Raise an IndexDamagedError if the server does not hold what a record says."""

    @abstractmethod
    def search_table(self, connection: Any, record: Record, queries: Any, k: int, allowed: Mask | None) -> Hits:
        """Search the data of one segment on the server.

        Args:
            connection: to the server.
            record: of the segment.
            queries: distinct, as returned by :meth:`prepared`.
            k: most rows per query, at most the number of rows.
            allowed: ``[rows of the segment]``, or None.
        """

    def prepared(self, queries: list[str]) -> Any:
        """Return the form of queries that :meth:`search_table` needs; by default the queries themselves."""
        return queries

    def joined(self, parts: list[Hits], n_queries: int, k: int) -> Hits:
        """Join the lists of segments, each of at most k rows per query; by default by score, ties by row."""
        return joined_hits(parts, n_queries, k)

    # the rest is the same for all of them

    def load(self, folder: Path) -> None:
        self.load_segments([SegmentFolder(folder, 0, self.record.read(folder).rows)])

    def load_segments(self, segments: Sequence[SegmentFolder]) -> None:
        self._records = self.records(segments)
        self._server = self.pool_of(segments[0].folder.parent)
        for _, record in self._records:
            self.check(self._server, record)

    def records(self, segments: Sequence[SegmentFolder]) -> list[tuple[SegmentFolder, Record]]:
        """Return segments with their records."""
        return [(segment, self.record.read(segment.folder, len(segment))) for segment in segments]  # type: ignore[misc]

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        return self.search_prepared(self.prepared(queries) if queries else [], k, allowed)

    def search_prepared(self, prepared: Any, k: int, allowed: Mask | None) -> Hits:
        """Search for the result of :meth:`prepared`, as :meth:`search_batch` does."""
        if len(prepared) == 0:
            return Hits.from_lists([])

        def search(connection: Any, prepared: Any) -> Hits:
            hits_of_segments = []
            for segment, record in self._records:
                part = None if allowed is None else allowed[segment.rows]
                if part is not None and part.all():
                    part = None
                n_found = len(segment) if part is None else int(np.count_nonzero(part))
                if n_found:
                    hits = self.search_table(connection, record, prepared, min(k, n_found), part)
                    hits_of_segments.append(replace(hits, rows=hits.rows + segment.first_row))
            return self.joined(hits_of_segments, len(prepared), k)

        parts = [prepared[first : first + self.at_once] for first in range(0, len(prepared), self.at_once)]
        hits = [self.reading(partial(search, prepared=part)) for part in parts]
        counts = np.concatenate([np.diff(some.offsets) for some in hits])
        rows, scores = (np.concatenate(columns) for columns in zip(*((some.rows, some.scores) for some in hits), strict=True))
        return Hits(offsets_of(counts), rows, scores)

    def require_segments(self, segments: Sequence[SegmentFolder]) -> None:
        connections = self.pool_of(segments[0].folder.parent)
        for _, record in self.records(segments):
            self.check(connections, record)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        self.require_segments(segments)
        super().extend(items, folder, segments, everything)

    def pool_of(self, directory: Path) -> Connections:
        """Return the connections to the server of an index directory."""
        folder = directory.absolute() if self.url is None else None
        with self._pooling:
            pool = self._pools.get(folder)
            if pool is None or pool.process != os.getpid():
                self._pools[folder] = pool = self.connect(folder)
            return pool
