"""What a benchmark is given: searchers by name, a loader, queries, gold and cutoffs, each of its kind and in its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from nlp_retrieval.core.components.interfaces import BaseLoader
from nlp_retrieval.core.models import Gold, Query
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.core.surrogates import half_of_pair, no_text
from nlp_retrieval.errors import ConfigurationError, GoldError, QueryError


def check_kinds(searchers: object, loader: object, queries: object, gold: object, k_values: object) -> None:
    """Refuse arguments of another kind than a benchmark takes, and say how they are written.

    Raises:
        ConfigurationError: searchers that are no mapping or none, something that is not a loader, cutoffs that are no list.
        QueryError: queries that are no list of queries.
        GoldError: gold that is no list of gold.
    """
    if not isinstance(searchers, Mapping):
        raise ConfigurationError(f"searchers are given by name, not as {type(searchers).__name__}; write {{'name': searcher}}")
    if not searchers:
        raise ConfigurationError("a benchmark needs at least one searcher")
    if not isinstance(loader, BaseLoader):
        raise ConfigurationError(f"the corpus is given by a loader, not as {type(loader).__name__}; write JsonlLoader(path)")
    if not isinstance(k_values, Collection) or isinstance(k_values, str):
        raise ConfigurationError(f"k_values={k_values!r}: a list is expected; write [{k_values!r}]")
    _check_list(queries, Query, "queries", QueryError)
    _check_list(gold, Gold, "gold", GoldError)


def _check_list(given: object, kind: type, name: str, error: type[QueryError | GoldError]) -> None:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise error(f"{name}: a list of {kind.__name__} is wanted, and {type(given).__name__} is given; write [...]")
    for place, one in enumerate(given):
        if not isinstance(one, kind):
            raise error(f"{name}[{place}] is {type(one).__name__}, not {kind.__name__}; a loader of queries gives both")


def lined_up(queries: Sequence[Query], gold: Sequence[Gold]) -> tuple[list[Query], list[Gold]]:
    """Return the queries that are judged, and their gold in the same order.

    Raises:
        QueryError: no queries, two of one id, or one that is not text.
        GoldError: two golds of one query, or no query that is judged.
    """
    if not queries:
        raise QueryError("there are no queries; check the path and the filters of their loader")
    by_id = {one.query_id: one for one in gold}
    if (twice := first_repeated(one.query_id for one in gold)) is not None:
        raise GoldError(f"two golds are given for query {twice!r}; put all of a query's relevance into one")
    if (twice := first_repeated(query.query_id for query in queries)) is not None:
        raise QueryError(f"two queries have the id {twice!r}; make query ids unique")
    for query in queries:
        if (half := half_of_pair([query.query_id, query.text, query.family])) is not None:
            raise QueryError(no_text(f"query {query.query_id!r}", half))
    judged = [query for query in queries if query.query_id in by_id]
    if not judged:
        raise GoldError(
            f"none of the {len(queries):,} queries has gold (the first: {queries[0].query_id!r}; gold is of "
            f"{', '.join(map(repr, list(by_id)[:3])) or 'none'}); are both of the same collection?"
        )
    return judged, [by_id[query.query_id] for query in judged]
