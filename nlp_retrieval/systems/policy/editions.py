"""Editions of a subject's plan, and what became of each passage from one to the next: unchanged, edited, added or dropped.

Editions are ordered by the metadata ``year``, ``edition``, ``version``, ``date`` and ``captured``, as far as all passages that
have one of them have it. A word is carried over if it is in a run of four words that the other edition has anywhere: passages
that are split, joined or moved are not new. The work is linear in the words, except for short passages.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

import numpy as np

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import Mask, Scores
from nlp_retrieval.systems.policy.answers import document_of

ORDERED_BY = ("year", "edition", "version", "date", "captured")
_WORDS = "draft first earlier previous old second later current new third fourth fifth latest final".split()
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2})(?:[T ].{0,40})?)?)?")
_NUMBER = re.compile(r"v?(-?\d{1,12}(?:\.\d{1,12})?)(?:st|nd|rd|th)?")
_WORD = re.compile(r"[^\W_]+")
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
_RUN, _SHORT, _MOST_SHARING, _MOST_WORDS = 4, 12, 20, 20_000
"""Words of a run, and of a passage that is not short; passages that one run compares, and words of a passage that are read."""

CARRIED = 0.25
"""Least share of words that a passage and its counterpart have in common runs."""

_LONGEST = 3000
"""Words and marks of a text that are compared for display, at most: the time is quadratic."""

Relation = Literal["unchanged", "edited", "added", "dropped"]
_RELATIONS: tuple[Relation, ...] = ("unchanged", "edited", "added", "dropped")


def edition_numbers(items: Sequence[SearchableItem]) -> list[int | None]:
    """Return for each passage of one subject the place of its edition, from 0; None where nothing says it."""
    keys = [tuple(order_of(item.metadata.get(field)) for field in ORDERED_BY) for item in items]
    known = [key for key in keys if any(value is not None for value in key)]
    shared = [place for place in range(len(ORDERED_BY)) if all(key[place] is not None for key in known)]
    if not known or not shared:
        return [None] * len(items)
    own = [tuple(key[place] for place in shared) for key in keys]
    order = {key: number for number, key in enumerate(sorted({key for key in own if None not in key}))}
    return [order.get(key) for key in own]


def order_of(value: object) -> tuple[int, float] | None:
    """Return the sort key of a value: a number, also as text, a date, or a word that has an order."""
    if isinstance(value, str):
        text = value.strip().casefold()
        if text in _WORDS:
            return 1, float(_WORDS.index(text))
        if date := _DATE.fullmatch(text):
            year, month, day = (int(part or 1) for part in date.groups())
            return 0, year + (month - 1) / 12 + (day - 1) / 372
        return (0, float(number[1])) if (number := _NUMBER.fullmatch(text)) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15:
        return None
    return (0, float(value)) if math.isfinite(value) else None


def editions_of(items: Iterable[SearchableItem]) -> list[tuple[str, list[SearchableItem]]]:
    """Return the editions of a subject's plan by the names of their documents, the earliest first; empty without an order."""
    every = list(items)
    editions: dict[int, list[SearchableItem]] = {}
    for item, number in zip(every, edition_numbers(every), strict=True):
        if number is not None:
            editions.setdefault(number, []).append(item)
    return [(", ".join(dict.fromkeys(map(document_of, own))), own) for _, own in sorted(editions.items())]


def n_editions(items: Sequence[SearchableItem]) -> int | None:
    """Return the number of editions of a subject's plan; None if its documents have no order."""
    numbers = set(edition_numbers(items))
    if len(numbers) == 1 and len({document_of(item) for item in items}) == 1:
        return 1
    return None if None in numbers else len(numbers)


@dataclass(frozen=True)
class PassageChange:
    """A passage of one edition and its counterpart in the next; one that was added or dropped has none."""

    relation: Relation
    earlier: SearchableItem | None
    later: SearchableItem | None


@dataclass(frozen=True)
class EditionChanges:
    """Changes between two consecutive editions."""

    earlier: str
    later: str
    changes: tuple[PassageChange, ...]

    def counts(self) -> dict[Relation, int]:
        """Return the number of passages by relation."""
        counted = Counter(change.relation for change in self.changes)
        return {relation: counted[relation] for relation in _RELATIONS}


def changes_of(items: Iterable[SearchableItem]) -> list[EditionChanges]:
    """Return the changes between the editions of one subject, from the earliest on; empty for fewer than two."""
    return [
        EditionChanges(earlier, later, tuple(_changes_between(before, after)))
        for (earlier, before), (later, after) in pairwise(editions_of(items))
    ]


