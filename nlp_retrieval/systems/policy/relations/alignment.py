"""Words of one version of a text that are carried over into the next, in runs of four.

A word is carried over if it is in a run of four words that the other version has anywhere: passages that are split, joined or
moved are not new. A passage of fewer than four words is carried over if the other version has one with the same words. The work
is linear in the words, except for runs that many passages share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core import Mask, Scores

__all__ = ["Aligned", "Counterpart", "aligned"]

_WORD = re.compile(r"[^\W_]+")
_RUN = 4
_MOST_SHARING = 20
_MOST_WORDS = 20_000
Gram = tuple[str, ...]


@dataclass(frozen=True)
class Counterpart:
    """A passage of the later version, and the one of the earlier version that it replaces.

    Args:
        later: number of the passage among those of the later version.
        earlier: number among those of the earlier version.
        carried: twice the words carried over, over the words of both; 0 to 1.
        later_span: the longest run that both have, in characters of the later passage; empty if they share none.
        earlier_span: the same run in the earlier passage.
    """

    later: int
    earlier: int
    carried: float
    later_span: tuple[int, int]
    earlier_span: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Aligned:
    """Alignment of two versions.

    Args:
        counterparts: in the order of the later passages.
        new: ``[later]``, the share of a passage's words that the earlier version does not have.
        gone: ``[earlier]``, the share that the later version does not have.
    """

    counterparts: list[Counterpart]
    new: Scores
    gone: Scores


class _Passage:
    """A passage as words."""

    def __init__(self, text: str) -> None:
        self.spans = [match.span() for _, match in zip(range(_MOST_WORDS), _WORD.finditer(text), strict=False)]
        self.words = [text[begin:end].casefold() for begin, end in self.spans]
        self.size = min(_RUN, len(self.words))

    def grams(self) -> Iterator[tuple[int, Gram]]:
        """Yield each run of four words and its begin; of a shorter passage all its words."""
        if self.words:
            for first in range(len(self.words) - self.size + 1):
                yield first, tuple(self.words[first : first + self.size])


def aligned(earlier: Sequence[str], later: Sequence[str], least: float) -> Aligned:
    """Align two versions.

    Args:
        earlier: the passages of the earlier version.
        later: those of the later one.
        least: the least ``carried`` of passages that correspond.
    """
    old, new = [_Passage(text) for text in earlier], [_Passage(text) for text in later]
    places: dict[Gram, list[int]] = {}
    for number, passage in enumerate(old):
        for gram in {gram for _, gram in passage.grams()}:
            places.setdefault(gram, []).append(number)
    found: dict[tuple[int, int], Counterpart] = {}
    best_of_old: dict[int, Counterpart] = {}
    fresh = np.zeros(len(new))
    for number, passage in enumerate(new):
        carried = np.zeros(len(passage.words), bool)
        shared: dict[int, Mask] = {}
        for first, gram in passage.grams():
            owners = places.get(gram)
            if owners is None:
                continue
            carried[first : first + passage.size] = True
            for owner in owners[:_MOST_SHARING]:
                mask = shared.setdefault(owner, np.zeros(len(passage.words), bool))
                mask[first : first + passage.size] = True
        fresh[number] = 1 - carried.mean() if len(carried) else 0.0
        candidates = [_pair(number, passage, owner, old[owner], mask) for owner, mask in shared.items()]
        if candidates:
            best = min(candidates, key=lambda pair: (-pair.carried, abs(pair.earlier - number), pair.earlier))
            found[number, best.earlier] = best
        for pair in candidates:  # a passage that was merged into a longer one keeps a counterpart too
            known = best_of_old.get(pair.earlier)
            if known is None or pair.carried > known.carried:
                best_of_old[pair.earlier] = pair
    for pair in best_of_old.values():
        found.setdefault((pair.later, pair.earlier), pair)
    kept = sorted((pair for pair in found.values() if pair.carried >= least), key=lambda pair: (pair.later, pair.earlier))
    there = {gram for passage in new for _, gram in passage.grams()}
    return Aligned([_shown(pair, new, old) for pair in kept], fresh, np.array([_gone(passage, there) for passage in old]))


def _pair(number: int, passage: _Passage, owner: int, other: _Passage, mask: Mask) -> Counterpart:
    words = len(passage.words) + len(other.words)
    return Counterpart(number, owner, min(1.0, 2 * float(mask.sum()) / words), (0, 0), (0, 0))


def _gone(passage: _Passage, there: set[Gram]) -> float:
    carried = np.zeros(len(passage.words), bool)
    for first, gram in passage.grams():
        if gram in there:
            carried[first : first + passage.size] = True
    return float(1 - carried.mean()) if len(carried) else 0.0


def _shown(pair: Counterpart, new: Sequence[_Passage], old: Sequence[_Passage]) -> Counterpart:
    """Return the pair with the longest sequence of runs that both have in the same order."""
    later, earlier = new[pair.later], old[pair.earlier]
    begins = {gram: first for first, gram in reversed(list(earlier.grams()))}
    best = (0, 0, 0)  # length, first in later, first in earlier
    length, expected = 0, -1
    for first, gram in later.grams():
        place = begins.get(gram, -1)
        if place >= 0 and place == expected:
            length += 1
        else:
            length = 1 if place >= 0 else 0
        expected = place + 1 if place >= 0 else -1
        if length > best[0]:
            best = (length, first - length + 1, place - length + 1)
    length, first, place = best
    if not length:
        return pair
    last = length - 1 + later.size - 1
    return Counterpart(
        pair.later,
        pair.earlier,
        pair.carried,
        (later.spans[first][0], later.spans[first + last][1]),
        (earlier.spans[place][0], earlier.spans[place + last][1]),
    )
