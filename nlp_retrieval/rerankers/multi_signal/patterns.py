"""The signal of patterns: the share of a query's keywords, patterns and numbers that a passage has."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.rerankers.multi_signal.features import COUNTED, MENTIONED, Features, Focus
from nlp_retrieval.rerankers.multi_signal.texts import AnalysedTexts

__all__ = ["pattern_scores"]


def pattern_scores(
    features: Features | None, focus: Focus | None, texts: AnalysedTexts, slots: Rows, numbers: Scores | None = None
) -> Scores | None:
    """Score passages by keywords, patterns and numbers.

    In each group that counts, a passage has m distinct keywords and matches of patterns, up to three times each; the group
    scores 1 - 2^-m, so that each further match adds half as much as the one before. The numbers that the query names form one
    more group, as if it were mentioned. The score is the weighted mean of the groups: between 0 and 1, and never lower with
    another match.

    Args:
        features: of the profile; None without one.
        focus: the groups that count, with weights; None without a profile.
        texts: analysed with these features.
        slots: ``[passages]``.
        numbers: ``[passages]``, number of the query's numbers in a passage; None if it names none.

    Returns:
        ``[passages]``; None if nothing counts.
    """
    total, weights = np.zeros(len(slots)), 0.0
    if features is not None and focus is not None and focus.groups:
        found, owner = texts.features.of(slots)
        counts, _ = texts.counts.of(slots)
        counted = np.where(found < features.n_keywords, 1, np.minimum(counts, COUNTED))
        for members, weight in zip(focus.features, focus.weights, strict=True):
            wanted = np.zeros(len(features), np.bool_)
            wanted[members] = True
            here = wanted[found]
            total += weight * _saturated(np.bincount(owner[here], counted[here], len(slots)).astype(np.float64))
            weights += weight
    if numbers is not None:
        total += MENTIONED * _saturated(numbers)
        weights += MENTIONED
    return total / weights if weights else None


def _saturated(matches: Scores) -> Scores:
    """1 - 2^-m."""
    share: Scores = -np.expm1(-np.log(2.0) * matches)
    return share
