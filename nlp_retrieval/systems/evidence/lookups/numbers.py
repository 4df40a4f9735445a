"""The numbers and dates of a claim that a source lacks; a number has its unit, its bound and its sign."""

from __future__ import annotations

import re
from typing import NamedTuple

from nlp_retrieval.systems.evidence.lookups.computed import found_otherwise, is_year
from nlp_retrieval.systems.evidence.lookups.words import pattern
from nlp_retrieval.text import Date, Number, agreeing, compare_numbers, dates_of, month_of, numbers_of


class MissingFigures(NamedTuple):
    """Numbers and dates of a claim that a passage lacks, those that it may have, and how others were computed."""

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    n_dates: int
    unclear: tuple[tuple[str, str], ...] = ()
    computed: tuple[str, ...] = ()


def missing_figures(claim: str, passage: str) -> MissingFigures:
    """Return the numbers and dates of a claim that are nowhere in a passage.

    A date is missing if no date of the passage agrees with it, whatever numbers are there; its day and year are not reported
    again. Words that only look like numbers ("one of them", "the two towns") are not reported.
    """
    wanted = [date for date in dates_of(claim) if date.is_full]
    dates = dates_of(passage) if wanted else []
    missing = [date for date in wanted if not any(date.agrees(other) for other in dates)]
    with_days = [other for other in dates if any(reading.days for reading in other.readings)]
    named = [date for date in wanted if any(date.agrees(other) for other in with_days)]
    lacking = dict(compare_numbers(claim, passage))
    lacking |= {number: None for number in numbers_of(claim) if number not in lacking and _is_of_other(claim, number, passage)}
    lacking = {
        number: other
        for number, other in lacking.items()
        if not _within(number, missing) and not (number.value <= 31 and _within(number, named))
        if not _is_no_figure(claim, number, passage)
    }
    there = numbers_of(passage) if None in lacking.values() else []
    how = {number: found_otherwise(claim, number, there) for number, other in lacking.items() if other is None}
    left = sorted((number for number in lacking if how.get(number) is None), key=lambda number: number.begin)
    return MissingFigures(
        tuple(number.measured or number.written for number in left),
        tuple(date.written for date in missing),
        len(wanted),
        tuple((number.measured, other.measured) for number in left if (other := lacking[number]) is not None),
        tuple(filter(None, how.values())),
    )


def _within(number: Number, dates: list[Date]) -> bool:
    return any(date.begin <= number.begin and number.end <= date.end for date in dates)


# What qualifies a number.

_PER = re.compile(r"\s?(?:per\s|/\s?)([^\W\d_]+)")
_SYMBOL = re.compile(r"\s?([A-Za-z]{2,4})\b")
_COMPASS = re.compile(r"\s?[\u00b0\u00ba]?\s?([NSEW])\b")
_NOON = re.compile(r"\s?([ap])\.?\s?m\b", re.IGNORECASE)
_MORE, _LESS = re.compile(r"[>\u2265]\s?=?\s?\Z"), re.compile(r"[<\u2264]\s?=?\s?\Z")
_BOUND = r"\b(?:{})\s(?:[$\u20ac\u00a3]\s?)?\Z"
_NAMED = re.compile(r"\b([A-Z][\w+#]*)\s(?:v\.?)?\Z")
_REACH = 24


def _is_of_other(claim: str, number: Number, passage: str) -> bool:
    """Return whether all numbers of a passage that agree with a claim's are qualified otherwise: "5 mg/l" for "5 mg/kg"."""
    mine = _qualifiers(claim, number)
    decade = is_year(number) and claim[number.end : number.end + 1] != "s"
    agreed = [other for other in numbers_of(passage) if agreeing(number, other)] if mine or decade else []
    return bool(agreed) and all(
        (decade and passage[other.end : other.end + 1] == "s") or _conflict(mine, _qualifiers(passage, other))
        for other in agreed
    )


def _qualifiers(text: str, number: Number) -> dict[str, str]:
    """Return what qualifies a number, by kind: what it is per, the case of its symbol, a bound, a direction, a version."""
    end, before = number.until or number.end, text[max(0, number.begin - _REACH) : number.begin]
    found = {}
    if match := _PER.match(text, end):
        found["per"] = next((f"{one.unit} {one.size}" for one in numbers_of(f"1 {match[1]}") if one.unit), match[1].lower())
    if match := _SYMBOL.match(text, number.end):
        found[f"symbol {match[1].lower()}"] = match[1]
    if match := _COMPASS.match(text, end):
        found["latitude" if match[1] in "NS" else "longitude"] = match[1]
    if match := _NOON.match(text, number.end):
        found["noon"] = match[1].lower()
    if _LESS.search(before) or pattern("at most", _BOUND).search(before):
        found["bound"] = "at most"
    elif _MORE.search(before) or pattern("at least", _BOUND).search(before):
        found["bound"] = "at least"
    if "." in number.written and not number.unit and not number.percent and (match := _NAMED.search(before)):
        found[f"version of {match[1]}"] = number.written
    return found


def _conflict(mine: dict[str, str], other: dict[str, str]) -> bool:
    return any(kind in other and other[kind] != value for kind, value in mine.items())


# Numbers that state nothing to look up.

_POINTED_AT = re.compile(r"\b(?:the|these|those|all|its|their|his|her|our|other|first|last|next|past|both)\s\Z", re.IGNORECASE)
_ALWAYS_SMALL = frozenset({"one", "once", "both", "single"})
_LARGEST_SMALL = 10
_BEGAN_BEFORE = re.compile(r"\b(?:was|were|that|which|who|had|has)\s\Z", re.IGNORECASE)
_BEGAN = re.compile(r"\s(?!hundred)(?:[a-z]+ed|began|seen|found|made|built|held|shown|came|took|known|set|sold|won|sung)\b")
_AUTHOR = re.compile(r"\([^()]{0,200}(?:et al\b[^()]*|[A-Z][\w-]+,\s)\Z")
_MARK_BEFORE = re.compile(r"\[(?:\d{1,3}[,\u2013-]\s?){0,8}\Z")
_MARK_AFTER = re.compile(r"(?:[,\u2013-]\s?\d{1,3}){0,8}\]")
_NAME_BEFORE = re.compile(r"(?:\b|\S\s)([A-Z]\w{1,29})[\s/-]\Z")


def _is_no_figure(claim: str, number: Number, passage: str) -> bool:
    """Return whether a number is a word ("one other city", "both"), a mark ("[49]", "(1)") or part of a name ("Phase 2")."""
    word, before, after = number.written.lower(), claim[max(0, number.begin - 240) : number.begin], claim[number.end :][:40]
    if word.isalpha() and not number.percent:
        began = word == "first" and _BEGAN_BEFORE.search(before) and _BEGAN.match(after)
        return word in _ALWAYS_SMALL or bool(began or (number.value <= _LARGEST_SMALL and _POINTED_AT.search(before)))
    if not word.isdigit() or number.unit:
        return False
    if is_year(number):
        return _AUTHOR.search(before) is not None and re.match(r"[a-z]?[;)]", after) is not None
    in_list = before.endswith("(") and after.startswith(")") and "(1)" in claim
    in_brackets = _MARK_BEFORE.search(before) is not None and _MARK_AFTER.match(after) is not None
    named = _NAME_BEFORE.search(before)
    if named is None or month_of(named[1]) or re.match(r"\s[a-z]", after):
        return in_list or in_brackets
    return named[1] in passage and re.search(rf"\b{re.escape(named[1])}[\s/-]\d", passage) is None
