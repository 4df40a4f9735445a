"""Searches in which every query has its own filter: queries of equal filters are searched together, in one call."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from nlp_retrieval.benchmarks.filters.of_queries import grouped
from nlp_retrieval.benchmarks.filters.unfiltered import Unfiltered
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.index.generation import Generation
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.errors import ConfigurationError, RetrievalWarning

__all__ = ["filters_for", "search_each", "search_where", "warn_of_filters"]


class Searches(Protocol):
    """What searches for queries; whether it takes a filter shows in its signature."""

    def search(self, queries: Sequence[str], k: int) -> list[list[RetrievalResult]]:
        """Search."""


class _Filtering(Protocol):
    def search(self, queries: Sequence[str], k: int, *, where: Where) -> list[list[RetrievalResult]]: ...


def filters_for(searcher: Searches, filters: Sequence[Where | None]) -> list[Where | None]:
    """Return the filters with which a searcher is asked: none for :class:`Unfiltered`.

    Args:
        searcher: of a benchmark.
        filters: of its queries.

    Raises:
        ConfigurationError: queries have filters, and the searcher takes none.
    """
    if isinstance(searcher, Unfiltered):
        return [None] * len(filters)
    if any(where is not None for where in filters) and "where" not in inspect.signature(searcher.search).parameters:
        raise ConfigurationError(
            f"{type(searcher).__name__}.search takes no filter (no parameter 'where'), and the queries of this benchmark have "
            "filters; leave out where and where_from, or this configuration"
        )
    return list(filters)


def search_where(searcher: Searches, texts: Sequence[str], k: int, where: Where | None) -> list[list[RetrievalResult]]:
    """Search for queries that have one filter, or none."""
    if where is None:
        return searcher.search(texts, k)
    return cast(_Filtering, searcher).search(texts, k, where=where)


def search_each(
    searcher: Searches, texts: Sequence[str], k: int, filters: Sequence[Where | None]
) -> list[list[RetrievalResult]]:
    """Search for queries that each have a filter, or none.

    Args:
        searcher: opened.
        texts: the queries.
        k: length of the lists.
        filters: of each.
    """
    results: list[list[RetrievalResult]] = [[] for _ in texts]
    for where, positions in grouped(filters):
        found = search_where(searcher, [texts[position] for position in positions], k, where)
        for position, hits in zip(positions, found, strict=True):
            results[position] = hits
    return results


def warn_of_filters(
    generation: Generation | None,
    filters: Mapping[str, Where | None],
    qrels: Mapping[str, Mapping[str, int]],
    row_of: Mapping[str, int],
) -> None:
    """Say which queries can find nothing at all, or not all of their gold, because of their filters.

    Args:
        generation: the index that is searched; None where it is not known.
        filters: by query id.
        qrels: grades by query and item id.
        row_of: item rows by id.

    Raises:
        QueryError: a filter does not fit the metadata of the items.
    """
    query_ids = list(filters)
    empty: list[str] = []
    outside: list[tuple[str, str]] = []
    for where, positions in grouped(filters.values()):
        if where is None or generation is None:
            continue
        mask = generation.items.mask(where)
        theirs = [query_ids[position] for position in positions]
        if mask is not None and not mask.any():
            empty += theirs
        elif mask is not None:
            outside += [
                (one, item) for one in theirs for item in qrels.get(one, {}) if item in row_of and not mask[row_of[item]]
            ]
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
