"""The numbers and dates of a claim that a source lacks, or gives for something else; a number has unit, bound and sign.

A source may have a number in another form, or its figures may give it by the computation that the claim names ("together").
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.names import names_of, numbered_things
from nlp_retrieval.systems.evidence.lookups.words import KNOWN, WORD_OF_CHANGE, pattern, stemmed
from nlp_retrieval.text import Number, agreeing, compare_numbers, dates_of, numbers_of, sentences_of


class MissingFigures(NamedTuple):
    """Numbers and dates of a claim that a passage lacks, those that it may have, and how others were computed."""

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    n_dates: int
    unclear: tuple[tuple[str, str], ...] = ()
    computed: tuple[str, ...] = ()


def missing_figures(claim: str, passage: str) -> MissingFigures:
    """Return the numbers and dates of a claim that are nowhere in a passage; a missing date's day and year are not repeated."""
    wanted = [date for date in dates_of(claim) if date.is_full]
    dates = dates_of(passage) if wanted else []
    missing = [date for date in wanted if not any(date.agrees(other) for other in dates)]
    lacking = dict(compare_numbers(claim, passage))
    others = {number for number in numbers_of(claim) if number not in lacking and _is_of_other(claim, number, passage)}
    lacking |= dict.fromkeys(others)
    lacking = {
        number: other
        for number, other in lacking.items()
        if not any(date.begin <= number.begin and number.end <= date.end for date in missing)
        and not _is_no_figure(claim, number)
        and (other is None or number.written != other.written)
    }
    there = numbers_of(passage) if None in lacking.values() else []
    how = {n: found_otherwise(claim, n, there) for n, other in lacking.items() if other is None and n not in others}
    left = sorted((number for number in lacking if how.get(number) is None), key=lambda number: number.begin)
    return MissingFigures(
        tuple(number.measured or number.written for number in left),
        tuple(date.written for date in missing),
        len(wanted),
        tuple((number.measured, other.measured) for number in left if (other := lacking[number]) is not None),
        tuple(filter(None, how.values())),
    )


# What qualifies a number.

_BEFORE = {
    name: pattern(name, r"\b(?:{})\s(?:[$\u20ac\u00a3]\s?)?\Z")
    for name in ("at least", "at most", "at least a year", "at most a year", "nearly", "about", "level")
}
_CHANGES, _SUM = tuple(map(pattern, ("up", "down", "difference"))), pattern("sum")
_PER = re.compile(r"\s?(?:per\s|/\s?)([^\W\d_]+[23\u00b2\u00b3]?)")
_SYMBOL = re.compile(r"\s?([A-Za-z]{2,4})\b")
_COMPASS = re.compile(
    r"(?:\s?[\u00b0\u00ba](?:\s?\d{1,2}['\u2019\u2032])?)?\s?([NSEW])\b"
    r"|(?:\s?[\u00b0\u00ba]|\sdegrees?)\s(?:of\s)?(north|south|east|west)"
)
_NOON = re.compile(r"\s?([ap])\.?\s?m\b|\sin the (?:(morning)|(?:afternoon|evening))\b", re.IGNORECASE)
_OR_MORE = re.compile(r"\+|(?:\s[^\W\d_]+)?\sor\s(?:more|above|over|older)\b")
_OR_LESS = re.compile(r"(?:\s[^\W\d_]+)?\sor\s(?:less|fewer|below|under|younger)\b")
_MORE, _LESS = re.compile(r"[>\u2265]\s?=?\s?\Z"), re.compile(r"[<\u2264]\s?=?\s?\Z")
_NAMED = re.compile(r"\b([A-Z][\w+#]*|version|release|section|chapter|table|figure)\s(?:v\.?)?\Z")


def _is_of_other(claim: str, number: Number, passage: str) -> bool:
    """Return whether all numbers of a passage that agree with a claim's are qualified otherwise: "5 mg/l" for "5 mg/kg"."""
    mine = _qualifiers(claim, number)
    decade = is_year(number) and claim[number.end : number.end + 1] != "s"
    agreed = [other for other in numbers_of(passage) if agreeing(number, other)] if mine or decade else []
    return bool(agreed) and all(
        (decade and passage[other.end : other.end + 1] == "s")
        or _conflict(mine, _qualifiers(passage, other), known=bool(number.unit and other.unit))
        for other in agreed
    )


