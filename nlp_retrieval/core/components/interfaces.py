"""The interfaces that components implement.

A component needs one method or three: a loader ``stream``; a processor ``process``; a retriever ``build``, ``load`` and
``search_batch``; a reranker ``score_pairs``. The public methods of the base classes do what all engines need: the
index directory, flattening and merging sub-queries, cutting, ties, signals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.models import Gold, Query, SearchableItem

__all__ = ["BaseLoader", "BaseQueryLoader", "BaseUserQueryProcessor"]


class BaseLoader(Component, ABC):
    """A source of items."""

    kind: ClassVar[str] = "loaders"

    @abstractmethod
    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items in the order of the source; memory must not grow with its size.

        Raises:
            SourceError: the source is missing or malformed; the message says where.
        """

    def load(self) -> list[SearchableItem]:
        """Return all items as a list."""
        return list(self.stream())


class BaseQueryLoader(Component, ABC):
    """A source of queries and their gold. A loader of both items and queries implements both interfaces."""

    kind: ClassVar[str] = "loaders"

    @abstractmethod
    def queries(self) -> list[Query]:
        """Return the queries, in the order of the source.

        Raises:
            SourceError: the source is missing or malformed.
        """

    @abstractmethod
    def gold(self) -> list[Gold]:
        """Return the gold of exactly these queries, in the same order.

        Raises:
            SourceError: the source is missing or malformed.
        """


class BaseUserQueryProcessor(Component, ABC):
    """Turns a user's query into the sub-queries to run."""

    kind: ClassVar[str] = "processors"

    @abstractmethod
    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Return the sub-queries of each query, in order; an empty list means that nothing is searched."""

    def subqueries_per_query(self) -> int | None:
        """Return the most sub-queries that one query can become; None if unknown."""
        return None
