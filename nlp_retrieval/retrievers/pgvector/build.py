"""Writing tables of vectors: by binary COPY, from a file of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nlp_retrieval.core.files.column_streams import read_blocks
from nlp_retrieval.errors import ModelError
from nlp_retrieval.retrievers.postgres.tables import Fill
from nlp_retrieval.retrievers.servers.checksums import row_sum, stored_id

if TYPE_CHECKING:
    from psycopg.sql import Composed

    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection

_AT_ONCE = 4096
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_LARGEST_HALF = 65504.0


def filled_from(path: Path, ids: list[str], *, half: bool) -> Fill:
    """Fill a table with vectors from a ``.npy`` file.

    Args:
        path: ``[rows, dimension]`` float32.
        ids: of the items, by row.
        half: whether the column holds 16-bit numbers.
    """

    def fill(connection: PostgresConnection, table: Composed) -> None:
        from psycopg.sql import SQL

        statement = SQL("COPY {} (row, item_id, id_sum, embedding) FROM STDIN (FORMAT binary, FREEZE)").format(table)
        with connection.cursor().copy(statement) as copy:
            copy.write(_HEADER)
            for block in _blocks(path, ids, half):
                copy.write(block)
            copy.write(b"\xff\xff")

    return fill


def _blocks(path: Path, ids: list[str], half: bool) -> Iterator[bytes]:
    """The rows as binary COPY has them: the number of fields, and each with its length."""
    first = 0
    for vectors in read_blocks(path, _AT_ONCE):
        if half and np.abs(vectors).max(initial=0) > _LARGEST_HALF:
            raise ModelError("the encoder's vectors are too long for precision='halfvec'; use precision='float32'")
        dimension = vectors.shape[1]
        body = vectors.astype(">f2" if half else ">f4").tobytes()
        width = len(body) // len(vectors)
        header = (width + 4).to_bytes(4, "big") + dimension.to_bytes(2, "big") + bytes(2)
        parts: list[bytes] = []
        for place, item_id in enumerate(ids[first : first + len(vectors)]):
            row, stored = first + place, stored_id(item_id).encode()
            parts += (
                b"\0\4\0\0\0\4",
                row.to_bytes(4, "big"),
                len(stored).to_bytes(4, "big"),
                stored,
                b"\0\0\0\x08",
                row_sum(row, stored).to_bytes(8, "big", signed=True),
                header,
                body[place * width : (place + 1) * width],
            )
        first += len(vectors)
        yield b"".join(parts)
