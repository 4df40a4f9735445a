"""Names of the signals, and their weighted mean."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nlp_retrieval.core.candidates import Scores

__all__ = ["SIGNALS", "weighted_mean"]

SIGNALS = ("transformer", "word_vectors", "patterns", "fuzzy")


def weighted_mean(columns: Mapping[str, Scores], weights: Mapping[str, float], n_passages: int) -> Scores:
    """Return the weighted mean of the signals that a passage has; the weights of the others are left out.

    Args:
        columns: ``[passages]`` by signal, 0 to 1; NaN if it is missing.
        weights: by signal.
        n_passages: number of passages.

    Returns:
        ``[passages]``, 0 to 1; NaN for a passage that has none of the signals.
    """
    total, weight = np.zeros(n_passages), np.zeros(n_passages)
    for name, column in columns.items():
        there = ~np.isnan(column)
        total[there] += weights[name] * column[there]
        weight[there] += weights[name]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: Scores = np.where(weight > 0, total / weight, np.nan)
    return mean
