"""Checks of the arguments of a search: queries, sub-queries, results and k."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.unicode import refuse_lone_surrogates
from nlp_retrieval.errors import QueryError

_WORD_CHARACTER = re.compile(r"[^\W_]")
_WORD = re.compile(r"\w+")

POOL_DEPTH = 100
"""Candidates of each retriever, at least, where lists are fused or reranked."""

STOP_WORDS = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was
    will with
    """.split()
)
"""Lucene's English stop words."""


def has_no_words(text: str) -> bool:
    """Return whether a text has neither a letter nor a digit: such a query is not searched, and such an item is never found.

    Examples:
        >>> has_no_words("?!"), has_no_words("krill")
        (True, False)
    """
    return _WORD_CHARACTER.search(text) is None


def has_only_stop_words(query: str) -> bool:
    """Return whether a query has words, and all of them are English stop words."""
    words = _WORD.findall(query.lower())
    return bool(words) and all(word in STOP_WORDS for word in words)


def first_repeated(names: Iterable[str]) -> str | None:
    """Return the first name that occurs more than once, or None."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def synthetic_note(synthetic: int, queries: int) -> str:
    """Return a sentence that belongs beside every figure over queries of which a model wrote some; ``""`` if it wrote none."""
    if not synthetic:
        return ""
    who = f"All {queries:,} queries are" if synthetic == queries else f"{synthetic:,} of {queries:,} queries are"
    return (
        f"{who} synthetic: a model wrote them. Figures may not hold for real queries, and favour systems like the search by "
        "which they were kept."
    )


def check_k(k: object, name: str = "k") -> int:
    """Return ``k`` if it is an integer of at least 1; else raise a QueryError.

    Examples:
        >>> check_k(10)
        10
    """
    if isinstance(k, bool) or not hasattr(k, "__index__") or int(k.__index__()) < 1:
        raise QueryError(f"{name} must be an integer of at least 1, not {k!r}")
    return int(k.__index__())


def check_queries(queries: object, what: str = "query", plural: str = "queries") -> list[str]:
    """Return ``queries`` if it is a sequence of texts; else raise a QueryError. A bare string counts as a sequence of one.

    Messages call one of them ``what``, and several ``plural``.

    Examples:
        >>> check_queries("who eats krill")
        ['who eats krill']
    """
    if isinstance(queries, str):
        queries = [queries]
    if not isinstance(queries, Sequence):
        raise QueryError(f"{plural} must be a list of strings, not {type(queries).__name__}")
    for position, query in enumerate(queries):
        if not isinstance(query, str):
            raise QueryError(f"{what} {position + 1} of {len(queries)} is {query!r} ({type(query).__name__}), not a string")
        if not query.isascii():
            refuse_lone_surrogates(query, f"{what} {position + 1} of {len(queries)}", QueryError)
    return list(queries)


def check_results(results: object) -> list[RetrievalResult]:
    """Return ``results`` if it is a list of results."""
    given = results if isinstance(results, Sequence) else [results]
    if wrong := [type(result).__name__ for result in given if not isinstance(result, RetrievalResult)]:
        raise QueryError(f"results must be a list of results, as search returns it, and hold a {wrong[0]}")
    return list(given)


def check_processed(processed: object, n_queries: int | None = None, by: str = "") -> list[list[str]]:
    """Return ``processed`` if it is a list of lists of strings, one per query; a message begins with who made it."""
    if isinstance(processed, str) or not isinstance(processed, Sequence):
        raise QueryError(f"{by}sub-queries must be a list of lists of strings, not {type(processed).__name__}")
    if n_queries is not None and len(processed) != n_queries:
        raise QueryError(f"{by}{len(processed)} lists of sub-queries were given for {n_queries} queries")
    lists = []
    for number, subqueries in enumerate(processed, 1):
        if isinstance(subqueries, str):
            raise QueryError(f"{by}the sub-queries of query {number} are a string; wrap it in a list: [{subqueries[:40]!r}]")
        lists.append(check_queries(subqueries, f"{by}query {number}: sub-query", f"{by}the sub-queries of query {number}"))
    return lists
