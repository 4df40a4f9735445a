"""``server.json``, all that the folder of a segment keeps of an index whose data lives in a server.

It names a table and says what must be in it. It holds no URL and no credentials: where the server is, its user says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nlp_retrieval.core.files.columns import damaged
from nlp_retrieval.core.files.json_text import parse_json

RECORD_FILE = "server.json"
TABLE_NAME = r"^nlpr_[a-z_]{1,30}_[0-9a-f]{16}$"


class TableRecord(BaseModel):
    """A table of a segment.

    Args:
        format: of this record.
        server: the system identifier of the server that it was built on; a replica has the same, a restored copy may not.
        database: its name there.
        schema_name: of the table.
        table: its name, which is used once.
        token: of the index directory that it was built for; random.
        column: name of the column that is searched.
        type: of that column, with the dimension.
        rows: how many rows it has, numbered from 0.
        ids: checksum of the items' ids and their rows; see :mod:`nlp_retrieval.postgres.checksums`.
        content: checksum of the searched column and its rows.
        approximate: whether the column has an index that finds nearest neighbours approximately.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    server: str = Field(pattern=r"^\d{1,20}$")
    database: str = Field(max_length=63)
    schema_name: str = Field(min_length=1, max_length=63, pattern=r"^[^\x00%]+$")
    table: str = Field(pattern=TABLE_NAME)
    token: str = Field(pattern=r"^[0-9a-f]{32}$")
    column: Literal["embedding", "words"]
    type: str = Field(max_length=40, pattern=r"^(tsvector|vector\(\d{1,5}\)|halfvec\(\d{1,5}\))$")
    rows: int = Field(ge=1)
    ids: str = Field(pattern=r"^-?\d{1,30}$")
    content: str = Field(pattern=r"^-?\d{1,30}$")
    approximate: bool = False

    @property
    def dimension(self) -> int:
        """Of the vectors; 0 where there are none."""
        return int("".join(char for char in self.type if char.isdigit()) or 0)

    @property
    def shown(self) -> str:
        """What messages call it."""
        return f'table "{self.schema_name}"."{self.table}"'


def write_record(folder: Path, record: TableRecord) -> None:
    """Write the record of a segment."""
    (folder / RECORD_FILE).write_text(record.model_dump_json(indent=1) + "\n", "utf-8")


def read_record(folder: Path, rows: int | None = None) -> TableRecord:
    """Read the record of a segment.

    Args:
        folder: of the segment.
        rows: how many the segment has; None where that is not known.

    Raises:
        IndexDamagedError: it is none, or not of this segment.
    """
    path = folder / RECORD_FILE
    try:
        record = TableRecord.model_validate(parse_json(path.read_bytes()))
    except (OSError, ValueError, ValidationError) as error:
        reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error
        raise damaged(path, f"it is not the record of a table: {reason}") from None
    if rows is not None and record.rows != rows:
        raise damaged(path, f"it tells of {record.rows:,} rows, and the segment has {rows:,}")
    return record
