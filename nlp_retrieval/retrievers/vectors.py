"""The interface of retrievers over vectors for comparing passages beyond a query, and their encoding."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Hits, Mask, Rows
from nlp_retrieval.core.context import ENCODER_LIMIT, warn_of_cut
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.progress_bars import tracked
from nlp_retrieval.core.search.retriever import BaseRetriever, current_stages
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.encoders.passages import write_passages

__all__ = ["VectorRetriever"]

_BATCH = 1024


class VectorRetriever(BaseRetriever):
    """A retriever that keeps a vector of every passage, and compares them by the inner product."""

    encoder: BaseEncoder

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Return how many numbers a vector has; of an opened retriever."""

    @abstractmethod
    def encode(self, queries: list[str]) -> Vectors:
        """Return the vectors of queries, ``[queries, dimension]``; for an opened retriever."""

    @abstractmethod
    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""

    @abstractmethod
    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of items, ``[rows, dimension]``, as exactly as the index keeps them."""


def encoded_queries(retriever: VectorRetriever, queries: list[str]) -> Vectors:
    """Encode queries in batches, each once where stages are kept; ``[queries, dimension]``."""

    def encode(queries: list[str]) -> Vectors:
        slices = [queries[first : first + _BATCH] for first in range(0, len(queries), _BATCH)]
        parts = [
            checked_vectors(retriever.encoder.encode_queries(part), part, retriever.encoder, retriever.dimension)
            for part in tracked(f"{retriever.name}: encoding queries", slices, len(queries))
        ]
        return np.concatenate(parts)

    if not queries:
        return np.zeros((0, retriever.dimension), np.float32)
    return current_stages().encoded(retriever.encoder, queries, encode)


def write_vectors(retriever: VectorRetriever, items: ItemTable, path: Path, dimension: int | None) -> int:
    """Encode items into a ``.npy`` file, and return the dimension, which has to be the one that is given, if one is."""
    batches = tracked(f"{retriever.name}: encoding", items.texts(_BATCH), len(items))
    written, n_cut = write_passages(retriever.encoder, batches, len(items), path, dimension)
    warn_of_cut(retriever.name, n_cut, len(items), *ENCODER_LIMIT)
    return written or 0
