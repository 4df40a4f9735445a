"""The interface of retrievers over vectors for comparing passages beyond a query, and their encoding."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Hits, Mask, Rows
from nlp_retrieval.core.context import add_note
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

    def encode(self, queries: list[str]) -> Vectors:
        """Return the vectors of queries, ``[queries, dimension]``; for an opened retriever."""
        if not queries:
            return np.zeros((0, self.dimension), np.float32)
        return current_stages().encoded(self.encoder, queries, self._encoded)

    def _encoded(self, queries: list[str]) -> Vectors:
        slices = [queries[first : first + _BATCH] for first in range(0, len(queries), _BATCH)]
        parts = [
            checked_vectors(self.encoder.encode_queries(part), part, self.encoder, self.dimension)
            for part in tracked(f"{self.name}: encoding queries", slices, len(queries))
        ]
        return np.concatenate(parts)

    @abstractmethod
    def search_vectors(self, vectors: Vectors, k: int, allowed: Mask | None) -> Hits:
        """Search for queries that :meth:`encode` encoded, as :meth:`search_batch` does."""

    @abstractmethod
    def vectors_of(self, rows: Rows) -> Vectors:
        """Return the vectors of items, ``[rows, dimension]``, as exactly as the index keeps them."""


def write_vectors(retriever: VectorRetriever, items: ItemTable, path: Path, dimension: int | None) -> int:
    """Encode items into a ``.npy`` file, and return the dimension, which has to be the one that is given, if one is."""
    batches = tracked(f"{retriever.name}: encoding", items.texts(_BATCH), len(items))
    written, n_cut = write_passages(retriever.encoder, batches, len(items), path, dimension)
    warn_of_cut(retriever.name, n_cut, len(items))
    return written or 0


def warn_of_cut(
    retriever: str,
    n_cut: int,
    n_texts: int,
    what: str = "passages",
    limit: str = "the encoder reads",
    cure: str = "where the model can read more, raise max_length; or index smaller chunks",
) -> None:
    """Warn that the rest of long texts is ignored; do nothing if no text was cut."""
    if n_cut:
        add_note(f"{retriever}: {n_cut:,} of {n_texts:,} {what} are longer than {limit}; the rest of each is left out ({cure})")


# The k best where scores tie at an engine's cut.

Matrix = tuple[NDArray[np.integer], NDArray[np.floating]]


def search_past_ties(
    search: Callable[[Rows, int], Matrix],
    n_queries: int,
    k: int,
    n_items: int,
    score: Callable[[Rows, Rows], NDArray[np.floating]] | None = None,
    slack: NDArray[np.floating] | None = None,
    past_the_cut: int = 8,
) -> Hits:
    """Return the best k per query, with the lowest rows where scores tie at the cut."""
    rows = np.full((n_queries, k), -1, np.int64)
    scores = np.zeros((n_queries, k))
    pending = np.arange(n_queries)
    depth = min(k + past_the_cut, n_items)
    while len(pending):
        rows_found, values = search(pending, depth)
        filled = rows_found >= 0
        values = np.where(filled, values, -np.inf)
        beyond = values[:, -1]  # rows that were not returned score at most this
        if score is not None and slack is not None:
            may_win = filled & (values >= (values[:, min(k, depth) - 1] - 2 * slack[pending])[:, None])
            owner, places = np.nonzero(may_win)
            beyond = beyond + slack[pending]
            values = np.full(values.shape, -np.inf)
            values[owner, places] = score(pending[owner], rows_found[owner, places].astype(np.int64, copy=False))
        order = np.lexsort((rows_found, -values), axis=1)[:, :k]
        width = order.shape[1]
        best = np.take_along_axis(values, order, axis=1)
        whole = (best[:, -1] > beyond) | ~filled[:, -1] | (depth >= n_items)
        done = pending[whole]
        rows[done, :width] = np.take_along_axis(rows_found, order, axis=1)[whole]
        scores[done, :width] = best[whole]
        pending = pending[~whole]
        depth = min(depth * 4, n_items)
    return Hits.from_matrix(rows, scores)
