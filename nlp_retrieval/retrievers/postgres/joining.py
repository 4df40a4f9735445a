"""Tables of segments that are joined into one, on the server: nothing is encoded or sent again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, LiteralString

import numpy as np

from nlp_retrieval.retrievers.postgres.checksums import ID_SUM
from nlp_retrieval.retrievers.postgres.filters import condition_of
from nlp_retrieval.retrievers.postgres.tables import Fill, table_of

if TYPE_CHECKING:
    from psycopg.sql import Composed

    from nlp_retrieval.core.index.generation import SegmentFolder
    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection
    from nlp_retrieval.retrievers.postgres.record import TableRecord


def filled_by_joining(segments: Sequence[tuple[SegmentFolder, TableRecord]], columns: LiteralString) -> Fill:
    """Fill a table from others, without the rows of deleted items, and number the rows anew.

    Args:
        segments: and their tables.
        columns: to copy, separated by commas.
    """

    def fill(connection: PostgresConnection, table: Composed) -> None:
        from psycopg.sql import SQL

        first = 0
        for segment, record in segments:
            live = np.ones(len(segment), np.bool_) if segment.live is None else segment.live
            condition, values = condition_of(live)
            statement = SQL(
                "INSERT INTO {} (row, item_id, id_sum, {columns}) SELECT row, item_id, {id_sum}, {columns} FROM ("
                "SELECT (%(first)s + row_number() OVER (ORDER BY old.row) - 1)::integer AS row, item_id, {columns} "
                "FROM {} AS old WHERE {} ORDER BY old.row) AS kept"
            ).format(table, table_of(record), condition, columns=SQL(columns), id_sum=SQL(ID_SUM))
            connection.execute(statement, values | {"first": first})
            first += int(np.count_nonzero(live))

    return fill
