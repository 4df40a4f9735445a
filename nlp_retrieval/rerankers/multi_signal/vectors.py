"""Vectors of passages, encoded once and kept by slot, and their cosine with a query's."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.search.stages import current_stages
from nlp_retrieval.encoders.base import BaseEncoder, Vectors, checked_vectors
from nlp_retrieval.rerankers.multi_signal.texts import AnalysedTexts, PassageSource

__all__ = ["PassageVectors"]

_AT_ONCE = 256


class PassageVectors:
    """Cosines of queries and passages; a text without a vector (one of length 0) has none.

    Args:
        encoder: gives the vectors.
    """

    def __init__(self, encoder: BaseEncoder) -> None:
        self._encoder = encoder
        self._epoch = -1
        self._known = np.zeros(0, np.bool_)
        self._vectors: Vectors = np.zeros((0, 0), np.float32)

    def queries(self, queries: list[str]) -> dict[str, Vectors]:
        """Return the vector of each distinct query, of length 1; all NaN where it has none."""
        distinct = list(dict.fromkeys(queries))

        def encode(texts: list[str]) -> Vectors:
            return checked_vectors(self._encoder.encode_queries(texts), texts, self._encoder, None)

        vectors = _of_length_one(current_stages().encoded(self._encoder, distinct, encode))
        return dict(zip(distinct, vectors, strict=True))

    def cosines(self, query: Vectors, texts: AnalysedTexts, slots: Rows, source: PassageSource, positions: Rows) -> Scores:
        """Return the cosine of a query with passages, at least 0 (what points away is not alike); NaN without a vector.

        Args:
            query: ``[dimension]``, of :meth:`queries`.
            texts: hold the passages.
            slots: ``[passages]``.
            source: where those are read that are not encoded yet.
            positions: ``[passages]``, where they stand in the source.
        """
        self._encode(texts, slots, source, positions)
        every = len(slots) == len(self._vectors) and np.array_equal(slots, np.arange(len(slots)))
        vectors = self._vectors if every else self._vectors[slots]
        products = np.einsum("ij,j->i", vectors, query)  # row by row: a product of BLAS depends on the rows beside
        cosines: Scores = np.clip(products, 0.0, 1.0).astype(np.float64)
        return cosines

    def _encode(self, texts: AnalysedTexts, slots: Rows, source: PassageSource, positions: Rows) -> None:
        if self._epoch != texts.epoch:
            self._epoch, self._known, self._vectors = texts.epoch, np.zeros(0, np.bool_), np.zeros((0, 0), np.float32)
        if len(self._known) < len(texts):
            more = len(texts) - len(self._known)
            self._known = np.concatenate([self._known, np.zeros(more, np.bool_)])
        missing, first = np.unique(slots[~self._known[slots]], return_index=True)
        if len(missing) == 0:
            return
        where = positions[~self._known[slots]][first]
        for begin in range(0, len(missing), _AT_ONCE):
            part = missing[begin : begin + _AT_ONCE]
            passages = source.texts(where[begin : begin + _AT_ONCE])
            dimension = self._vectors.shape[1] or None
            vectors = checked_vectors(self._encoder.encode_passages(passages), passages, self._encoder, dimension)
            if len(self._vectors) < len(texts):
                grown = np.full((len(texts), vectors.shape[1]), np.nan, np.float32)
                grown[: len(self._vectors)] = self._vectors if dimension else 0.0
                self._vectors = grown
            self._vectors[part] = _of_length_one(vectors)
        self._known[missing] = True


def _of_length_one(vectors: Vectors) -> Vectors:
    """Vectors scaled to length 1; NaN where one has the length 0."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Vectors = np.where(lengths > 0, vectors / lengths, np.nan).astype(np.float32)
    return scaled
