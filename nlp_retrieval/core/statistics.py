"""Statistics of a collection, for retrievers and rerankers that weigh words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class CollectionStatistics:
    """Lengths, and document and collection frequencies of terms, without deleted items.

    From a searcher (:meth:`~nlp_retrieval.core.search.base_searcher.BaseSearcher.collection_statistics`) or an opened
    ``bm25``. Terms are those of its index: stemmed and without stop words; ``terms`` splits a text in the same way.

    Args:
        n_items: how many items there are.
        lengths: ``[rows]``, how many terms an item has; 0 for a deleted one.
        vocabulary: numbers of the terms.
        document_frequencies: ``[terms]``, how many items contain a term, by its number.
        terms: returns the terms of a text in order, with repeats.
        count_occurrences: returns ``[terms]``, how often each term occurs in all items; called once.

    Examples:
        >>> searcher = Searcher(["bm25"])
        >>> report = searcher.index(items, "index")
        >>> statistics = searcher.collection_statistics()
        >>> statistics.n_items, statistics.lengths.tolist(), round(statistics.average_length, 2)
        (3, [6, 5, 5], 5.33)
        >>> [(term, statistics.document_frequency(term)) for term in statistics.terms("Whales eat krill and squids")]
        [('whale', 1), ('eat', 1), ('krill', 2), ('squid', 0)]
    """

    n_items: int
    lengths: NDArray[np.int32]
    vocabulary: Mapping[str, int]
    document_frequencies: NDArray[np.int64]
    terms: Callable[[str], list[str]]
    count_occurrences: Callable[[], NDArray[np.int64]]

    def __repr__(self) -> str:
        return f"<{self.n_items:,} items of {self.average_length:.1f} terms; {len(self.vocabulary):,} distinct terms>"

    @cached_property
    def n_terms(self) -> int:
        """How many terms all items have together, with repeats."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def average_length(self) -> float:
        """The mean number of terms of an item."""
        return self.n_terms / max(self.n_items, 1)

    def document_frequency(self, term: str) -> int:
        """Return how many items contain a term; 0 if none does."""
        number = self.vocabulary.get(term)
        return 0 if number is None else int(self.document_frequencies[number])

    def collection_frequency(self, term: str) -> int:
        """Return how often a term occurs in all items; 0 if it does not."""
        number = self.vocabulary.get(term)
        return 0 if number is None else int(self._occurrences[number])

    @cached_property
    def _occurrences(self) -> NDArray[np.int64]:
        return self.count_occurrences()