def _changes_between(earlier: Sequence[SearchableItem], later: Sequence[SearchableItem]) -> Iterator[PassageChange]:
    pairs = aligned([item.content for item in earlier], [item.content for item in later]).counterparts
    of_old: dict[int, int] = {}
    of_new: dict[int, int] = {}
    for pair in sorted(pairs, key=lambda one: (-one.carried, abs(one.earlier - one.later), one.earlier)):
        if pair.earlier not in of_old and pair.later not in of_new:
            of_old[pair.earlier], of_new[pair.later] = pair.later, pair.earlier
    for new, item in enumerate(later):
        before = earlier[of_new[new]] if new in of_new else None
        same = before is not None and before.content.split() == item.content.split()
        yield PassageChange("added" if before is None else "unchanged" if same else "edited", before, item)
    yield from (PassageChange("dropped", item, None) for old, item in enumerate(earlier) if old not in of_old)


@dataclass(frozen=True)
class Counterpart:
    """A passage of the later edition, and the one of the earlier edition that it replaces."""

    later: int
    earlier: int
    carried: float


@dataclass(frozen=True, eq=False)
class Aligned:
    """Two editions compared."""

    counterparts: list[Counterpart]
    new: Scores
    gone: Scores


def aligned(earlier: Sequence[str], later: Sequence[str], least: float = CARRIED) -> Aligned:
    """Compare two editions."""
    old, new = ([_words(text) for text in texts] for texts in (earlier, later))
    owners: dict[tuple[str, ...], list[int]] = {}
    for number, words in enumerate(old):
        for run in {run for _, run in _runs(words)}:
            owners.setdefault(run, []).append(number)
    best: dict[int, Counterpart] = {}
    of_old: dict[int, Counterpart] = {}  # a passage that was merged into a longer one keeps a counterpart too
    for number, words in enumerate(new):
        shared: dict[int, Mask] = {}
        for first, run in _runs(words):
            for owner in owners.get(run, [])[:_MOST_SHARING]:
                if owner not in shared:
                    shared[owner] = np.zeros(len(words), bool)
                shared[owner][first : first + len(run)] = True
        for owner, mask in shared.items():
            pair = Counterpart(number, owner, min(1.0, 2 * float(mask.sum()) / (len(words) + len(old[owner]))))
            if number not in best or _rank(pair) < _rank(best[number]):
                best[number] = pair
            if owner not in of_old or pair.carried > of_old[owner].carried:
                of_old[owner] = pair
    pairs = {(pair.later, pair.earlier): pair for pair in (*of_old.values(), *best.values()) if pair.carried >= least}
    pairs |= {(pair.later, pair.earlier): pair for pair in _short_pairs(old, new, set(pairs)) if pair.carried >= least}
    runs_of_later = {run for words in new for _, run in _runs(words)}
    return Aligned(
        [pair for _, pair in sorted(pairs.items())],
        np.array([_share_without(words, owners) for words in new]),
        np.array([_share_without(words, runs_of_later) for words in old]),
    )


def _short_pairs(old: list[list[str]], new: list[list[str]], paired: set[tuple[int, int]]) -> Iterator[Counterpart]:
    """Yield the nearest of the short passages that share no run with any other, such as those with one figure changed."""
    left, others = ({pair[side] for pair in paired} for side in (0, 1))
    bags = {place: Counter(words) for place, words in enumerate(old) if len(words) < _SHORT and place not in others}
    for place, words in enumerate(new):
        if len(words) < _SHORT and place not in left and bags:
            own = Counter(words)
            common = {other: (own & bag).total() for other, bag in bags.items()}
            shares = {other: n / (own.total() + bags[other].total() - n) if n else 0.0 for other, n in common.items()}
            yield min((Counterpart(place, other, share) for other, share in shares.items()), key=_rank)


def _rank(pair: Counterpart) -> tuple[float, int, int]:
    return -pair.carried, abs(pair.earlier - pair.later), pair.earlier


def _words(text: str) -> list[str]:
    return [match[0].casefold() for match, _ in zip(_WORD.finditer(text), range(_MOST_WORDS), strict=False)]


def _runs(words: list[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each run of four words with its begin; of a shorter passage all its words."""
    size = min(_RUN, len(words))
    for first in range(len(words) - size + 1 if words else 0):
        yield first, tuple(words[first : first + size])


def _share_without(words: list[str], runs: Iterable[tuple[str, ...]]) -> float:
    """Return the share of words that are in none of the runs."""
    carried = np.zeros(len(words), bool)
    for first, run in _runs(words):
        if run in runs:
            carried[first : first + len(run)] = True
    return float(1 - carried.mean()) if words else 0.0


def word_runs(before: str, after: str) -> list[tuple[str, str]]:
    """Return the readable difference of two texts, as runs of words: ``("same" | "gone" | "new", text)``."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if max(len(old), len(new)) > _LONGEST:
        return [("gone", before), ("new", after)] if before != after else [("same", after)]
    runs: list[tuple[str, str]] = []
    for what, begin, end, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            runs.append(("same", "".join(new[start:stop])))
            continue
        for name, text in (("gone", "".join(old[begin:end])), ("new", "".join(new[start:stop]))):
            if text:
                runs.append((name, text))
    return runs
