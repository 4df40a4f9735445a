"""What passages have in common with a query and with the passages fed back, each on one scale.

Three similarities are compared: with the vector of the query; with the mean vector of the passages fed back, where from each
passage's vector the mean of its subject is taken off, so that what is said counts and not of whom; and with their weightiest
terms. Each is standardised by its mean and deviation over a fixed sample of the index, so that scores do not depend on which
passages a filter leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.faiss.exact import products_of
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.retrievers.link_graph.store.term_files import Terms

SAMPLED = 2048
"""So many passages, evenly spaced, stand for the index where similarities are standardised."""

_OF_A_SUBJECT = 256
_AT_ONCE = 4096


def evenly(rows: Rows, n: int) -> Rows:
    """Return at most n of some rows, evenly spaced, the first and the last among them."""
    return rows if len(rows) <= n else rows[np.linspace(0, len(rows) - 1, n).astype(np.int64)]


@dataclass(frozen=True, eq=False)
class Feedback:
    """What is fed back for one query.

    Args:
        rows: of the passages, best first.
        vector: ``[dimension]``, their mean, of length 1; zeros where nothing is fed back.
        terms: their weightiest terms, ascending.
        shares: what each adds to a passage that has it: its weight, all of length 1, times its information.
    """

    rows: Rows
    vector: Vectors
    terms: Terms
    shares: Scores


class Similarities:
    """Compares the passages of an index with queries and with what is fed back.

    Args:
        vectors_of: returns the vectors of rows, ``[rows, dimension]``.
        dimension: of the vectors.
        terms: of all passages.
        subjects: ``[passages]``, the number of each one's subject; -1 for none.
        live: ``[passages]``, which are not deleted.
    """

    def __init__(
        self, vectors_of: Callable[[Rows], Vectors], dimension: int, terms: PassageTerms, subjects: Rows, live: Mask
    ) -> None:
        self._vectors_of = vectors_of
        self._terms = terms
        self._subjects = subjects
        self._lengths = np.full(len(live), np.nan)
        rows = np.flatnonzero(live)
        n_subjects = int(subjects.max(initial=-1)) + 1
        self._means = np.zeros((n_subjects + 1, dimension), np.float32)  # the last belongs to passages without a subject
        order = rows[np.argsort(subjects[rows], kind="stable")]
        bounds = np.searchsorted(subjects[order], np.arange(-1, n_subjects + 1))
        for number, (begin, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True), start=-1):
            if end > begin:
                self._means[number] = vectors_of(evenly(order[begin:end], _OF_A_SUBJECT)).mean(axis=0)
        self._sample = evenly(rows, SAMPLED)
        self._sampled_vectors = vectors_of(self._sample) if len(rows) else np.zeros((0, dimension), np.float32)
        self._sampled_own = self._own(self._sample)
        hashes, counts = terms.of_rows(self._sample)
        order = np.argsort(hashes, kind="stable")
        self._sampled_terms = hashes[order]
        self._sampled_owners = np.repeat(np.arange(len(self._sample)), counts)[order]

    def fed_back(self, rows: Rows, n_terms: int) -> Feedback:
        """Return what some passages have in common.

        Args:
            rows: of the passages, best first.
            n_terms: at most so many terms.
        """
        mean = self._own(rows).mean(axis=0) if len(rows) else np.zeros(self._means.shape[1], np.float32)
        length = float(np.sqrt(np.square(mean).sum()))
        hashes, counts = self._terms.of_rows(rows)
        terms, number = np.unique(hashes, return_inverse=True)
        information = self._terms.information_of(terms)
        lengths = np.maximum(np.repeat(self._lengths_of(rows), counts), np.finfo(np.float64).tiny)
        weights = np.bincount(number, information[number] / lengths, len(terms))
        kept = np.sort(np.argsort(-weights, kind="stable")[:n_terms])
        weights = weights[kept]
        norm = float(np.sqrt(np.square(weights).sum())) or 1.0
        shares = weights / norm * information[kept]
        return Feedback(rows, (mean / length if length else mean).astype(np.float32), terms[kept], shares)

    def with_query(self, vector: Vectors, rows: Rows) -> Scores:
        """Return the standardised inner products of the query's vector and passages, ``[rows]``."""
        return _standardised(_products(vector, self._vectors_of, rows), _row_by_row(self._sampled_vectors, vector))

    def with_vector(self, feedback: Feedback, rows: Rows) -> Scores:
        """Return the standardised similarities of passages to the mean vector that is fed back, ``[rows]``."""
        return _standardised(_products(feedback.vector, self._own, rows), _row_by_row(self._sampled_own, feedback.vector))

    def with_terms(self, feedback: Feedback, rows: Rows) -> Scores:
        """Return the standardised similarities of passages to the terms that are fed back, ``[rows]``."""
        by_terms = self._by_terms(feedback.terms, feedback.shares, rows)
        return _standardised(by_terms, self._sampled_by_terms(feedback.terms, feedback.shares))

    def nearest(self, feedback: Feedback, rows: Rows) -> tuple[Rows, Scores]:
        """Return for each passage the one fed back that is most like it, and their similarity; itself does not count."""
        products = self._own(rows) @ self._own(feedback.rows).T
        products[rows[:, None] == feedback.rows[None, :]] = -np.inf
        best = products.argmax(axis=1)
        return feedback.rows[best], products[np.arange(len(rows)), best].astype(np.float64)

    def _own(self, rows: Rows) -> Vectors:
        """The vectors of passages without the means of their subjects, of length 1."""
        own = self._vectors_of(rows) - self._means[self._subjects[rows]]
        lengths = np.sqrt(np.einsum("ij,ij->i", own, own))
        return np.asarray(own / np.maximum(lengths, np.float32(1e-9))[:, None], np.float32)

    def _by_terms(self, terms: Terms, shares: Scores, rows: Rows) -> Scores:
        """The cosine of each passage's terms and those fed back, ``[rows]``.

        Args:
            terms: that are fed back, ascending.
            shares: what each adds to a passage that has it.
            rows: of the passages.
        """
        scores = np.zeros(len(rows))
        for begin in range(0, len(rows) if len(terms) else 0, _AT_ONCE):
            part = rows[begin : begin + _AT_ONCE]
            hashes, counts = self._terms.of_rows(part)
            places = np.minimum(np.searchsorted(terms, hashes), len(terms) - 1)
            hit = np.flatnonzero(terms[places] == hashes)
            owner = np.repeat(np.arange(len(part)), counts)[hit]
            scores[begin : begin + len(part)] = np.bincount(owner, shares[places[hit]], len(part))
        return scores / np.maximum(self._lengths_of(rows), np.finfo(np.float64).tiny)

    def _sampled_by_terms(self, terms: Terms, shares: Scores) -> Scores:
        """The same of the sample, whose passages are kept by term."""
        begins = np.searchsorted(self._sampled_terms, terms)
        counts = np.searchsorted(self._sampled_terms, terms, side="right") - begins
        entries = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        scores = np.bincount(self._sampled_owners[entries], np.repeat(shares, counts), len(self._sample))
        return scores / np.maximum(self._lengths_of(self._sample), np.finfo(np.float64).tiny)

    def _lengths_of(self, rows: Rows) -> Scores:
        """The length of each passage's vector of terms; computed once for each."""
        missing = np.unique(rows[np.isnan(self._lengths[rows])])
        for begin in range(0, len(missing), _AT_ONCE):
            part = missing[begin : begin + _AT_ONCE]
            hashes, counts = self._terms.of_rows(part)
            terms, number = np.unique(hashes, return_inverse=True)
            squares = self._terms.information_of(terms)[number] ** 2
            self._lengths[part] = np.sqrt(np.bincount(np.repeat(np.arange(len(part)), counts), squares, len(part)))
        return self._lengths[rows]


def _products(vector: Vectors, vectors_of: Callable[[Rows], Vectors], rows: Rows) -> Scores:
    return products_of(vector[None], vectors_of, np.zeros(len(rows), np.int64), rows).astype(np.float64)


def _row_by_row(vectors: Vectors, vector: Vectors) -> Scores:
    """Inner products, each summed by itself: not BLAS, whose threads wait for one another longer than this takes."""
    products: Scores = np.einsum("ij,j->i", vectors, vector).astype(np.float64)
    return products


def _standardised(values: Scores, sample: Scores) -> Scores:
    sample = sample.astype(np.float64)
    deviation = float(sample.std()) if len(sample) else 0.0
    standardised: Scores = (values - (float(sample.mean()) if len(sample) else 0.0)) / (deviation or 1.0)
    return standardised
