"""Random ranked lists, and batches made of them, for comparing with plain loops."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from nlp_retrieval.core.candidates import Hits

Ranked = list[tuple[int, float]]
"""(row, score), best first, ties by row."""


def in_order(pairs) -> Ranked:
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def ranked_lists(max_size: int = 8, rows: int = 10):
    """A ranked list with many ties: few rows, few different scores."""
    scores = st.sampled_from([0.0, 0.5, 1.0, 1.5, -2.0, 7.25]) | st.floats(-1e6, 1e6)
    return st.dictionaries(st.integers(0, rows - 1), scores, max_size=max_size).map(lambda found: in_order(found.items()))


def hits_of(lists: list[Ranked]) -> Hits:
    return Hits.from_lists(
        [(np.array([r for r, _ in one], np.int64), np.array([s for _, s in one], np.float64)) for one in lists]
    )


def batch_of(lists: list[Ranked], label: str = "") -> Hits:
    hits = hits_of(lists)
    if not label:
        return hits
    return replace(hits, signals={f"{label}.score": hits.scores, f"{label}.rank": hits.ranks.astype(np.float64)})


def lists_of(batch) -> list[Ranked]:
    """The lists of a batch, as (row, score)."""
    bounds = batch.offsets.tolist()
    pairs = list(zip(batch.rows.tolist(), batch.scores.tolist(), strict=True))
    return [pairs[begin:end] for begin, end in pairwise(bounds)]


def signals_of(batch) -> list[dict[int, dict[str, float]]]:
    """Per list and row, the signals that are there."""
    found, bounds = [], batch.offsets.tolist()
    for begin, end in pairwise(bounds):
        found.append(
            {
                int(batch.rows[at]): {k: float(c[at]) for k, c in batch.signals.items() if not np.isnan(c[at])}
                for at in range(begin, end)
            }
        )
    return found
