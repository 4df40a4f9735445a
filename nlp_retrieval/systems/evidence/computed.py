"""Numbers of a claim that a source has in another form: a share in words, a bound, a decade, or computed from its figures.

A number is computed only if the claim says which computation it is ("together", "more than", "for three years", "doubled") and
the figures of the source are of one kind and near each other. So a wrong number is rarely computable by chance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from nlp_retrieval.systems.evidence.names import sentence_words, stemmed
from nlp_retrieval.text import Number, numbers_of

_AT_LEAST = re.compile(
    r"\b(?:more than|over|at least|above|exceeding|exceeded|exceeds|upwards of|as many as"
    r"|mehr als|\u00fcber|mindestens|gut|plus de|au moins|m\u00e1s de|al menos)\s(?:[$€£]\s?)?\Z",
    re.IGNORECASE,
)
_AT_MOST = re.compile(
    r"\b(?:nearly|almost|close to|just under|fewer than|less than|under|below|up to|at most"
    r"|no more than|not more than|fast|knapp|weniger als|h\u00f6chstens|presque|moins de|casi|menos de)\s(?:[$€£]\s?)?\Z",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|some|circa|ca\.|rund|etwa|ungefähr|environ|quelque|unos|unas|cerca de)\s"
    r"|[~≈]\s?)(?:[$€£]\s?)?\Z",
    re.IGNORECASE,
)
_BEFORE_YEAR = re.compile(r"\b(?:before|by|prior to)\s\Z", re.IGNORECASE)
_YEARS_BEFORE = 5
_OF_YEARS = re.compile(r"(?:19|20)\d\d[-/\u2013]\Z")
_ROUNDED, _ROUNDED_FROM = 0.5, 10
_WITHIN, _ABOUT_WITHIN, _SHARE_WITHIN = 1.15, 0.05, 1.5
_TIME = re.compile(r"[\s-](?:long\s)?(year|decade)s?\b", re.IGNORECASE)
_UP = re.compile(
    r"\b(?:more|higher|older|longer|taller|larger|bigger|greater|up|mehr|plus|m\u00e1s|add(?:s|ed|ing)?|climb\w*|exceed\w*"
    r"|expan\w+|gain\w*|gr[eo]w\w*|increas\w*|jump\w*|ris(?:es?|en|ing)|rose|soar\w*|surg\w+|widen\w*|gestiegen|stieg|gewonnen|gewann|wuchs|gagn\w+"
    r"|augment\w+|ganó|aument\w+|sub(?:ió|ieron))\b",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"\b(?:fewer|less|lower|weniger|moins|menos|younger|shorter|smaller|down|cut|cuts|declin\w*|decreas\w*|drop\w*"
    r"|f[ae]ll(?:s|en|ing)?|lost|loss|los[ei]\w*|narrow\w*|plung\w+|reduc\w*|sav(?:e|ed|es|ing|ings)|shr[aiu]nk\w*|slip\w*|gesunken|sank|verlor\w*|baiss\w+"
    r"|diminu\w+|perdu|perd\w+|dismin\w+|baj(?:ó|aron))\b",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(r"\b(?:gap|differ\w*|ahead|behind|margin|lead|outnumber\w*|points?|by)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"\s(?:an?|of an?)\s(\w{1,20})\b", re.IGNORECASE)
"""After a share of a unit: "half a tonne"."""
_EVERY = re.compile(r"\bevery\s\Z", re.IGNORECASE)
_LEVEL = re.compile(r"\b(?:to|from|at|of|after|in|within|during|for|since)\s(?:[$\u20ac\u00a3])?\Z", re.IGNORECASE)
"""Words before the value of a figure, not before its change: "fell to six"."""
_SUM = re.compile(
    r"\b(?:together|total|totals|totalled|totaled|combined|altogether|in all|overall|sum|between them|add(?:ed|ing)"
    r"|counting|including|plus|zusammen|insgesamt|ensemble|conjunto)\b",
    re.IGNORECASE,
)
_TIMES = re.compile(r"\s?(?:times|fold|-fold|x)\b|\s?\u00d7", re.IGNORECASE)
_RATIO = frozenset({"twice", "thrice", "double", "triple"})
_SHARE_OF = re.compile(r"\s?(?:of\b|share\b|de[rsl]?\b|d['\u2019]|des\b)|\s(?:\w+\s){0,2}share\b", re.IGNORECASE)
_NEAR = 160
_MOST = 60
_CONTEXT = 60
_FIRST_YEAR, _LAST_YEAR = 1500, 2100


def as_another_form(  # noqa: PLR0911 - a table of cases
    claim: str, number: Number, there: Sequence[Number]
) -> bool:
    """Return whether a passage has a number of a claim as a share in words, within its bound, or in its decade."""
    if claim[number.end : number.end + 1] == "s" and number.written.isdigit() and is_year(number):
        return any(is_year(other) and 0 <= other.value - number.value < 10 for other in there)
    if (number.percent or number.value >= _ROUNDED_FROM) and number.value == int(number.value):
        rounded = [other for other in there if other.exact and number.percent == other.percent]
        if any(abs(_converted(other, number) - number.value) <= _ROUNDED for other in rounded):
            return True
    if number.is_share and (measure := _AMOUNT.match(claim, number.end)):
        whole = next(iter(numbers_of(f"1 {measure[1]}")), None)
        if (
            whole is not None
            and whole.unit
            and any(abs(_converted(other, whole) - number.value) <= number.exact for other in there)
        ):
            return True
    if _OF_YEARS.search(claim, max(0, number.begin - 5), number.begin):
        return any(is_year(other) and other.value % 100 == number.value for other in there)
    if is_year(number) and _BEFORE_YEAR.search(claim, max(0, number.begin - 16), number.begin):
        return any(is_year(other) and 0 < number.value - other.value <= _YEARS_BEFORE for other in there)
    if number.percent or number.is_share:
        wanted = _percent(number)
        if any(
            abs(_percent(other) - wanted) <= _SHARE_WITHIN
            for other in there
            if other.is_share or (other.percent and number.is_share)
        ):
            return True
    if is_year(number):
        return False
    alike = [other.value for other in there if _same_kind(number, other) and not is_year(other)]
    return any(_is_within(claim, number, value) for value in alike)


def computed_from(  # noqa: PLR0911, PLR0912 - a table of cases
    claim: str, number: Number, there: Sequence[Number]
) -> str:
    """Return how a number of a claim is computed from figures of a passage, for people ("39: 97 - 58"); empty if it is not."""
    says = f"{number.measured or number.written}: "
    around = claim[max(0, number.begin - _CONTEXT) : number.end + _CONTEXT]
    if time := _TIME.match(claim, number.end if not number.until else min(number.end, number.until)):
        years = [other for other in there if is_year(other)]
        span = number.value * (10 if time[1].lower() == "decade" else 1)
        near = next((pair for pair in _pairs(years) if abs(pair[1].value - pair[0].value) == span), None)
        if near:
            first, last = sorted((near[0].written, near[1].written))
            return f"{says}from {first} to {last}"
    if is_year(number):
        return ""
    figures = [other for other in there if not is_year(other) and other.unit != "date" and not other.others]
    alike = [other for other in figures if _same_kind(number, other) or (number.percent and not other.percent)]
    word = number.written.lower()
    if _TIMES.match(claim, number.end) or word in _RATIO or word.endswith("fold"):
        for one, other in _pairs(figures):
            low, high = sorted((one, other), key=lambda figure: figure.value)
            if low.value > 0 and _same_kind(one, other) and abs(high.value / low.value - number.value) <= 0.05 * number.value:
                return f"{says}{high.written} / {low.written}"
    if _EVERY.search(claim, max(0, number.begin - 8), number.begin) and 1 < number.value <= _ROUNDED_FROM:
        number = replace(number, value=1 / number.value, written="every other")
    is_share = number.is_share
    if is_share:
        number = replace(number, value=_percent(number), exact=_SHARE_WITHIN, percent=True)
        alike = figures
    up, down = _UP.search(around) is not None, _DOWN.search(around) is not None
    changes = up or down or _DIFFERENCE.search(around) is not None
    if number.percent:
        shares = is_share or _SHARE_OF.match(claim, number.end) is not None
        for one, other in _pairs(alike) if changes or shares else ():
            if one.percent != other.percent or not one.value or not other.value or not _same_kind(one, other):
                continue
            low, high = sorted((one, other), key=lambda figure: abs(figure.value))
            before, after = (one, other) if up == down else (low, high) if up else (high, low)
            if changes and _is_rounded(claim, number, 100 * abs(after.value - before.value) / abs(before.value)):
                return f"{says}from {before.written} to {after.written}"
            if shares and not one.percent and _is_rounded(claim, number, 100 * low.value / high.value):
                return f"{says}{low.written} of {high.written}"
        return ""
    is_level = _LEVEL.search(claim, max(0, number.begin - 16), number.begin) is not None
    points = re.compile(r"\s?(?:percentage points?|% ?points?|points?)\b").match(claim, number.end)
    if (changes and not is_level) or points:
        for one, other in _pairs(figures):
            fits = one.percent and other.percent if points else _same_kind(number, one) and _same_kind(number, other)
            if fits and _same_kind(one, other) and _is_rounded(claim, number, abs(one.value - other.value)):
                high, low = sorted((one, other), key=lambda figure: -figure.value)
                return f"{says}{high.written} - {low.written}"
    if _SUM.search(claim):
        groups = [list(pair) for pair in _pairs(alike)]
        for count in (3, 4):
            runs = [alike[first : first + count] for first in range(min(_MOST, len(alike) - count + 1))]
            groups += [run for run in runs if all(right.begin - left.end <= _NEAR for left, right in pairwise(run))]
        sums = [(sum(figure.value for figure in group), group) for group in groups]
        sums = [(total, group) for total, group in sums if _is_rounded(claim, number, total)]
        if sums:
            _, group = min(sums, key=lambda each: abs(each[0] - number.value))
            return says + " + ".join(figure.written for figure in group)
    return ""


def _is_rounded(claim: str, number: Number, value: float) -> bool:
    """Return whether a number of a claim is a computed value, rounded, or within what "about", "over" or "nearly" allow."""
    slack = max(number.exact, _ROUNDED if number.percent and not number.exact else 1e-9 * abs(number.value))
    return abs(value - number.value) <= slack or _is_within(claim, number, value)


def _is_within(claim: str, number: Number, value: float) -> bool:
    """Return whether a value is what a claim says of a number in words before it: "about", "more than", "nearly"."""
    before = max(0, number.begin - 20)
    if _AT_LEAST.search(claim, before, number.begin):
        return number.value < value <= _WITHIN * number.value
    if _AT_MOST.search(claim, before, number.begin):
        return number.value / _WITHIN <= value < number.value
    about = _ABOUT.search(claim, before, number.begin) is not None
    return about and abs(number.value - value) <= _ABOUT_WITHIN * number.value


def _converted(number: Number, other: Number) -> float:
    """Return the value of a number in the unit of another; not a number if their units differ."""
    if number.unit == other.unit and number.unit:
        return number.value * number.size / other.size
    return math.nan if number.unit and other.unit else number.value


def _pairs(figures: Sequence[Number]) -> Iterator[tuple[Number, Number]]:
    """Yield figures near each other, in order; at most 60 pairs."""
    found = 0
    for first, one in enumerate(figures):
        for other in figures[first + 1 : first + 5]:
            if other.begin - one.end > _NEAR or found == _MOST:
                break
            found += 1
            yield one, other


def _percent(number: Number) -> float:
    return number.value if number.percent else 100 * number.value


def _same_kind(one: Number, other: Number) -> bool:
    has_units = bool(one.unit and other.unit)
    return one.percent == other.percent and (not has_units or (one.unit, one.size) == (other.unit, other.size))


def are_of_one_kind(one: Number, other: Number) -> bool:
    """Return whether two numbers may be compared: both percentages or not, both years or not, of one unit."""
    return is_year(one) == is_year(other) and _same_kind(one, other)


def is_year(number: Number) -> bool:
    """Return whether a number is a year from 1500 to 2100."""
    return number.written.isdigit() and len(number.written) == 4 and _FIRST_YEAR <= number.value <= _LAST_YEAR


def numbers_near(claim: str, passage: str, numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers of a passage that are in sentences that share a content word with a claim, or beside these."""
    wanted = set(stemmed(claim))
    sentences = sentence_words(passage)
    shares = [not wanted.isdisjoint(words) for _, _, words in sentences]
    spans = [(begin, end) for number, (begin, end, _) in enumerate(sentences) if any(shares[max(0, number - 1) : number + 2])]
    return [number for number in numbers if any(begin <= number.begin < end for begin, end in spans)]