def _qualifiers(text: str, number: Number) -> dict[str, str]:
    """Return what qualifies a number, by kind: what it is per, the case of its symbol, a bound, a direction, a version."""
    end, before = number.until or number.end, text[max(0, number.begin - _REACH) : number.begin]
    marks = {}
    if match := _PER.match(text, end):
        marks["per"] = next((f"{one.unit} {one.size}" for one in numbers_of(f"1 {match[1]}") if one.unit), match[1].lower())
    if match := _SYMBOL.match(text, number.end):
        marks[f"symbol {match[1].lower()}"] = match[1]
    if match := _COMPASS.match(text, end):
        way = (match[1] or match[2])[0].upper()
        marks["latitude" if way in "NS" else "longitude"] = way
    if match := _NOON.match(text, number.end):
        marks["noon"] = "a" if match[2] else (match[1] or "p").lower()
    bounds = {}  # "no fewer than" begins before "fewer than"
    for bound, sign, after in (("at most", _LESS, _OR_LESS), ("at least", _MORE, _OR_MORE)):
        of_year = _BEFORE[f"{bound} a year"].search(before) if is_year(number) else None
        if match := sign.search(before) or of_year or _BEFORE[bound].search(before) or after.match(text, number.end):
            bounds[bound] = match.start()
    if bounds:
        marks["bound"] = min(bounds, key=bounds.__getitem__)
    if "." in number.written and not (number.unit or number.percent or number.value < 0) and (match := _NAMED.search(before)):
        marks[f"version of {match[1].lower()}"] = number.written
    return marks


def _conflict(mine: dict[str, str], other: dict[str, str], *, known: bool) -> bool:
    """Return whether two numbers are qualified otherwise; the case of a symbol says nothing where both units are known."""
    return any(
        kind in other and other[kind] != value and not (known and kind.startswith("symbol ")) for kind, value in mine.items()
    )


# Numbers that state nothing to look up.

_POINTED_AT = re.compile(r"\b(?:the|these|those|all|its|their|his|her|our|other|first|last|next|past|both)\s\Z", re.IGNORECASE)
_ALWAYS_SMALL = frozenset({"one", "once", "both", "single"})
_LARGEST_SMALL = 10


def _is_no_figure(claim: str, number: Number) -> bool:
    """Return whether a number is a word that says nothing to look up: "one other city", "both", "the two towns"."""
    word = number.written.lower()
    if not word.isalpha() or number.percent:
        return False
    if word == "half" and re.match(r"\san?\s", claim[number.end :]):
        return True
    before = claim[max(0, number.begin - _REACH) : number.begin]
    return word in _ALWAYS_SMALL or (number.value <= _LARGEST_SMALL and _POINTED_AT.search(before) is not None)


# Numbers that a source has in another form.

_TIME = re.compile(r"[\s-](?:long\s)?(year|decade)s?\b", re.IGNORECASE)
_CENTURY = re.compile(r"[\s-]century\b", re.IGNORECASE)
_EVERY = re.compile(r"\b(?:every|one\s[\w-]+\sin)\s\Z", re.IGNORECASE)
_TIMES = re.compile(r"\s?(?:times|fold)\b|-fold\b", re.IGNORECASE)
_BESIDE = re.compile(r"\s(?:\w+\s)?(?:below|above|short of)\b")
_BOUND = re.compile(r"\b(?:more|less|fewer|up)\s(?:than|to)(?=\s\S?\d)", re.IGNORECASE)
_POINTS = re.compile(r"\s?(?:percentage points?|% ?points?|points?)\b")
_SHARE_OF = re.compile(r"\s?(?:of\b|share\b|de[rsl]?\b|d['\u2019]|des\b)|\s(?:\w+\s){0,2}share\b", re.IGNORECASE)
_ROUNDED, _ROUNDED_FROM, _TIMES_WITHIN = 0.5, 10, 0.1
_WITHIN, _ABOUT_WITHIN, _SHARE_WITHIN = 1.2, 0.05, 1.5
_NEAR, _MOST, _CONTEXT, _REACH = 160, 60, 60, 24
_FIRST_YEAR, _LAST_YEAR = 1500, 2100


