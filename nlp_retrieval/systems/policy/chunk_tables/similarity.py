"""Cosine similarities of many vectors with a column of chunks, in one statement.

By default every chunk that passes the filter is compared, so that the result is exact. A chunk without a vector, or with a zero
vector, has no similarity: it is omitted and counted, never given 0.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Scores
from nlp_retrieval.errors import QueryError, RetrievalWarning
from nlp_retrieval.systems.policy.chunk_tables.layout import Layout
from nlp_retrieval.systems.policy.chunk_tables.reading import Source, source_of
from nlp_retrieval.systems.policy.chunk_tables.rows import own_id
from nlp_retrieval.systems.policy.chunk_tables.vector_text import as_floats, as_text

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

__all__ = ["ChunkSimilarities", "can_search_on", "similarities_in"]

_FILTERS_IN_INDEX = (0, 8)
"""First version of pgvector that continues if a filter leaves too few of the nearest."""

_LEAST_LIST, _LONGEST_LIST = 40, 1000


@dataclass(frozen=True)
class ChunkSimilarities:
    """The chunks nearest to a vector.

    Args:
        item_ids: nearest first, ties by the id of the row.
        similarities: cosines, -1 to 1.
    """

    item_ids: list[str]
    similarities: Scores


def can_search_on(layout: Layout) -> bool:
    """Return whether the server's pgvector finds k chunks with an index whenever k pass a filter."""
    return layout.extension is not None and layout.extension[1] >= _FILTERS_IN_INDEX


def similarities_in(
    connection: Connection,
    layout: Layout,
    vectors: NDArray[Any],
    column: str,
    countries: Sequence[str] | None,
    k: int | None,
    *,
    exact: bool,
) -> list[ChunkSimilarities]:
    """Return for each vector the chunks nearest to it.

    Args:
        connection: to the database, in a transaction.
        layout: of the tables.
        vectors: ``[queries, dimension]``.
        column: of the chunks, with vectors.
        countries: only chunks of these.
        k: at most this many for each; None: all.
        exact: whether every chunk is compared, or an index may be used.

    Raises:
        QueryError: there is no such column, or a vector has another dimension, is zero or not finite.
    """
    from sqlalchemy import Float, Text, bindparam, cast, func, select, true
    from sqlalchemy.dialects.postgresql import ARRAY

    found = layout.vectors(column)
    matrix = _checked(vectors, column, found.dimension)
    if layout.extension is None:
        raise QueryError("this database has no pgvector, so vectors cannot be compared; CREATE EXTENSION vector in it")
    if not len(matrix):
        return []
    source = source_of(layout)
    passing = [] if countries is None else [source.country.in_(list(countries))]
    _warn_of_missing(connection, source, column, passing)
    compared_as = found.compared_as or "vector"
    texts = func.unnest(cast(bindparam("vectors"), ARRAY(Text))).table_valued("text", with_ordinality="number", name="texts")
    given = texts.render_derived()
    # read once each, and not again for every chunk
    read = select(given.c.number, _pgvector(layout, given.c.text, compared_as).label("vector"))
    asked = read.cte("asked").prefix_with("MATERIALIZED")
    own, theirs = source.chunk.c[column], asked.c.vector
    if found.type != compared_as:
        own = _pgvector(layout, own, compared_as)
    distance: ColumnElement[Any] = own.op(f"OPERATOR({_extension(layout)}.<=>)", return_type=Float())(theirs)
    # an index cannot serve an order by more than the distance
    order = (distance + 0, source.chunk.c.id) if exact or (passing and not can_search_on(layout)) else (distance,)
    near = (
        select(cast(source.chunk.c.id, Text).label("id"), source.kept_id.label("kept_id"), (1 - distance).label("similarity"))
        .select_from(source.rows)
        .where(source.chunk.c[column].is_not(None), *passing)
        .order_by(*order)
        .limit(k)
        .lateral("near")
    )
    statement = (
        select(asked.c.number, near.c.id, near.c.kept_id, near.c.similarity)
        .select_from(asked.join(near, true()))
        .where(near.c.similarity < 2)  # in PostgreSQL, NaN is more than every number
        .order_by(asked.c.number, near.c.similarity.desc(), near.c.id)
    )
    if len(order) == 1:
        _search_wide(connection, layout, k)
    lists: list[tuple[list[str], list[float]]] = [([], []) for _ in matrix]
    for number, key, kept, similarity in connection.execute(statement, {"vectors": [as_text(vector) for vector in matrix]}):
        lists[number - 1][0].append(own_id(key, kept))
        lists[number - 1][1].append(similarity)
    return [ChunkSimilarities(ids, np.array(values, np.float64)) for ids, values in lists]


def _checked(vectors: NDArray[Any], column: str, dimension: int | None) -> NDArray[np.float32]:
    try:
        matrix = as_floats(vectors)
    except ValueError as error:
        raise QueryError(f"{column}: {error}") from None
    if matrix.ndim != 2:
        raise QueryError(f"vectors: an array [queries, dimension] is wanted, found the shape {matrix.shape}")
    if dimension is not None and matrix.shape[1] != dimension:
        raise QueryError(
            f"{column} holds vectors of {dimension} dimensions, and the vectors asked for have {matrix.shape[1]}; encode with "
            "the model that the column was made with"
        )
    if len(wrong := np.flatnonzero(~np.isfinite(matrix).all(1) | ~matrix.any(1))):
        raise QueryError(f"vector {wrong[0] + 1} of {len(matrix)} is zero or not finite, so nothing is near to it")
    return matrix


def _warn_of_missing(connection: Connection, source: Source, column: str, passing: Sequence[ColumnElement[bool]]) -> None:
    from sqlalchemy import func, select

    counted = select(func.count(), func.count().filter(source.chunk.c[column].is_(None))).select_from(source.rows)
    every, missing = connection.execute(counted.where(*passing)).one()
    if missing:
        warnings.warn(
            f"{missing:,} of {every:,} chunks have no {column}, so they have no similarity and are left out",
            RetrievalWarning,
            stacklevel=4,
        )


def _search_wide(connection: Connection, layout: Layout, k: int | None) -> None:
    """Let an index search until k chunks pass the filter."""
    length = min(max(k or _LONGEST_LIST, _LEAST_LIST), _LONGEST_LIST)
    connection.exec_driver_sql(f"SET LOCAL hnsw.ef_search = {length:d}")
    if can_search_on(layout):
        connection.exec_driver_sql("SET LOCAL hnsw.iterative_scan = strict_order")


def _extension(layout: Layout) -> str:
    schema = layout.extension[0] if layout.extension is not None else "public"
    return '"' + schema.replace('"', '""') + '"'


def _pgvector(layout: Layout, value: ColumnElement[Any], kind: str) -> ColumnElement[Any]:
    """Return a value as one of pgvector's types."""
    from sqlalchemy import cast

    from nlp_retrieval.systems.policy.chunk_tables.vector_type import Vector

    return cast(value, Vector(None, layout.extension[0] if layout.extension is not None else None, kind))
