"""Queries expanded by pseudo-relevance feedback: RM3 as in Anserini, Bo1 as in Terrier.

The first hits of a query are assumed to be relevant, and their weightiest terms are added to it. Terms are chosen and weighted
by the statistics of all items that are not deleted, and ties go to the first in the alphabet; so an updated index expands a
query like one built at once. Terms of one character, or of more than 20, are not added (in scripts that are split into pairs of
characters, single ones add nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores, offsets_of
from nlp_retrieval.retrievers.bm25s.files import PostingFiles
from nlp_retrieval.retrievers.bm25s.scoring import Postings
from nlp_retrieval.retrievers.bm25s.segments import SegmentedScorer

__all__ = ["Expansion", "ExpansionRule", "QueryExpander", "Weighted"]

ExpansionRule = Literal["rm3", "bo1"]

_SHORTEST, _LONGEST = 2, 20
_COMMON = 0.1  # RM3 adds no term that a larger share of the items contains
_IN_DOCUMENTS = 2  # Bo1 adds a term that at least this many of the documents fed back contain


class Expansion(NamedTuple):
    """Settings of query expansion.

    Args:
        rule: ``rm3`` or ``bo1``.
        documents: number of first hits that are fed back.
        terms: number of their terms added to the query.
        original_weight: of the query against these terms, 0 to 1; for ``rm3``.
    """

    rule: ExpansionRule
    documents: int
    terms: int
    original_weight: float


class Weighted(NamedTuple):
    """Distinct terms of a query, the weight of each, and the part of it that comes from feedback."""

    terms: NDArray[np.int32]
    weights: Scores
    fed_back: Scores


class _RowTerms:
    """The terms of each item of a segment: its postings, ordered by row."""

    def __init__(self, postings: Postings, numbers: NDArray[np.int64]) -> None:
        order = np.argsort(postings.rows, kind="stable")
        self._terms = np.repeat(numbers.astype(np.int32), np.diff(postings.indptr))[order]
        self._frequencies = postings.frequencies[order]
        self._offsets = offsets_of(np.bincount(postings.rows, minlength=len(postings.lengths)))

    def of(self, row: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        part = slice(self._offsets[row], self._offsets[row + 1])
        return self._terms[part], self._frequencies[part]


class QueryExpander:
    """Expands queries by the terms of passages of an opened index; holds 8 bytes for each posting.

    Args:
        segments: opened files in the order of their rows, each with a mask of the items not deleted (None for all).
        scorer: of the same segments.
        expansion: how queries are expanded.
    """

    def __init__(
        self, segments: Sequence[tuple[PostingFiles, Mask | None]], scorer: SegmentedScorer, expansion: Expansion
    ) -> None:
        self._expansion = expansion
        self._n_items = scorer.n_items
        self._n_containing = scorer.n_containing
        self._occurrences = np.zeros(len(scorer.vocabulary), np.int64)
        self._row_terms: list[_RowTerms] = []
        for (opened, live), numbers in zip(segments, scorer.numbers, strict=True):
            self._occurrences[numbers] += _occurrences(opened.postings, live)
            self._row_terms.append(_RowTerms(opened.postings, numbers))
        self._first_rows = offsets_of(np.array([len(opened.postings.lengths) for opened, _ in segments]))
        names = list(scorer.vocabulary)
        ranked = sorted(range(len(names)), key=names.__getitem__)
        self._ranked = np.array(ranked, np.int32)
        self._ranks = np.empty(len(names), np.int64)
        self._ranks[self._ranked] = np.arange(len(names))
        lengths = np.fromiter(map(len, names), np.int64, len(names))
        self._may_join = (lengths >= _SHORTEST) & (lengths <= _LONGEST)

    def expand(self, terms: NDArray[np.int32], rows: Rows, scores: Scores) -> Weighted:
        """Return the terms of a query and of its first hits, weighted, in alphabetical order.

        Args:
            terms: of the query; repeated terms count again.
            rows: of the hits that are fed back, best first; without any, no term is returned.
            scores: of the same hits.
        """
        if len(rows) == 0:
            return Weighted(np.zeros(0, np.int32), np.zeros(0), np.zeros(0))
        found = [self._row_terms[part].of(int(row - self._first_rows[part])) for row, part in self._placed(rows)]
        documents = np.repeat(np.arange(len(rows)), [len(numbers) for numbers, _ in found])
        ranks = self._ranks[np.concatenate([np.zeros(0, np.int32), *(numbers for numbers, _ in found)])]
        frequencies = np.concatenate([np.zeros(0), *(times for _, times in found)])
        terms = terms[self._n_containing[terms] > 0]  # others may occur only in deleted items
        asked, counts = np.unique(self._ranks[terms], return_counts=True)
        if self._expansion.rule == "rm3":
            added, weights = self._by_rm3(documents, ranks, frequencies, scores)
            weights = weights * (1.0 - self._expansion.original_weight)
            own = self._expansion.original_weight * counts / counts.sum()
        else:
            added, weights = self._by_bo1(documents, ranks, frequencies, asked)
            own = counts / counts.max()
        joined, places = np.unique(np.concatenate([asked, added]), return_inverse=True)
        summed = _sums(places, np.concatenate([own, weights]), len(joined))
        fed_back = _sums(places[len(own) :], weights, len(joined))
        has_weight = summed > 0
        return Weighted(self._ranked[joined[has_weight]], summed[has_weight], fed_back[has_weight])

    def _placed(self, rows: Rows) -> list[tuple[int, int]]:
        parts = np.searchsorted(self._first_rows, rows, side="right") - 1
        return list(zip(rows.tolist(), parts.tolist(), strict=True))

    def _by_rm3(self, documents: Rows, ranks: Rows, frequencies: Scores, scores: Scores) -> tuple[Rows, Scores]:
        """The relevance model: each document's most frequent terms, by their share of these, weighted by its score."""
        numbers = self._ranked[ranks]
        kept = self._may_join[numbers] & (self._n_containing[numbers] <= _COMMON * self._n_items)
        documents, ranks, frequencies = documents[kept], ranks[kept], frequencies[kept]
        order = np.lexsort((ranks, -frequencies, documents))
        begins = offsets_of(np.bincount(documents, minlength=len(scores)))[documents]  # of a document, in this order
        order = order[np.arange(len(order)) - begins < self._expansion.terms]
        documents, ranks, frequencies = documents[order], ranks[order], frequencies[order]
        shares = frequencies / np.bincount(documents, frequencies, len(scores))[documents] * scores[documents]
        distinct, places = np.unique(ranks, return_inverse=True)
        added, weights = self._weightiest(distinct, _sums(places, shares, len(distinct)))
        return added, weights / (weights.sum() or 1.0)

    def _by_bo1(self, documents: Rows, ranks: Rows, frequencies: Scores, asked: Rows) -> tuple[Rows, Scores]:
        """Bose-Einstein statistics: the excess of terms in the documents over their expectation in the collection."""
        distinct, places, in_documents = np.unique(ranks, return_inverse=True, return_counts=True)
        occur = _sums(places, frequencies, len(distinct))
        fed_back = len(np.unique(documents))
        kept = np.isin(distinct, asked)
        kept |= self._may_join[self._ranked[distinct]] & (in_documents >= min(_IN_DOCUMENTS, fed_back))
        distinct, occur = distinct[kept], occur[kept]
        if len(distinct) == 0:
            return distinct, np.zeros(0)
        weights = _bose_einstein(occur, self._occurrences[self._ranked[distinct]] / self._n_items)
        most = occur[weights.argmax()]
        added, weights = self._weightiest(distinct, weights)
        return added, weights / _bose_einstein(most, most / self._n_items)

    def _weightiest(self, ranks: Rows, weights: Scores) -> tuple[Rows, Scores]:
        order = np.lexsort((ranks, -weights))[: self._expansion.terms]
        return ranks[order], weights[order]


def _sums(places: Rows, values: Scores, n: int) -> Scores:
    return np.bincount(places, values, n).astype(np.float64, copy=False)


def _bose_einstein(occur: Scores, expected: Scores) -> Scores:
    weights: Scores = occur * np.log2((1.0 + expected) / expected) + np.log2(1.0 + expected)
    return weights


def _occurrences(postings: Postings, live: Mask | None) -> NDArray[np.int64]:
    """Return how often each term occurs in the items, not counting deleted ones."""
    counted = postings.frequencies if live is None else postings.frequencies * live[postings.rows]
    totals = offsets_of(counted)
    return totals[postings.indptr[1:]] - totals[postings.indptr[:-1]]
