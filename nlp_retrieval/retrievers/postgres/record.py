"""``server.json``, the only file in the folder of a segment of an index whose data lives in PostgreSQL."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from nlp_retrieval.retrievers.servers.records import ServerRecord

TABLE_NAME = r"^nlpr_[a-z_]{1,30}_[0-9a-f]{16}$"


class TableRecord(ServerRecord):
    """A table of a segment.

    Args:
        format: of this record.
        server: the system identifier of the server that it was built on; a replica has the same, a restored copy may not.
        database: its name there.
        schema_name: of the table.
        table: its name, never used again.
        column: name of the column that is searched.
        type: of that column, with the dimension.
        content: checksum of the searched column and its rows.
        approximate: whether the column has an index that finds nearest neighbours approximately.
    """

    format: Literal[1] = 1
    server: str = Field(pattern=r"^\d{1,20}$")
    database: str = Field(max_length=63)
    schema_name: str = Field(min_length=1, max_length=63, pattern=r"^[^\x00%]+$")
    table: str = Field(pattern=TABLE_NAME)
    column: Literal["embedding", "words"]
    type: str = Field(max_length=40, pattern=r"^(tsvector|vector\(\d{1,5}\)|halfvec\(\d{1,5}\))$")
    content: str = Field(pattern=r"^-?\d{1,30}$")
    approximate: bool = False

    @property
    def dimension(self) -> int:
        """Dimension of the vectors; 0 without."""
        return int("".join(char for char in self.type if char.isdigit()) or 0)

    @property
    def shown(self) -> str:
        """Return its name in messages."""
        return f'table "{self.schema_name}"."{self.table}"'
