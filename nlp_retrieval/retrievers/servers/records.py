"""Records: one small JSON file in the folder of each segment, for an index whose data lives in a server.

A record says what must be on the server. It holds no URL and no credentials: the user gives the address of the server.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path
from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlp_retrieval.core.files.columns import damaged
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.index.build import SCRATCH
from nlp_retrieval.core.index.manifest import read_manifest
from nlp_retrieval.errors import IndexDamagedError


class ServerRecord(BaseModel):
    """Data of a segment on a server.

    Args:
        token: random token of the index directory that it was built for.
        rows: number of rows, counted from 0.
        ids: checksum of the items' ids and their rows; see :mod:`nlp_retrieval.retrievers.servers.checksums`.
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
            raise damaged(path, f"it tells of {record.rows:,} rows, and the segment has {rows:,}")
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