def found_otherwise(claim: str, number: Number, there: Sequence[Number]) -> str | None:
    """Return how figures of a passage give a number ("39: 97 - 58"), "" if one is it in another form, None if none do."""
    if _is_in_another_form(claim, number, there):
        return ""
    how = next(_computations(claim, number, there), None)
    return None if how is None else f"{number.measured or number.written}: {how}"


def _is_in_another_form(claim: str, number: Number, there: Sequence[Number]) -> bool:
    is_century = _CENTURY.match(claim, number.end) is not None
    if is_century or (len(number.written) == 4 and claim[number.end : number.end + 1] == "s"):
        first = 100 * (number.value - 1) if is_century else number.value
        last = first + (99 if first % 100 == 0 else 9)
        in_words = (other for other in there if _sort_of(other) == "ordinal" and first == 100 * (other.value - 1))
        return any(in_words) or any(first <= other.value <= last for other in there)
    if is_year(number):
        return False
    if (number.percent or number.value >= _ROUNDED_FROM) and number.value == int(number.value):
        alike = [other for other in there if other.exact and number.percent == other.percent]
        if any(abs(_converted(other, number) - number.value) <= _ROUNDED for other in alike):
            return True
    is_every = number.value > 1 and _EVERY.search(claim, max(0, number.begin - _REACH), number.begin)
    if number.percent or number.is_share or is_every:
        value = 100 / number.value if is_every else number.value if number.percent else 100 * number.value
        in_percent = replace(number, value=value)
        percents = [] if number.percent else [other.value for other in there if other.percent]
        shares = [*percents, *(100 * other.value for other in there if other.is_share)]
        near = (abs(share - in_percent.value) <= _SHARE_WITHIN for share in shares)
        if any(near) or any(_is_within(claim, in_percent, share) for share in shares):
            return True
    alike = [other for other in there if are_of_one_kind(number, other, any_size=True)]
    return any(_is_within(claim, number, _converted(other, number)) for other in alike)


def _computations(claim: str, number: Number, there: Sequence[Number]) -> Iterator[str]:
    """Yield how a number is computed: from years, or from figures, of which the claim says that they are computed."""
    if time := _TIME.match(claim, min(number.end, number.until or number.end)):
        span = number.value * (10 if time[1].lower() == "decade" else 1)
        for one, other in _pairs([other for other in there if is_year(other)]):
            if _is_rounded(claim, replace(number, value=span), abs(other.value - one.value)):
                yield "from {} to {}".format(*sorted((one.written, other.written)))
    if is_year(number):
        return
    figures = [other for other in there if not is_year(other) and other.unit != "date" and not other.others]
    end = max(number.end, number.until)
    around = _BOUND.sub(" ", claim[max(0, number.begin - _CONTEXT) : number.end + _CONTEXT])
    words_of_change = any(way.search(around) for way in _CHANGES)
    changes = words_of_change or _BESIDE.match(claim, end) is not None
    if _TIMES.match(claim, number.end):
        times = replace(number, exact=max(number.exact, _TIMES_WITHIN * number.value))
        for low, high in _ordered(figures):
            if low.value > 0 and _is_rounded(claim, times, high.value / low.value):
                yield f"{high.written} / {low.written}"
    if number.percent or number.is_share or _EVERY.search(claim, max(0, number.begin - _REACH), number.begin):
        yield from _shares(claim, number, figures)
    yield from _differences(claim, number, figures, changes=changes)
    if _SUM.search(claim) and not number.percent:
        for one, other in _pairs([other for other in figures if are_of_one_kind(number, other)]):
            if _is_rounded(claim, number, one.value + other.value):
                yield f"{one.written} + {other.written}"


