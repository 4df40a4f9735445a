"""BM25 over all segments of an index with one set of statistics, that of the items that are not deleted.

The number of items, their average length, and the number of items that contain a term are counted over all segments,
without deleted items. A term's weight in an item needs nothing else, and each query's terms are added up in their order in
the query. So scores equal, to the last bit, those of an index built at once from the same items.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.backend import Backend
from nlp_retrieval.core.candidates import Hits, Mask, Scores, search_parts
from nlp_retrieval.retrievers.bm25s.files import PostingFiles
from nlp_retrieval.retrievers.bm25s.scoring import Scorer, bm25_weights, found_in, inverse_frequencies, length_norms


class _SegmentPart(NamedTuple):
    """A segment: its scorer, its rows in the index, and its own number of each shared term (None if they are the same)."""

    scorer: Scorer
    rows: slice
    numbers: NDArray[np.int32] | None


class SegmentedScorer:
    """Scores queries against several segments as if they were one.

    Args:
        segments: opened files in the order of their rows, each with a mask of the items not deleted (None for all).
        k1: see :class:`~nlp_retrieval.retrievers.bm25s.retriever.Bm25sRetriever`.
        b: the same.
        backend: the same.
    """

    def __init__(self, segments: Sequence[tuple[PostingFiles, Mask | None]], k1: float, b: float, backend: Backend) -> None:
        self.vocabulary = dict(segments[0][0].vocabulary)
        """Numbers of the terms of all segments; the terms of the first keep theirs."""
        self.numbers = [
            np.fromiter((self.vocabulary.setdefault(term, len(self.vocabulary)) for term in opened.vocabulary), np.int64)
            for opened, _ in segments
        ]
        """For each segment the shared numbers of its own terms."""
        n_containing = np.zeros(len(self.vocabulary), np.int64)
        n_items = total = 0
        for (opened, live), numbers in zip(segments, self.numbers, strict=True):
            n_containing[numbers] += found_in(opened.postings.rows, opened.postings.indptr, live)
            lengths = opened.postings.lengths if live is None else opened.postings.lengths[live]
            n_items += len(lengths)
            total += int(lengths.sum(dtype=np.int64))
        self.n_items, self.n_containing = n_items, n_containing
        frequencies = inverse_frequencies(n_containing, n_items)
        mean = max(total / max(n_items, 1), 1.0)
        self._parts: list[_SegmentPart] = []
        first = 0
        for (opened, _), numbers in zip(segments, self.numbers, strict=True):
            rows = slice(first, first + len(opened.postings.lengths))
            norms = length_norms(opened.postings.lengths, mean, k1, b)
            local = np.full(len(n_containing), len(numbers), np.int32)  # terms that the segment lacks: the one without postings
            local[numbers] = np.arange(len(numbers), dtype=np.int32)
            weights = bm25_weights(opened.postings, frequencies[numbers], norms)
            scorer = Scorer(opened.postings.rows, opened.postings.indptr, weights, len(opened.postings.lengths), backend)
            self._parts.append(_SegmentPart(scorer, rows, local if len(segments) > 1 else None))
            first = rows.stop

    def search(
        self, counts: NDArray[np.int32], terms: NDArray[np.int32], k: int, allowed: Mask | None, factors: Scores | None = None
    ) -> Hits:
        """Return the best k matching items per query; ties at the cut go to the lowest rows.

        Args:
            counts: per query, how many terms it has.
            terms: the terms of all queries, one after another; repeated terms count again.
            k: length of the lists.
            allowed: ``[rows]``, or None.
            factors: the weight of each term in its query, above 0; None if all are 1.
        """
        parts = [
            (rows, partial(scorer.search, counts, terms if numbers is None else numbers[terms], factors=factors))
            for scorer, rows, numbers in self._parts
        ]
        return search_parts(parts, len(counts), k, allowed)

    def weights_in(self, row: int, terms: NDArray[np.int32]) -> Scores:
        """Return each term's part of the score of an item, 0 for terms that it lacks."""
        scorer, rows, numbers = next(part for part in self._parts if row < part.rows.stop)
        return scorer.weights_in(row - rows.start, terms if numbers is None else numbers[terms])
