"""Cuts lists of passages into blocks with a limited number of tokens, or into parts with as many tokens each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from nlp_retrieval.core.candidates import Rows


def blocks_of(rows: Rows, offsets: Rows, most: int) -> Iterator[slice]:
    """Cut a list of passages into slices with at most ``most`` tokens; a longer passage is a slice of its own.

    Args:
        rows: rows of the passages.
        offsets: ``[passages + 1]``, where the tokens of each passage begin.
        most: the most tokens in a slice.
    """
    ends = np.cumsum(offsets[rows + 1] - offsets[rows])
    begin = 0
    while begin < len(rows):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield slice(begin, end)
        begin = end


def parts_of(rows: Rows, offsets: Rows, count: int) -> list[slice]:
    """Cut a list of passages into ``count`` slices with about as many tokens each; some may be empty.

    Args:
        rows: rows of the passages.
        offsets: ``[passages + 1]``, where the tokens of each passage begin.
        count: how many slices.
    """
    ends = np.cumsum(offsets[rows + 1] - offsets[rows])
    cuts = np.searchsorted(ends, ends[-1:] * np.arange(1, count) // count, side="right").tolist()
    return [slice(begin, end) for begin, end in pairwise([0, *cuts, len(rows)])]
