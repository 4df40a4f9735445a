"""What retrievers over vectors offer to those that compare passages with more than a query."""

from __future__ import annotations

from abc import abstractmethod

from nlp_retrieval.core.candidates import Hits, Mask, Rows
from nlp_retrieval.core.search.retriever import BaseRetriever
from nlp_retrieval.encoders.base import BaseEncoder, Vectors

__all__ = ["VectorRetriever"]


class VectorRetriever(BaseRetriever):
    """A retriever that keeps a vector of every passage, and compares them by the inner product."""

    encoder: BaseEncoder

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many numbers a vector has; of an opened retriever."""

    @abstractmethod
    def encode(self, queries: list[str]) -> Vectors:
        """Return the vectors of queries, ``[queries, dimension]``; for an opened retriever."""

    @abstractmethod
    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""

    @abstractmethod
    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of items, ``[rows, dimension]``, as exactly as the index keeps them."""
