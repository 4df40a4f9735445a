"""Passages as runs of tokens, cut into blocks of so many tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nlp_retrieval.core.candidates import Rows


def blocks_of(rows: Rows, offsets: Rows, most: int) -> Iterator[slice]:
    """Cut a list of passages into slices that have at most so many tokens together, or are of one passage.

    Args:
        rows: passages.
        offsets: ``[passages + 1]``.
        most: so many tokens.
    """
    ends = np.cumsum(offsets[rows + 1] - offsets[rows])
    begin = 0
    while begin < len(rows):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield slice(begin, end)
        begin = end
