"""Merging of ranked lists by reciprocal rank, so that all lists are represented from the start.

Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
SIGIR 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from nlp_retrieval.core import RRF_K

__all__ = ["merged_by_rank"]

T = TypeVar("T")


def merged_by_rank(lists: Sequence[Sequence[T]], key: Callable[[T], Hashable]) -> list[T]:
    """Return the elements of all lists, once each, by the sum of 1 / (60 + rank); ties in the order of the lists.

    Args:
        lists: best first.
        key: identifies equal elements, of which the one from the earlier list is returned.
    """
    scores: dict[Hashable, float] = {}
    first: dict[Hashable, tuple[int, int, T]] = {}
    for number, ranked in enumerate(lists):
        seen: set[Hashable] = set()
        for rank, one in enumerate(ranked, start=1):
            same = key(one)
            if same in seen:
                continue
            seen.add(same)
            scores[same] = scores.get(same, 0.0) + 1 / (RRF_K + rank)
            first.setdefault(same, (rank, number, one))
    order = sorted(first, key=lambda same: (-scores[same], first[same][:2]))
    return [first[same][2] for same in order]