def _shares(claim: str, number: Number, figures: Sequence[Number]) -> Iterator[str]:
    """Yield two figures of which one is the share of the other that a claim says."""
    if not number.percent:
        value = number.value if number.is_share else 1 / max(number.value, 1)  # "every third"
        number = replace(number, value=100 * value, exact=_SHARE_WITHIN, percent=True)
    elif not _SHARE_OF.match(claim, number.end):
        return
    for low, high in _ordered(figures):
        if high.value and not low.percent and _is_rounded(claim, number, 100 * low.value / high.value):
            yield f"{low.written} of {high.written}"


def _differences(claim: str, number: Number, figures: Sequence[Number], *, changes: bool) -> Iterator[str]:
    points = _POINTS.match(claim, number.end) is not None
    is_level = _BEFORE["level"].search(claim, max(0, number.begin - _REACH), number.begin) is not None
    for low, high in _ordered(figures) if points or (changes and not is_level and not number.percent) else ():
        of_kind = low.percent if points else are_of_one_kind(number, low) and are_of_one_kind(number, high)
        if of_kind and _is_rounded(claim, number, abs(high.value - low.value)):
            yield f"{high.written} - {low.written}"


def _is_rounded(claim: str, number: Number, value: float) -> bool:
    """Return whether a number of a claim is a computed value, rounded, or within what "about", "over" or "nearly" allow."""
    slack = max(number.exact, _ROUNDED if number.percent and not number.exact else 1e-9 * abs(number.value))
    return abs(value - number.value) <= slack or _is_within(claim, number, value)


def _is_within(claim: str, number: Number, value: float) -> bool:
    """Return whether a value is what a claim says of a number in words before it: "about", "more than", "nearly"."""
    before = claim[max(0, number.begin - _REACH) : number.begin]
    if _BEFORE["at most"].search(before) or _BEFORE["nearly"].search(before):
        return number.value / _WITHIN <= value < number.value
    if _BEFORE["at least"].search(before):
        return number.value < value <= _WITHIN * number.value
    is_about = _BEFORE["about"].search(before) is not None or before.rstrip()[-1:] in {"~", "\u2248"}
    return is_about and abs(number.value - value) <= _ABOUT_WITHIN * number.value


def _converted(number: Number, other: Number) -> float:
    """Return the value of a number in the unit of another; not a number if their units differ."""
    if number.unit == other.unit and number.unit:
        return number.value * number.size / other.size
    return math.nan if number.unit and other.unit else number.value


def _pairs(figures: Sequence[Number]) -> Iterator[tuple[Number, Number]]:
    """Yield figures near each other, in order; at most 60 pairs."""
    near = 0
    for first, one in enumerate(figures):
        for other in figures[first + 1 : first + 5]:
            if other.begin - one.end > (2 * _NEAR if one.unit and one.unit == other.unit else _NEAR) or near == _MOST:
                break
            near += 1
            yield one, other


def _ordered(figures: Sequence[Number]) -> Iterator[tuple[Number, Number]]:
    """Yield figures of one kind near each other, the smaller one first."""
    for one, other in _pairs(figures):
        if are_of_one_kind(one, other):
            yield (one, other) if one.value <= other.value else (other, one)


def are_of_one_kind(one: Number, other: Number, *, any_size: bool = False) -> bool:
    """Return whether two numbers may be compared: both percentages or not, of one sort, of one unit, also of another size."""
    same_unit = not one.unit or not other.unit or (one.unit == other.unit and (any_size or one.size == other.size))
    return _sort_of(one) == _sort_of(other) and one.percent == other.percent and same_unit


def _sort_of(number: Number) -> str:
    return "year" if is_year(number) else "ordinal" if _ORDINAL.match(number.written) else "quantity"


def is_year(number: Number) -> bool:
    """Return whether a number is a year from 1500 to 2100."""
    return number.written.isdigit() and len(number.written) == 4 and _FIRST_YEAR <= number.value <= _LAST_YEAR


# A number that the source gives for something else. Each is bound to the nearest words on its left and right, up to what parts
# it from the next one, in a table to the heads of its row and column.

