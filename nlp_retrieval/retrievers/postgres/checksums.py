"""The checksums of :mod:`nlp_retrieval.retrievers.servers.checksums`, as PostgreSQL computes them from its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composed

CONTENT = {
    "tsvector": "convert_to(words::text, 'UTF8')",
    "vector": "vector_send(embedding)",
    "halfvec": "halfvec_send(embedding)",
}
"""SQL for the bytes of the searched column, by its type."""


_ROW_SUM = "('x' || left(md5(row || ':' || md5({})), 16))::bit(64)::bigint"
_ID_BYTES = "convert_to(item_id, 'UTF8')"
ID_SUM = _ROW_SUM.format(_ID_BYTES)
"""SQL for a row's part of the checksum of the ids, from its columns ``row`` and ``item_id``."""


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
