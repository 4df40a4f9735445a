"""The signal of patterns: how much of what a query asks for, by the profile's keywords and patterns, stands in a passage."""

from __future__ import annotations

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.rerankers.multi_signal.features import COUNTED, Features, Focus
from nlp_retrieval.rerankers.multi_signal.texts import AnalysedTexts

__all__ = ["pattern_scores"]


def pattern_scores(features: Features, focus: Focus, texts: AnalysedTexts, slots: Rows) -> Scores | None:
    """Score passages by keywords and patterns.

    In each group that counts, a passage has m distinct keywords and, up to three times each, matches of patterns; the group
    gives 1 - 2^-m, so that each further one brings half of what the one before brought. The score is the weighted mean of
    the groups: between 0 and 1, and never lower with a match more.

    Args:
        features: of the profile.
        focus: which groups count, and how much.
        texts: analysed with these features.
        slots: ``[passages]``.

    Returns:
        ``[passages]``; None where no group counts.
    """
    if not focus.groups:
        return None
    found, owner = texts.features.of(slots)
    counts, _ = texts.counts.of(slots)
    counted = np.where(found < features.n_keywords, 1, np.minimum(counts, COUNTED))
    total = np.zeros(len(slots))
    for members, weight in zip(focus.features, focus.weights, strict=True):
        wanted = np.zeros(len(features), np.bool_)
        wanted[members] = True
        here = wanted[found]
        matches = np.bincount(owner[here], counted[here], minlength=len(slots))
        total += weight * -np.expm1(-np.log(2.0) * matches)
    scores: Scores = total / sum(focus.weights)
    return scores