_CONTRAST = r"while|whereas|but|although|versus|than(?!\s\S?\d)|compared (?:with|to)"
_ENDS = (
    re.compile(rf"[;:|\t\n!?]|\b(?:{_CONTRAST}|against|as opposed to)\b"),
    re.compile(r",(?!\d)"),
    re.compile(r"\b(?:and|or|und|oder|et|ou|y)\b"),
    re.compile(r"\b(?:to|after|before|from)\b"),
)
"""Where what belongs to one number ends, and to the next begins, the clearest first."""
_AFTERWARDS = re.compile(rf"[;!?]|\b(?:{_CONTRAST})\b")
_RESPECTIVELY = re.compile(r"\brespectively\b", re.IGNORECASE)
_LISTED = re.compile(r"(?:\s[\w-]{1,20})?(?:,\s|,?\s(?:and|or)\s)(?:[$\u20ac\u00a3])?")
_TO = re.compile(r"(?:\s[^\s.;:,]+){0,2}\s(?:to|auf|\u00e0)\s(?:[$\u20ac\u00a3])?")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_NO_QUANTITY = frozenset({"both", "single", "once", "twice", "half", "double", "triple"})
_ORDINAL = re.compile(r"\A(?:\d+(?:st|nd|rd|th)|[\w-]*(?:first|third|[a-z]th))\Z", re.IGNORECASE)
_SMALL = frozenset(KNOWN["small"].split())
_PART = r"(?:(?<!\d)\d{1,3}\s(?:[^\W\d_]+\s)?|(?:\A|[.;,:]\s|\band\s)(?:out\s)?|\bout\s)"
_WHOLE = re.compile(rf"{_PART}(?:of|von|de|sur)\s(?:(?:the|all|its|den)\s)?(?P<whole>\d[\d.,]*)(?<=\d)", re.IGNORECASE)
"""A number of which another one is a part: "12 of 1,050 patients", "of the 1,050 patients 12"."""
_WORDS_BESIDE, _NEAR_RIVAL, _SHORTEST = 4, 400, 4


class Bound(NamedTuple):
    """A number with the words to which it is bound on each side, the nearest first, and where its sentence or row begins."""

    number: Number
    left: tuple[str, ...]
    right: tuple[str, ...]
    place: int
    is_whole: bool = False


class Misplaced(NamedTuple):
    """A number of a claim, as written, and the number that the passage has instead."""

    number: str
    other: str


def misplaced(claim: str, passage: str) -> list[Misplaced]:
    """Return the numbers of a claim that a passage has, but gives for something else."""
    claimed, there = bound_numbers(claim), bound_numbers(passage)
    wrong: dict[Misplaced, None] = {}
    steps, steps_there = _steps(claim, claimed), _steps(passage, there)
    for one, other in steps:
        if any(agreeing(one, last) and agreeing(other, first) for first, last in steps_there):
            wrong[Misplaced(f"from {one.written} to {other.written}", f"from {other.written} to {one.written}")] = None
    for mine in claimed:
        alike = [other for other in there if are_of_one_kind(mine.number, other.number, any_size=True)]
        agreed = [other for other in alike if agreeing(mine.number, other.number)]
        rivals = [other for other in alike if not agreeing(mine.number, other.number)]
        instead = [[rival for rival in rivals if _is_said_of(mine, rival, own)] for own in agreed]
        if instead and all(instead) and not any(mine.number in step for step in steps if not step[0].goes_on):
            shared = [len({*mine.left, *mine.right} & {*rival.left, *rival.right}) for rival in instead[0]]
            wrong[Misplaced(mine.number.written, instead[0][shared.index(max(shared))].number.written)] = None
    return list(wrong)


def _steps(text: str, bounds: Sequence[Bound]) -> list[tuple[Number, Number]]:
    """Return the numbers of a text from which and to which something goes: "from 92.3 to 89.8 per cent"."""
    pairs = [(one.number, other.number) for one, other in pairwise(bounds) if are_of_one_kind(one.number, other.number)]
    return [(one, other) for one, other in pairs if not is_year(one) and _TO.fullmatch(text, one.end, other.begin)]


