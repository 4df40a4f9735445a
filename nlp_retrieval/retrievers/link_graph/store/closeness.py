"""How close two passages are by their words: the cosine of their terms, weighted by inverse document frequency squared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms

_PAIRS_AT_ONCE = 1 << 14


class TermCloseness:
    """The closeness of pairs of passages.

    A pair has the cosine of two vectors that hold, for each term of a passage, its inverse document frequency. Titles are
    part of a passage. Stop words count like other terms: so many passages have them that they weigh next to nothing.

    Args:
        terms: those of all passages.
    """

    def __init__(self, terms: PassageTerms) -> None:
        self._terms = terms

    def of_pairs(self, ones: Rows, others: Rows) -> Scores:
        """Return the cosine of each pair, 0 to 1; memory is bounded by some thousands of pairs.

        Args:
            ones: rows, where equal ones should stand together.
            others: rows.
        """
        cosines = np.zeros(len(ones))
        for begin in range(0, len(ones), _PAIRS_AT_ONCE):
            part = slice(begin, begin + _PAIRS_AT_ONCE)
            cosines[part] = self._of_some(ones[part], others[part])
        return cosines

    def _of_some(self, ones: Rows, others: Rows) -> Scores:
        one, one_number = np.unique(ones, return_inverse=True)
        other, other_number = np.unique(others, return_inverse=True)
        rows, rows_number = np.unique(np.concatenate([one, other]), return_inverse=True)
        terms, counts = self._terms.of_rows(rows)
        begins = np.cumsum(counts) - counts
        vocabulary, number = np.unique(terms, return_inverse=True)
        squares = (self._terms.information_of(vocabulary) ** 2)[number]
        lengths = np.bincount(np.repeat(np.arange(len(rows)), counts), squares, len(rows))
        one_rows, other_rows = rows_number[: len(one)][one_number], rows_number[len(one) :][other_number]
        shared = _shared(number, squares, counts, begins, one_rows, other_rows, len(vocabulary))
        cosines: Scores = shared / np.sqrt(np.maximum(lengths[one_rows] * lengths[other_rows], np.finfo(np.float64).tiny))
        return cosines


def _shared(
    number: NDArray[np.int64],
    squares: Scores,
    counts: Rows,
    begins: Rows,
    one_rows: Rows,
    other_rows: Rows,
    n_terms: int,
) -> Scores:
    """The weights of the terms that both of a pair have, added up."""
    owner = np.repeat(np.arange(len(counts)), counts)
    keys = owner * n_terms + number  # rising: rows are, and the terms of each
    n_asked = counts[other_rows]
    entries = np.repeat(begins[other_rows] - (np.cumsum(n_asked) - n_asked), n_asked) + np.arange(n_asked.sum())
    wanted = np.repeat(one_rows, n_asked) * n_terms + number[entries]
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    hit = keys[places] == wanted if len(keys) else np.zeros(0, bool)
    pair = np.repeat(np.arange(len(other_rows)), n_asked)
    shared: Scores = np.bincount(pair[hit], squares[entries[hit]], len(other_rows)).astype(np.float64)
    return shared
