"""Counts of the searches of an index, kept over restarts and shared by all of its readers."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass

from nlp_retrieval.core import STOP_WORDS
from nlp_retrieval.errors import IndexLockedError, IndexWriteError
from nlp_retrieval.systems.evidence.index.database import EvidenceDatabase

__all__ = ["QueryCounters", "QueryStatistics", "relevance_of"]

_WORD = re.compile(r"\w+")
_ADD = "INSERT INTO counters VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + excluded.value"


@dataclass(frozen=True)
class QueryStatistics:
    """Counts of the searches so far.

    Args:
        queries: number of searches.
        results: number of passages returned, in total.
        without_results: number of searches that returned none.
        repeated: number of searches that repeated an earlier query.
        average_relevance: 0 to 10, the mean of :func:`relevance_of` over the searches with results; 0 if there are none.
    """

    queries: int
    results: int
    without_results: int
    repeated: int
    average_relevance: float


def relevance_of(query: str, passage: str) -> float:
    """Return how much of a query its best passage is about, from 0 to 10.

    Ten times the share of the query's distinct words, without the most common English ones, that occur in the passage. It
    says whether the passage is on the subject, and nothing about whether it supports the query.

    Args:
        query: what was searched for.
        passage: the first result, title and content.
    """
    words = set(_WORD.findall(query.casefold()))
    asked = (words - STOP_WORDS) or words
    return 10 * len(asked & set(_WORD.findall(passage.casefold()))) / len(asked) if asked else 0.0


class QueryCounters:
    """The counters of a project.

    Args:
        database: of the project. Queries are not stored, only their SHA-256.
    """

    def __init__(self, database: EvidenceDatabase) -> None:
        self._database = database

    def count(self, query: str, n_results: int, relevance: float) -> None:
        """Count a search, unless the project cannot be written to or is constantly locked.

        Args:
            query: what was searched for.
            n_results: number of passages returned.
            relevance: of the first.
        """
        if not self._database.path.exists():  # looking creates nothing
            return
        digest = hashlib.sha256(" ".join(query.casefold().split()).encode()).digest()
        with suppress(IndexWriteError, IndexLockedError), self._database.changing(durable=False) as connection:
            known = connection.execute("INSERT OR IGNORE INTO asked VALUES (?)", (digest,)).rowcount == 0
            counted = (("queries", 1), ("results", n_results), ("without", not n_results), ("repeated", known))
            connection.executemany(_ADD, [*((name, float(value)) for name, value in counted), ("relevance", relevance)])

    def read(self) -> QueryStatistics:
        """Return the counts so far."""
        found: dict[object, object] = dict(self._database.rows("SELECT name, value FROM counters"))
        value = {name: float(count) if isinstance(count := found.get(name), int | float) else 0.0 for name in _NAMES}
        answered = value["queries"] - value["without"]
        return QueryStatistics(
            queries=int(value["queries"]),
            results=int(value["results"]),
            without_results=int(value["without"]),
            repeated=int(value["repeated"]),
            average_relevance=min(10.0, value["relevance"] / answered) if answered > 0 else 0.0,
        )


_NAMES = ("queries", "results", "without", "repeated", "relevance")
