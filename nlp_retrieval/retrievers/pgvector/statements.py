"""The statements that search a table of vectors: along its HNSW index for a batch in one round trip, or exactly.

The planner takes the HNSW index for ``ORDER BY embedding <#> query`` alone. Exact search orders by another expression of the
same value, and so can never be answered approximately by accident.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, LiteralString
from weakref import WeakKeyDictionary

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, Rows
from nlp_retrieval.core.ranking import Matrix, search_past_ties
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.postgres.filters import FEW, condition_of
from nlp_retrieval.retrievers.postgres.record import TableRecord
from nlp_retrieval.retrievers.postgres.tables import table_of

if TYPE_CHECKING:
    from psycopg.sql import SQL, Composed

    from nlp_retrieval.retrievers.postgres.connections import PostgresConnection

ITERATIVE_SINCE = (0, 8)
_WIDEST = 1000
"""The largest ``hnsw.ef_search`` that the extension takes."""

_widened: WeakKeyDictionary[PostgresConnection, dict[str, str]] = WeakKeyDictionary()

_CANDIDATES = (
    "SELECT q.number::integer, hit.row, hit.score FROM unnest(%(queries)s::{vectors}) WITH ORDINALITY AS q(vector, number) "
    "CROSS JOIN LATERAL (SELECT row, -(embedding <#> q.vector) AS score FROM {rows} ORDER BY {order} LIMIT %(k)s) AS hit"
)
_ALONE = "SELECT 1, row, -(embedding <#> (%(queries)s::{vectors})[1]) AS score FROM {rows} ORDER BY score DESC, row LIMIT %(k)s"
"""For one query: what is joined to the queries of a batch cannot be scanned by several processes of the server."""
_MANY_ROWS = 10_000
"""Scanning more takes longer than a round trip for each query."""
_NEAREST, _EXACT = "embedding <#> q.vector", "-(embedding <#> q.vector) DESC, row"


def literals(vectors: Vectors) -> str:
    """An array of vectors, as PostgreSQL reads it; each number comes back to the bit."""
    return "{" + ",".join('"[' + ",".join(map(repr, vector)) + ']"' for vector in vectors.tolist()) + "}"


def exact_hits(connection: PostgresConnection, record: TableRecord, queries: Vectors, k: int, allowed: Mask | None) -> Hits:
    """Compare all rows that may be found; ties go to the lowest rows.

    Args:
        connection: to the server.
        record: of the table.
        queries: ``[queries, dimension]``.
        k: at most so many per query.
        allowed: ``[rows]``, or None.
    """
    from psycopg.sql import SQL

    condition, values = condition_of(allowed)
    table = SQL("{} WHERE {}").format(table_of(record), condition)
    if len(queries) == 1 or (allowed is None and record.rows > _MANY_ROWS):
        alone = _statement(record, table, _ALONE)
        lists = [_fetched(connection, alone, queries[number][None], k, values)[0] for number in range(len(queries))]
        return _hits(lists)
    before = SQL("")
    if "rows" in values:  # fetched once for the batch
        before = SQL("WITH listed AS MATERIALIZED (SELECT row, embedding FROM {}) ").format(table)  # type: ignore[assignment]
        table = SQL("{}").format(SQL("listed"))
    statement = before + _statement(record, table, _CANDIDATES, _EXACT)
    return _hits(_fetched(connection, statement, queries, k, values))


def nearest_hits(
    connection: PostgresConnection,
    record: TableRecord,
    queries: Vectors,
    k: int,
    allowed: Mask | None,
    *,
    ef_search: int,
    version: tuple[int, ...],
) -> Hits:
    """Search along the HNSW index; exactly where few rows may be found, the extension is too old to filter, or k are not found.

    Args:
        connection: to the server.
        record: of the table.
        queries: ``[queries, dimension]``.
        k: at most so many per query, and no more than may be found.
        allowed: ``[rows]``, or None.
        ef_search: how widely a search looks.
        version: of the extension.
    """
    iterative = version >= ITERATIVE_SINCE
    n_found = record.rows if allowed is None else int(np.count_nonzero(allowed))
    if (allowed is not None and (n_found <= FEW or not iterative)) or (k > _WIDEST and not iterative):
        return exact_hits(connection, record, queries, k, allowed)
    from psycopg.sql import SQL

    condition, values = condition_of(allowed)
    statement = _statement(record, SQL("{} WHERE {}").format(table_of(record), condition), _CANDIDATES, _NEAREST)

    def search(numbers: Rows, depth: int) -> Matrix:
        _widen(connection, min(max(ef_search, depth), _WIDEST), iterative)
        lists = _fetched(connection, statement, queries[numbers], depth, values)
        rows, scores = np.full((len(numbers), depth), -1, np.int64), np.full((len(numbers), depth), -np.inf)
        for place, (some, their) in enumerate(lists):
            rows[place, : len(some)], scores[place, : len(some)] = some, their
        return rows, scores

    hits = search_past_ties(search, len(queries), k, n_found)
    short = np.flatnonzero(np.diff(hits.offsets) < k)
    if len(short) == 0:
        return hits
    bounds = hits.offsets.tolist()
    lists = [(hits.rows[a:b], hits.scores[a:b]) for a, b in pairwise(bounds)]
    full = exact_hits(connection, record, queries[short], k, allowed)
    bounds = full.offsets.tolist()
    for number, (a, b) in zip(short.tolist(), pairwise(bounds), strict=True):
        lists[number] = (full.rows[a:b], full.scores[a:b])
    return Hits.from_lists(lists)


def stored_vectors(connection: PostgresConnection, record: TableRecord, rows: Rows) -> Vectors:
    """Return the vectors of some rows of a table, ``[rows, dimension]``.

    Args:
        connection: to the server.
        record: of the table.
        rows: ascending, each once.

    Raises:
        IndexDamagedError: one is not there.
    """
    from psycopg.sql import SQL

    statement = SQL("SELECT vector_send(embedding::vector) FROM {} WHERE row = ANY(%s::integer[]) ORDER BY row")
    listed = "{" + ",".join(map(str, rows.tolist())) + "}"
    with connection.cursor(binary=True) as cursor:
        sent = b"".join(vector for (vector,) in cursor.execute(statement.format(table_of(record)), [listed]))
    layout = np.dtype([("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f4", (record.dimension,))])
    if len(sent) != layout.itemsize * len(rows):
        raise IndexDamagedError(
            f"{record.shown}: vectors of the index are not in the table any more; index again with replace=True"
        )
    vectors: Vectors = np.frombuffer(sent, layout)["numbers"].astype(np.float32)
    return vectors


def _widen(connection: PostgresConnection, ef_search: int, iterative: bool) -> None:
    """Set how widely this session searches from now on, where it does not yet."""
    wanted = {"hnsw.ef_search": str(ef_search)} | ({"hnsw.iterative_scan": "strict_order"} if iterative else {})
    if _widened.get(connection) != wanted:
        for name, value in wanted.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        _widened[connection] = wanted


def _statement(record: TableRecord, rows: Composed, form: LiteralString, order: LiteralString = "") -> Composed:
    from psycopg.sql import SQL

    vectors = SQL(record.type.partition("(")[0] + "[]")
    return SQL(form).format(vectors=vectors, rows=rows, order=SQL(order))


def _hits(lists: list[tuple[list[int], list[float]]]) -> Hits:
    return Hits.from_lists([(np.array(rows, np.int64), np.array(scores, np.float64)) for rows, scores in lists])


def _fetched(
    connection: PostgresConnection, statement: SQL | Composed, queries: Vectors, k: int, values: dict[str, Any]
) -> list[tuple[list[int], list[float]]]:
    """Rows and scores of every query."""
    parameters = {"queries": literals(queries), "k": k, **values}
    lists: list[tuple[list[int], list[float]]] = [([], []) for _ in range(len(queries))]
    with connection.cursor(binary=True) as cursor:
        for number, row, score in cursor.execute(statement, parameters):
            rows, scores = lists[number - 1]
            rows.append(row)
            scores.append(score)
    return lists
