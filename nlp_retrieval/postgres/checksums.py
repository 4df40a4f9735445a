"""Checksums of a table, computed here and by the server alike, so that neither has to believe the other.

Of each row, 64 bits of the MD5 of its number and its value, as a signed integer; the checksum is their sum, which needs no
order and no memory. It tells accidents and mix-ups, not a forger: who may write to the server decides what is found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composed

CONTENT = {
    "tsvector": "convert_to(words::text, 'UTF8')",
    "vector": "vector_send(embedding)",
    "halfvec": "halfvec_send(embedding)",
}
"""By the type of the searched column, its bytes."""


def row_sum(row: int, value: bytes) -> int:
    """What a row adds to a checksum, as the server's ``sum_of`` computes it."""
    outer = hashlib.md5(b"%d:%s" % (row, hashlib.md5(value, usedforsecurity=False).hexdigest().encode()), usedforsecurity=False)
    return int.from_bytes(outer.digest()[:8], "big", signed=True)


def ids_sum(ids: Iterable[str]) -> str:
    """The checksum of ids in the order of their rows, from 0."""
    return str(sum(row_sum(row, stored_id(item_id).encode()) for row, item_id in enumerate(ids)))


def stored_id(item_id: str) -> str:
    """An id as the server can hold it: PostgreSQL's texts have no NUL."""
    return item_id.replace("\0", "\N{REPLACEMENT CHARACTER}")


_ROW_SUM = "('x' || left(md5(row || ':' || md5({})), 16))::bit(64)::bigint"
_ID_BYTES = "convert_to(item_id, 'UTF8')"
ID_SUM = _ROW_SUM.format(_ID_BYTES)
"""What a row adds to the checksum of the ids, from its columns ``row`` and ``item_id``."""


def _sum_of(value: str) -> str:
    return f"coalesce(sum({_ROW_SUM.format(value)}), 0)::text"


def whole_check(kind: str) -> SQL:
    """The columns of a SELECT from a table: its rows, the lowest and highest, and the checksums of ids and content.

    Args:
        kind: the type of the searched column, without a dimension.
    """
    from psycopg.sql import SQL

    return SQL(f"count(*), min(row), max(row), {_sum_of(_ID_BYTES)}, {_sum_of(CONTENT[kind])}")


def quick_check(table: Composed) -> Composed:
    """A SELECT that reads the index of the rows alone: their number, the lowest and highest, and the checksum of the ids."""
    from psycopg.sql import SQL

    return SQL("SELECT count(*), min(row), max(row), coalesce(sum(id_sum), 0)::text FROM {}").format(table)
