"""The number of a claim that its source gives for something else.

Each number of a text is bound to the nearest words on its left and on its right, up to the comma, the "and" or the conjunction
that parts it from the next number; in a table to the head of its row and of its column. A claim gives a number for something
else if beside it is the nearest word that the source has beside another number of the same kind, and not the nearest one that
the source has on that side of its own.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.names import names_of
from nlp_retrieval.systems.evidence.lookups.numbers import are_of_one_kind, is_year
from nlp_retrieval.systems.evidence.lookups.opposites import numbered_things
from nlp_retrieval.systems.evidence.lookups.words import stemmed
from nlp_retrieval.text import Number, agreeing, dates_of, numbers_of, sentences_of

_ENDS = (
    re.compile(r"[;:|\t\n!?]|\b(?:while|whereas|but|although|versus|against|than|compared (?:with|to)|as opposed to)\b"),
    re.compile(r",(?!\d)"),
    re.compile(r"\b(?:and|or|to|after|before|from|und|oder|et|ou|y)\b"),
)
"""Where what belongs to one number ends, and to the next begins, the clearest first."""
_AFTERWARDS = re.compile(r"[;!?]|\b(?:while|whereas|but|although|versus|than|compared (?:with|to))\b")
_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)
_LISTED = re.compile(r"(?:\s[\w-]{1,20})?(?:,\s|,?\s(?:and|or)\s)(?:[$\u20ac\u00a3])?")
_TO = re.compile(r"[^.;:,]{0,20}\sto\s(?:[$\u20ac\u00a3])?")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_NO_QUANTITY = frozenset({"both", "single", "once", "twice", "first", "third", "half", "double", "triple"})
_WORDS_BESIDE, _NEAR, _SHORTEST = 4, 400, 4


class Bound(NamedTuple):
    """A number with the words to which it is bound on each side, the nearest first, and where its sentence or row begins."""

    number: Number
    left: tuple[str, ...]
    right: tuple[str, ...]
    place: int


class Misplaced(NamedTuple):
    """A number of a claim, as written, and the number that the passage has instead."""

    number: str
    other: str


def misplaced(claim: str, passage: str) -> list[Misplaced]:
    """Return the numbers of a claim that a passage has, but gives for something else."""
    claimed, there = bound_numbers(claim), bound_numbers(passage)
    in_range = {
        number
        for one, other in pairwise(claimed)
        if _TO.fullmatch(claim[one.number.end : other.number.begin])
        for number in (one, other)
    }
    found: dict[Misplaced, None] = {}
    for mine in claimed:
        agreed = [other for other in there if agreeing(mine.number, other.number)]
        rivals = [other for other in there if agreed and are_of_one_kind(mine.number, other.number)]
        rivals = [other for other in rivals if not agreeing(mine.number, other.number)]
        # "free under 16; adults pay 14 euros"
        rivals = [other for other in rivals if not other.number.unit.isupper() or any(own.number.unit for own in agreed)]
        instead = [_best(mine, [rival for rival in rivals if _is_said_of(mine, rival, own)]) for own in agreed]
        if instead and instead[0] and all(instead) and mine not in in_range:
            found[Misplaced(mine.number.written, instead[0].number.written)] = None
    return list(found)


def _best(mine: Bound, rivals: Sequence[Bound]) -> Bound | None:
    """Return the number with most of the words beside one of a claim."""
    words = (*mine.left, *mine.right)
    return max(rivals, key=lambda rival: sum(_is_in(word, words) for word in (*rival.left, *rival.right)), default=None)


def _is_said_of(mine: Bound, rival: Bound, own: Bound) -> bool:
    """Return whether the words beside a number of a claim are on a side of a rival in the source, and not of its own."""
    if abs(rival.number.begin - own.number.begin) > _NEAR:
        return False
    words = (*mine.left, *mine.right)
    for theirs, ours in ((rival.left, own.left or own.right), (rival.right, own.right or own.left)):
        of_them = [_is_in(word, words) for word in theirs if not _is_in(word, (*own.left, *own.right))]
        of_us = [_is_in(word, words) for word in ours if not _is_in(word, (*rival.left, *rival.right))]
        # what is said before a number may hold for those after it in its sentence
        goes_on = own.place == rival.place and own.number.begin < rival.number.begin
        if of_them and of_us and (any(of_them) > any(of_us) or (goes_on and all(of_them) > all(of_us))):
            return True
    return False


def _is_in(word: str, words: Sequence[str]) -> bool:
    """Return whether a word is among others, but for an ending: "Männern" is "Männer"."""
    stem = word[: max(_SHORTEST, len(word) - 2)]
    return word in words or (word.isalpha() and any(_is_form(stem, word, other) for other in words))


def _is_form(stem: str, word: str, other: str) -> bool:
    return len(word) >= _SHORTEST and other.isalpha() and other.startswith(stem) and abs(len(other) - len(word)) <= 2


@lru_cache(64)
def bound_numbers(text: str) -> list[Bound]:
    """Return the quantities and years of a text, each with the words beside it; days and months of dates are none."""
    dates = [(date.begin, date.end) for date in dates_of(text) if date.is_full]
    heads = [number for number in numbers_of(text) if _is_quantity(text, number)]
    heads = [number for number in heads if not any(begin <= number.begin < end for begin, end in dates)]
    found = [bound for number, bound in _in_tables(text, heads)] if "|" in text or "\t" in text else []
    in_tables = {bound.number for bound in found}
    rest = [number for number in heads if number not in in_tables]
    begins = [number.begin for number in rest]
    for begin, end in sentences_of(text):
        here = rest[bisect_left(begins, begin) : bisect_left(begins, end)]
        for kind in (False, True):  # years part other years, not quantities
            if heads := [number for number in here if is_year(number) == kind]:
                found += _in_sentence(text, begin, end, heads)
    return found


def _is_quantity(text: str, number: Number) -> bool:
    """Return whether a number is a quantity or a year: not "both", an ordinal, or part of a name ("Phase 2")."""
    if math.isnan(number.value) or number.others or number.parts or number.unit == "date":
        return False
    if not any(char.isdigit() for char in number.written):
        return number.value > 1 and number.written.lower() not in _NO_QUANTITY and not number.written.lower().endswith("th")
    return not any(begin <= number.begin < end for begin, end in numbered_things(text).values())


def _in_sentence(text: str, begin: int, end: int, heads: Sequence[Number]) -> Iterator[Bound]:
    starts, stops = [begin], list[int]()
    for one, other in pairwise(heads):
        start = max(one.end, one.until)
        places = next((found for ends in _ENDS if (found := list(ends.finditer(text, start, other.begin)))), None)
        starts.append(places[-1].start() if places else start)
        stops.append(places[-1].start() if places else other.begin)
    listed = _listed_names(text, begin, end, heads) if len(heads) > 1 else []
    for number, start, stop, name in zip(heads, starts, [*stops, end], listed or [()] * len(heads), strict=True):
        after = _AFTERWARDS.split(text[number.end : stop])[0]
        left = _AFTERWARDS.split(text[start : number.begin])[-1]
        yield Bound(number, name or _beside(left, backwards=True), _beside(after), begin)


def _listed_names(text: str, begin: int, end: int, heads: Sequence[Number]) -> list[tuple[str, ...]]:
    """Return the names before "55 and 41 points, respectively", or before "19, 12 and 15", if there are as many as numbers."""
    gaps = [text[max(one.end, one.until) : other.begin] for one, other in pairwise(heads)]
    if not _RESPECTIVELY.search(text, begin, end) and not all(map(_LISTED.fullmatch, gaps)):
        return []
    before = f"x {text[begin : heads[0].begin]}"
    names = [name for first, last in names_of(before) for name in re.split(r"\s(?:and|or)\s", before[first:last])]
    return [tuple(stemmed(name)) for name in names] if len(names) == len(heads) else []


def _beside(text: str, *, backwards: bool = False) -> tuple[str, ...]:
    """Return the words next to a number, the nearest first: stems of content words, names, years, and "line 2" as one."""
    numbered = {begin: [" ".join(thing)] for thing, (begin, _) in numbered_things(text).items()}
    words = [
        stem
        for match in re.finditer(r"[^\W_]+(?:['\u2019-][^\W_]+)*", text)
        for stem in numbered.get(match.start()) or stemmed(match[0])
        if _YEAR.fullmatch(stem) or (stem[0].isalpha() and (len(stem) > 2 or match[0][0].isupper()))
    ]
    return tuple(dict.fromkeys((words[::-1] if backwards else words)[:_WORDS_BESIDE]))


def _in_tables(text: str, heads: Sequence[Number]) -> Iterator[tuple[Number, Bound]]:
    """Yield the numbers in rows of tables, bound to the first cell of the row and to the head of the column."""
    position, columns = 0, list[str]()
    for line in text.splitlines(keepends=True):
        cells = line.rstrip("\n").split("\t" if "\t" in line else "|")
        if len(cells) < 2:
            columns = []
        elif len(columns) != len(cells):
            columns = cells
        else:
            label, begin = next((cell for cell in cells if cell.strip()), ""), position
            for column, cell in zip(columns, cells, strict=True):
                inside = [number for number in heads if begin <= number.begin < begin + len(cell) and cell != label]
                for number in inside:
                    yield number, Bound(number, _beside(label), _beside(column), position)
                begin += len(cell) + 1
        position += len(line)