def _is_said_of(mine: Bound, rival: Bound, own: Bound) -> bool:
    """Return whether the words beside a number of a claim are on a side of a rival in the source, and not of its own."""
    if rival.is_whole != own.is_whole or abs(rival.number.begin - own.number.begin) > _NEAR_RIVAL:
        return False
    if own.place != rival.place and own.number.unit and not rival.number.unit:
        return False  # "300 women were asked. They were 40 to 60 years old."
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
    if word in words or not word.isalpha() or len(word) < _SHORTEST:
        return word in words
    stem = word[: max(_SHORTEST, len(word) - 2)]
    return any(other.isalpha() and other.startswith(stem) and abs(len(other) - len(word)) <= 2 for other in words)


@lru_cache(64)
def bound_numbers(text: str) -> list[Bound]:
    """Return the quantities and years of a text, each with the words beside it; days and months of dates are none."""
    heads = [number for number in numbers_of(text) if _is_quantity(text, number)]
    bounds = list(_in_tables(text, heads)) if "|" in text or "\t" in text else []
    in_tables = {bound.number for bound in bounds}
    rest = [number for number in heads if number not in in_tables]
    begins = [number.begin for number in rest]
    wholes = {match.start("whole") for match in _WHOLE.finditer(text)}
    for begin, end in sentences_of(text):
        here = rest[bisect_left(begins, begin) : bisect_left(begins, end)]
        kinds: dict[tuple[str, bool], list[Number]] = {}  # numbers of one kind part each other, no others
        for number in here:
            sort = "whole" if number.begin in wholes else _sort_of(number)
            kinds.setdefault((sort, number.percent), []).append(number)
        for (sort, _), heads in kinds.items():
            bounds += [bound._replace(is_whole=sort == "whole") for bound in _in_sentence(text, begin, end, heads)]
    steps = {one.begin for one, _ in _steps(text, bounds)}
    for at, (one, other) in enumerate(pairwise(bounds)):
        if one.number.goes_on or one.number.begin in steps:  # both are of the same thing
            bounds[at : at + 2] = one._replace(right=other.right), other._replace(left=one.left)
    return bounds


def _is_quantity(text: str, number: Number) -> bool:
    """Return whether a number is a quantity, an ordinal or a year: not "both", or part of a name ("Phase 2")."""
    if math.isnan(number.value) or number.others or number.parts or (number.unit == "date" and not is_year(number)):
        return False
    if not any(char.isdigit() for char in number.written):
        return (number.value > 1 or _sort_of(number) == "ordinal") and number.written.lower() not in _NO_QUANTITY
    return not any(begin <= number.begin < end for begin, end in numbered_things(text).values())


def _in_sentence(text: str, begin: int, end: int, heads: Sequence[Number]) -> Iterator[Bound]:
    starts, stops = [begin], list[int]()
    for one, other in pairwise(heads):
        start = max(one.end, one.until)
        places = next((matches for ends in _ENDS if (matches := list(ends.finditer(text, start, other.begin)))), None)
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
    numbered |= {match.start("whole"): ["of " + re.sub("[.,]", "", match["whole"])] for match in _WHOLE.finditer(text)}
    words = [
        stem
        for match in re.finditer(r"[^\W_]+(?:['\u2019-][^\W_]+|[.,]\d+)*", text)
        for stem in numbered.get(match.start()) or stemmed(match[0])
        if match[0].isdigit()
        or _YEAR.fullmatch(stem)
        or (stem[0].isalpha() and (len(stem) > 2 or match[0][0].isupper()) and stem not in _SMALL)
    ]
    words = [word for word in (words[::-1] if backwards else words) if not WORD_OF_CHANGE.match(word)]
    return tuple(dict.fromkeys(words[:_WORDS_BESIDE]))


def _in_tables(text: str, heads: Sequence[Number]) -> Iterator[Bound]:
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
                yield from (Bound(number, _beside(label), _beside(column), position) for number in inside)
                begin += len(cell) + 1
        position += len(line)
