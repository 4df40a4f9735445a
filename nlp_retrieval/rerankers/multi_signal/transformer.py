"""The signal of sentence vectors: what a dense retriever has computed already, and an encoder where it has not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nlp_retrieval.core.candidates import CandidateBatch, Scores

__all__ = ["DENSE_SIGNALS", "dense_scores"]

DENSE_SIGNALS = ("faiss.score", "pgvector.score")
"""Signals of dense retrievers whose vectors have length 1, so that their inner product is the cosine."""


def dense_scores(batch: CandidateBatch, names: Iterable[str]) -> Scores:
    """Return the cosine that came with each candidate, within 0 and 1: what points away is not alike.

    Args:
        batch: the candidates.
        names: of signals; the first that a candidate has.

    Returns:
        ``[candidates]``, NaN where there is none.
    """
    scores = np.full(len(batch.rows), np.nan)
    for name in names:
        if name in batch.signals:
            missing = np.isnan(scores)
            scores[missing] = batch.signals[name][missing]
    within: Scores = np.clip(scores, 0.0, 1.0)
    return within
