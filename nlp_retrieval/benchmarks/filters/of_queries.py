"""The filter of each query: the benchmark's own, joined with what the query's metadata says.

``where_from: {country: country}`` reads: the items' ``country`` must be the query's ``country``. A text, a number or a truth
value has to be met; of a list, one of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nlp_retrieval.core.filters import Where, parse_filter
from nlp_retrieval.core.models import Query
from nlp_retrieval.errors import ConfigurationError, QueryError, nearest

__all__ = ["check_where_from", "filters_of", "grouped"]


def check_where_from(where_from: object) -> dict[str, str] | None:
    """Return ``where_from`` if it leads from keys of items to keys of queries.

    Args:
        where_from: the key of the queries' metadata by the key of the items'; None: no query has a filter of its own.

    Raises:
        ConfigurationError: it is something else.
    """
    if where_from is None:
        return None
    if not isinstance(where_from, Mapping) or not where_from:
        raise ConfigurationError(
            f"where_from: expected keys of items with keys of queries, such as {{country: country}}, found {where_from!r}"
        )
    for key, source in where_from.items():
        if not isinstance(key, str) or not isinstance(source, str) or not key or not source:
            raise ConfigurationError(f"where_from: {key!r}: {source!r}: both are names of metadata, as in {{country: country}}")
    return dict(where_from)


def filters_of(queries: Sequence[Query], where_from: Mapping[str, str] | None, where: Where | None) -> list[Where | None]:
    """Return the filter of each query; None where it has none.

    Args:
        queries: in order.
        where_from: the key of the queries' metadata by the key of the items'.
        where: a filter of all of them.

    Raises:
        QueryError: a query lacks one of the keys, its value cannot be compared with, or ``where`` is not a filter.
    """
    if where is not None:
        parse_filter(where)
    if where_from is None:
        return [where] * len(queries)
    filters: list[Where | None] = []
    for query in queries:
        own = {key: _wanted(query, source, queries) for key, source in where_from.items()}
        parse_filter(own, f"where_from of query {query.query_id!r}")
        filters.append(own if where is None else {"and": [where, own]})
    return filters


def grouped(filters: Iterable[Where | None]) -> list[tuple[Where | None, list[int]]]:
    """Return each distinct filter with the positions that have it, in the order in which they come first."""
    groups: dict[str, tuple[Where | None, list[int]]] = {}
    for position, where in enumerate(filters):
        key = "" if where is None else repr(parse_filter(where))
        groups.setdefault(key, (where, []))[1].append(position)
    return list(groups.values())


def _wanted(query: Query, source: str, queries: Sequence[Query]) -> Any:
    value = query.metadata.get(source)
    if value is None:
        lacking = sum(one.metadata.get(source) is None for one in queries)
        has = nearest(source, query.metadata) if query.metadata else "it has no metadata"
        raise QueryError(
            f"where_from: query {query.query_id!r} has no {source!r} in its metadata ({lacking:,} of {len(queries):,} queries "
            f"lack it); {has}"
        )
    return {"in": value} if isinstance(value, list) else value
