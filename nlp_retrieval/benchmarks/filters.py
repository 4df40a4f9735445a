"""Filters of a benchmark's queries, made from their own metadata, and searches with them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nlp_retrieval.core.filters import Where, parse_filter
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.models import Query, RetrievalResult
from nlp_retrieval.errors import ConfigurationError, QueryError, RetrievalWarning, nearest

# ``where_from: {country: country}`` means that the items' ``country`` must be the query's ``country``: equal to a text, number
# or truth value, or to one element of a list.


def check_where_from(where_from: object) -> dict[str, str] | None:
    """Return ``where_from`` if it maps item keys to query keys."""
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
    """Return the filter of each query; None if it has none."""
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
    """Return each distinct filter with the positions that have it, in order of first appearance."""
    groups: dict[str, tuple[Where | None, list[int]]] = {}
    for position, where in enumerate(filters):
        key = "" if where is None else repr(parse_filter(where))
        groups.setdefault(key, (where, []))[1].append(position)
    return list(groups.values())


def _wanted(query: Query, source: str, queries: Sequence[Query]) -> Any:
    value = query.metadata.get(source)
    if value is None:
        lacking = sum(judged_query.metadata.get(source) is None for judged_query in queries)
        has = nearest(source, query.metadata) if query.metadata else "it has no metadata"
        raise QueryError(
            f"where_from: query {query.query_id!r} has no {source!r} in its metadata ({lacking:,} of {len(queries):,} queries "
            f"lack it); {has}"
        )
    return {"in": value} if isinstance(value, list) else value


def filters_for(searcher: Any, filters: Sequence[Where | None]) -> list[Where | None]:
    """Return the filters to pass to a searcher, which must take some if there are any."""
    if any(where is not None for where in filters) and "where" not in inspect.signature(searcher.search).parameters:
        raise ConfigurationError(
            f"{type(searcher).__name__}.search takes no filter (no parameter 'where'), and the queries of this benchmark have "
            "filters; leave out where and where_from, or this configuration"
        )
    return list(filters)


def search_where(searcher: Any, texts: Sequence[str], k: int, where: Where | None) -> list[list[RetrievalResult]]:
    """Search for queries with the same filter, or none."""
    found: list[list[RetrievalResult]] = searcher.search(texts, k, **({} if where is None else {"where": where}))
    return found


def search_each(searcher: Any, texts: Sequence[str], k: int, filters: Sequence[Where | None]) -> list[list[RetrievalResult]]:
    """Search for queries that may each have a filter; those of one filter together."""
    results: list[list[RetrievalResult]] = [[] for _ in texts]
    for where, positions in grouped(filters):
        ranked = search_where(searcher, [texts[position] for position in positions], k, where)
        for position, hits in zip(positions, ranked, strict=True):
            results[position] = hits
    return results


def warn_of_filters(
    generation: Generation | None,
    filters: Mapping[str, Where | None],
    qrels: Mapping[str, Mapping[str, int]],
    row_of: Mapping[str, int],
) -> None:
    """Report queries that can find nothing, or only part of their gold, because of their filters."""
    query_ids = list(filters)
    empty: list[str] = []
    outside: list[tuple[str, str]] = []
    for where, positions in grouped(filters.values()):
        mask = generation.items.mask(where) if where is not None and generation is not None else None
        theirs = [query_ids[position] for position in positions]
        if mask is not None and not mask.any():
            empty += theirs
        elif mask is not None:
            gold = [(query_id, item) for query_id in theirs for item, grade in qrels.get(query_id, {}).items() if grade > 0]
            outside += [(query_id, item) for query_id, item in gold if item in row_of and not mask[row_of[item]]]
    if empty:
        warnings.warn(
            f"{len(empty):,} of {len(filters):,} queries have a filter that no item meets (the first: {empty[0]!r}, "
            f"{filters[empty[0]]}); they find nothing, and count",
            RetrievalWarning,
            stacklevel=3,
        )
    if outside:
        query, item = outside[0]
        warnings.warn(
            f"{len(outside):,} gold items do not meet the filter of their query, so they cannot be found (the first: {item!r} "
            f"of {query!r}, {filters[query]}); they count as missed",
            RetrievalWarning,
            stacklevel=3,
        )
