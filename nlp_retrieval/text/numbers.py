"""Numbers of a text, with their units, as they appear in reports: "1.2 million people", "30%", "-5 °C", "$38.4B", "3½".

This module reads signs ("-5", "minus 5", "$(5)"), thousands separated by a comma, point, space or apostrophe, Indian groups,
decimal commas and points, exponents ("3.2e-5", "1.5 x 10^6"), fractions, ratios, ranges ("3-5 million" are 3 and 5 million),
scales and shares of several languages, and digits of any script, even next to a letter. Digits of a name ("COVID-19", "H2O")
are not numbers.

Two numbers agree if their values, with their signs, are equal to the precision of the less exact one ("about 1.5 million" and
"1,502,113"). If both have a unit, the units must agree too: "40 km" and "40,000 metres" agree, "40 km" and "40 miles" do not,
and 12 March is not 12 km. In a date of digits only (2019-03-12) the year and the day are numbers, but not the month.

A number that may mean several values ("1.234" in a text of unknown language) keeps them all; it agrees for certain only with an
equally ambiguous one in the same wording. All work is linear in the length of the text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from nlp_retrieval.text.dates import Date, dates_of
from nlp_retrieval.text.notation import (
    CURRENCY_BEFORE,
    SCALES,
    UNIT,
    WRITTEN_TOGETHER,
    Convention,
    convention_of,
    either,
    plain_digits,
    unit_of,
)

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_WORDS: dict[str, float] = {word: float(value) for value, word in enumerate(_SMALL)}
_WORDS |= {word: 10.0 * value for value, word in enumerate(_TENS, 2)}
_WORDS |= {f"{word}fold": float(value) for value, word in enumerate(_SMALL) if 2 <= value <= 12}
_WORDS |= {word: float(value) for value, word in enumerate(_ORDINALS) if word not in {"second", "zeroth"}}
_WORDS |= {"once": 1, "twice": 2, "thrice": 3, "half": 0.5, "dozen": 12, "single": 1, "both": 2, "double": 2, "triple": 3}
_UNDER = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_SHARE_EXACT = 0.005
"""Precision of a share in words: two thirds are 67%."""
_UNITLESS = frozenset(_ORDINALS) | {"once", "twice", "thrice", "half", "single", "both", "double", "triple"}


_HAN_DIGITS = dict(zip("〇零一二三四五六七八九", [0, *range(10)], strict=True)) | {"两": 2, "兩": 2}
_HAN_SMALL = {"十": 10, "百": 100, "千": 1000}
_HAN_LARGE = {"万": 10**4, "萬": 10**4, "만": 10**4, "亿": 10**8, "億": 10**8, "억": 10**8, "조": 10**12}
_HAN_SCALES = _HAN_SMALL | _HAN_LARGE | {"십": 10, "백": 100, "천": 1000}
_MOST_DIGITS = 300
_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−–", "0123456789-+--")
_NUMBER = re.compile(
    r"(?P<spaced>(?<![\d.,'])(?<!\d[ \u00a0])(?:\d{1,3}(?:\u00a0\d{3}){1,6}|[1-9]\d{0,2}(?: \d{3}){1,4}(?! \d))(?:[.,]\d{1,12})?(?![\d']|[.,]\d))"  # noqa: E501
    r"|(?P<digits>(?:(?<![\w.,)\]'])[.\u00b7])?\d+(?:(?:[.,'\u066b\u066c]|\u00b7(?!10[\^*\u2070\u00b9\u00b2\u00b3\u2074-\u207b]))\d+)*)"
    rf"|\b(?P<over>(?:a(?=\s\w{{4,7}}\sof\b)|one)(?=[\s-](?:{either(_UNDER)})\b)|(?:{'|'.join(_SMALL[2:10])})(?=[\s-](?:halves|(?:{either(_UNDER)})s)\b))"
    rf"[\s-](?P<under>{either(_UNDER)})s?\b"
    rf"|\b(?P<part>{'|'.join(_SMALL[1:10])})\s(?:in|out\sof)\s(?P<whole>{'|'.join(_SMALL[2:])})\b"
    rf"|\b(?P<word>{either(_WORDS)})\b(?:[\s-](?P<more>{'|'.join(_SMALL[1:10])})\b)?"
    r"|(?P<vulgar>[\u00bc-\u00be\u2150-\u215e\u2189])"
    r"|(?P<han>[〇零一二三四五六七八九十百千万萬亿億两兩]{2,30})",
    re.IGNORECASE,
)
_REST = re.compile(
    rf"\shundred(?:\sand)?\s(?P<word>{either([*_SMALL[1:], *_TENS])})\b(?:[\s-](?P<more>{'|'.join(_SMALL[1:10])})\b)?",
    re.IGNORECASE,
)
_INDIAN = re.compile(r"\d{1,2}(?:,\d\d){1,10},\d{3}(?:\.\d+)?")
_FRACTION = re.compile(r"/(\d{1,3})(?![\d/]|[.,]\d)")
_MIXED = re.compile(r"[ \u00a0-](\d{1,2})/(\d{1,2})(?![\d/]|[.,]\d)")
_RATIO = re.compile(r"(?:\s:\s|:)(\d{1,6}(?:\.\d{1,6})?)(?![\d:]|[.,]\d)")
_VULGAR = re.compile(r"[ \u00a0]?([\u00bc-\u00be\u2150-\u215e\u2189])")
_EXPONENT = re.compile(r"[eE]([-+\u2212\u2013]?\d+)(?!\w)")
_POWER = re.compile(
    r"(?:\s?(?:[\u00d7\u00b7*xX]|\\times|\\cdot)\s?10)(?:\^\{?\s?([-+\u2212\u2013]?\d+)\}?|\*\*([-+\u2212]?\d+)|([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]{1,5}))"
)
_OF_TEN = re.compile(r"(?:\^\{?\s?([-+\u2212\u2013]?\d+)\}?|\*\*([-+\u2212]?\d+)|([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]{1,5}))")
_SCALE = re.compile(rf"[\s-]?(?P<scale>{either(SCALES)})(?!\w)\.?(?:\s(?P<again>{either(SCALES)})(?!\w)\.?)?", re.IGNORECASE)
_MILES = re.compile(r"\s?mi\b(?!\s(?:d[aeio]|d[ao]s|em)\b)")
"""Miles, and not the Portuguese millions ("7 mi de pessoas")."""
_SHORT_SCALE = re.compile(r"\s?(mm|mn|bn|tn|m|k|b|t)(?![\w/])", re.IGNORECASE)
_ATTACHED_SCALE = re.compile(rf"(k|K|M|B)(?=[{WRITTEN_TOGETHER}]|(?![\w/\u00b2\u00b3₂]))")
_SHORTENED = frozenset("mio mrd tsd mill tys тыс mln mlrd mld млн млрд md mia".split())
_SHORT = {"k": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12, "tn": 1e12}
_HAN_SCALE = re.compile(rf"\s?((?:[{''.join(_HAN_SCALES)}]){{1,3}})")
_HAN_NEXT = re.compile(rf"\s?(\d{{1,4}}(?:,\d{{3}})?(?:\.\d{{1,6}})?)([{''.join(_HAN_SCALES)}]{{1,2}})?")
_THAI_SCALE = re.compile(r"\s?(ล้านล้าน|แสนล้าน|หมื่นล้าน|พันล้าน|ล้าน|แสน|หมื่น|พัน)")
_PERCENT = re.compile(
    r"\s?(?:(?P<mille>‰|per mille\b|Promille\b|промилле\b)|%|(?:percent|per cent|pct|Prozent|pour ?cent|por ?ciento|por ?cento|per ?cento"  # noqa: E501
    r"|procent\w{0,4}|процент\w{0,3}|prosent\w{0,3}|persen)\b|パーセント|퍼센트|प्रतिशत|फीसदी|في المئة|في المائة|بالمئة|بالمائة|เปอร์เซ็นต์)"  # noqa: E501
    r"(?![\s-]?(?:points?|Punkte?)\b|p\b)",
    re.IGNORECASE,
)
_IN_A_HUNDRED = re.compile(
    r"\s(?:(?:out\s)?of\s(?:every|each)|(?:out\sof|in)\s(?:a|an|one)|in(?:\s(?:every|each))?)\s"
    r"(?:(?:one\s)?(?:hundred|100)|(?P<mille>(?:one\s)?(?:thousand|1[,.]?000)))\b(?![.,]?\d|-)"
    r"(?!\s(?:and\b|years?|months?|weeks?|days?|hours?|minutes?|seconds?|games|matches|appearances|innings|thousand|million|"
    r"metres?|meters?|[kcm]?[mgl]|ml|miles?|feet|yards?)\b)",
    re.IGNORECASE,
)
"""After "three" or "3": "in a hundred", "out of every 1,000"; the rate of a time or a length is no share."""
_PERCENT_BEFORE = "百分之"
_SUFFIX = re.compile(r"[^\W\d_]{1,20}")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|er|re|e|ème|eme|ère|º|ª|o|a|de|ste|й|я|е|го|х)(?!\w)", re.IGNORECASE)
_TIMES = frozenset(["x", "s", "fold", "x-fold"])
_NAME_AFTER = re.compile(r"[^\W\d_]+(?:\d|-\d)\w*")
_MINUS_WORD = re.compile(
    r"(?:\b(?:minus|negative|moins|menos|meno|mínus|минус|negativ[aeo]?)\s|(?:负|負|マイナス|零下|영하|마이너스)\s?)\Z",
    re.IGNORECASE,
)
_BELOW_ZERO = re.compile(
    r"[^.,;!?\n\d]{0,16}?\b(?:below zero|below freezing|unter Null|sous zéro|bajo cero|sotto zero|ниже нуля)\b", re.IGNORECASE
)
_FALLS = re.compile(
    r"\b(?:f[ae]ll\w{0,3}|dropp?\w{0,3}|declin\w{1,4}|decreas\w{1,4}|reduc\w{1,5}|los(?:s|t|e|es|ses|ing)|deficits?|down|shr[iau]nk\w{0,4}"
    r"|cut|plunge\w?|tumbl\w{1,3}|slump\w{0,3}|lower\w{0,3}|minus|negative|outflows?|sank|gesunken|fiel|sank|Verlust\w{0,3}|baiss\w{1,4}"
    r"|pertes?|recul\w{0,4}|cay\w{1,4}|pérdidas?|perdit[ae]|queda|spad\w{1,4}|strat\w{1,3}|сниз\w{1,6}|убыт\w{1,4}|упал\w{0,2})\b"
    r"|下降|减少|減少|亏损|赤字|하락|감소|손실",
    re.IGNORECASE,
)
_LEVEL = re.compile(
    r"\b(?:to|at|below|under|above|over|than|auf|unter|über|bis|à|hasta|fino a|до|ниже|выше)\s(?:[^\w\s]|US\$){0,4}\Z",
    re.IGNORECASE,
)
"""Words before a number that gives the level reached by a decrease, and not its amount."""
_OPENING = frozenset(" \t\n\r\u00a0([{=:;,<>~≈/|\"'“„«*_`+±≤≥$€£¥₹")
_AFTER_OPENING = re.compile(r"(?:\b(?:of|was|were|is|to|at|by|from)\s|[$€£¥₹]\s?)\(\Z|(?:^|[|\t\n])[ ]?\(\Z")
_CLOSED_CELL = re.compile(r"\)[ ]?(?:[|\t\n]|\Z)")
_TO = re.compile(r"\s?(?:[-\u2013\u2014\u2212~\u301c\uff5e至]|(?:to|bis|à|al|до|a)\s|から|부터)\s?(?:US\$|[$€£¥₹])?")
_BETWEEN = re.compile(r"\b(?:between|zwischen|entre|tra|fra|между|mellan|mellem|tussen)\s(?:US\$|[$€£¥₹])?\Z", re.IGNORECASE)
_AND = re.compile(r"\s(?:and|und|et|y|e|и|och|og|en)\s(?:US\$|[$€£¥₹])?")
_DATE = "date"
_FIRST_YEAR, _LAST_YEAR = 1500, 2199
_BEFORE = 6
_FAR_BEFORE = 40
_NEAR_BEFORE = 16
_MOST = 400
_MOST_THERE = 20_000
_LONGEST_KNOWN = 40_000
"""Longest text of which the numbers are kept for the next question, in characters."""


@dataclass(frozen=True)
class Number:
    """A number in a text.

    Args:
        value: with its sign; 0.3 million is 300,000, 30% is 30; NaN if it cannot be read ("3.2.1").
        percent: whether it is a percentage.
        begin: where it begins in the text, in characters, with its sign.
        end: where it ends.
        exact: half a unit of the last written digit: "1.5 million" is exact to 50,000.
        written: its text, in words or in digits.
        unit: the base of its unit ("m" of kilometres), as :mod:`nlp_retrieval.text.notation` has it; "date" for a part of
            one; "?" and the letters if an unknown unit of letters touches it; empty for none, and for percentages.
        size: of the unit, in its base.
        measured: its text with its unit; ``written`` if it has none.
        others: further possible values, if the text does not decide.
        parts: the numbers of a fraction, a ratio, or digits that may be several numbers.
        goes_on: whether it is the lower end of a range, and the next number the upper.
        falls: whether the words before it mean a decrease or a loss, so that it may mean a negative value.
        until: end of a unit after it; else ``end``.

    Examples:
        >>> (number,) = numbers_of("about 2.4 million passengers")
        >>> number.value, number.percent, number.written
        (2400000.0, False, '2.4 million')
    """

    value: float
    percent: bool
    begin: int
    end: int
    exact: float
    written: str
    unit: str = ""
    size: float = 1.0
    measured: str = ""
    others: tuple[float, ...] = ()
    parts: tuple[Number, ...] = ()
    goes_on: bool = False
    falls: bool = False
    until: int = 0

    @property
    def is_share(self) -> bool:
        """Return whether it is a share in words: "two thirds", "half", "one in five"."""
        return 0 < self.value < 1 and not self.percent and not any(char.isdigit() for char in self.written)

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key that decides which numbers it agrees with."""
        unreadable = self.written if math.isnan(self.value) or self.others else ""
        value = 0.0 if math.isnan(self.value) else self.value
        parts = tuple(part.value for part in self.parts)
        return value, self.percent, self.exact, self.unit, self.size, self.others, self.falls, unreadable, parts


def numbers_of(text: str, language: str | None = None) -> list[Number]:
    """Return the numbers of a text, in order; at most 400.

    Args:
        text: any text. Digits that belong to a name ("COVID-19", "H2O", "p53") are not numbers.
        language: of the text, as a code ("de"); None if unknown: then the text itself decides.

    Examples:
        >>> [number.value for number in numbers_of("Emissions fell by 12.5% to 3,400 tonnes.")]
        [12.5, 3400.0]
    """
    return list(islice(_numbers(text, language), _MOST))


def _numbers(text: str, language: str | None) -> Iterable[Number]:
    return _of_known(text, language) if len(text) <= _LONGEST_KNOWN else read_numbers(text, language)


@lru_cache(maxsize=32)  # a claim is compared with many passages, and a passage asked several things
def _of_known(text: str, language: str | None) -> tuple[Number, ...]:
    return tuple(read_numbers(text, language))


def agreeing(one: Number, other: Number) -> bool:
    """Return whether two numbers are the same, to their written precision.

    Args:
        one: a number of a claim.
        other: a number of a passage.

    Examples:
        >>> (one,), (other,) = numbers_of("2.4 million"), numbers_of("2,412,000")
        >>> agreeing(one, other)
        True
    """
    if one.others or other.others or math.isnan(one.value) or math.isnan(other.value):
        same = _bare(one.written) == _bare(other.written) and bool(one.others) == bool(other.others)
        return same and (one.percent, one.unit, one.size) == (other.percent, other.unit, other.size)
    return _agree(one, other)


def compare_numbers(claim: str, passage: str) -> list[tuple[Number, Number | None]]:
    """Return the numbers of a claim that are not certainly in a passage, each with a number that may be the same.

    Args:
        claim: a statement.
        passage: to support the claim; of any length, and with up to 20,000 different numbers.

    Returns:
        Pairs in order, with None if nothing in the passage may be the same.

    Examples:
        >>> ((claimed, written),) = compare_numbers("It has 40 stations.", "The line has 41 stations.")
        >>> claimed.value, written
        (40.0, None)
    """
    wanted = numbers_of(claim)
    if not wanted:
        return []
    missing = dict(enumerate(wanted))
    parts = {position: dict(enumerate(number.parts)) for position, number in missing.items() if number.parts}
    maybe: dict[int, Number] = {}
    seen: set[tuple[object, ...]] = set()
    for other in _numbers(passage, None):
        if other.key in seen:
            continue
        seen.add(other.key)
        split = [part for part in other.parts if all(_named(wanted, one) for one in other.parts)]
        for position, number in list(missing.items()):
            left = parts.get(position)
            pieces = [] if number.parts and not number.others else split  # 5:1 does not match the 5 of 1:5
            if left is not None:
                for part in [part for part, one in left.items() if agreeing(one, other)]:
                    del left[part]
            if agreeing(number, other) or (not other.others and any(agreeing(number, part) for part in pieces)):
                del missing[position]
            elif left is not None and not left:
                if number.others:
                    maybe.setdefault(position, other)
                else:
                    del missing[position]
            elif position not in maybe and (_may_agree(number, other) or any(_may_agree(number, part) for part in pieces)):
                maybe[position] = other
        if not missing or len(seen) == _MOST_THERE:
            break
    return [(number, maybe.get(position)) for position, number in missing.items()]


def _named(wanted: list[Number], part: Number) -> bool:
    return any(agreeing(number, part) or any(agreeing(one, part) for one in number.parts) for number in wanted)


def _bare(written: str) -> str:
    return "".join(plain_digits(written).split()).lower()


def _agree(one: Number, other: Number) -> bool:
    if one.percent != other.percent:
        share, bare = (one, other) if one.percent else (other, one)
        in_words = bare.is_share and bare.exact == _SHARE_EXACT
        slack = _SHARE_EXACT if in_words else 1e-9
        return (one.percent or in_words) and abs(share.value / 100 - bare.value) < slack and 0 < bare.value < 1
    if one.unit and other.unit:
        return one.unit == other.unit and _equal(one, other, one.size, other.size)
    return _equal(one, other)


def _may_agree(one: Number, other: Number) -> bool:
    if not (one.others or other.others):
        return False
    return any(
        _agree(replace(one, value=value, exact=0.0, others=()), replace(other, value=another, exact=0.0, others=()))
        for value in (one.value, *one.others)
        for another in (other.value, *other.others)
    )


def _equal(one: Number, other: Number, size: float = 1.0, other_size: float = 1.0) -> bool:
    value, there = one.value * size, other.value * other_size
    slack = max(one.exact * size, other.exact * other_size, 1e-9 * abs(value))
    if (value < 0) != (there < 0) and (one.falls if value > 0 else other.falls):
        value, there = abs(value), abs(there)
    elif value and there and (value < 0) != (there < 0):
        return False
    return abs(value - there) <= slack


class _Digits(NamedTuple):
    """A value of digits: its exactness, its end, other possible values, and whether it is a plain count."""

    value: float
    exact: float
    end: int
    others: tuple[float, ...] = ()
    is_count: bool = False
    parts: tuple[str, ...] = ()


class _Scaled(NamedTuple):
    """A value with the scale after it."""

    value: float
    exact: float
    end: int
    factor: float
    others: tuple[float, ...] = ()


def read_numbers(text: str, language: str | None = None) -> Iterator[Number]:
    """Yield the numbers of a text, in order; in a range that names its scale, share or unit once, the first gets them too."""
    plain = plain_digits(text)
    waiting: Number | None = None
    for number, factor, bare in _single(text, plain, convention_of(plain, language)):
        if waiting is not None:
            yield _ranged(plain, waiting, number, factor)
            waiting = None
        if bare:
            waiting = number
        else:
            yield number
    if waiting is not None:
        yield waiting


def _ranged(plain: str, first: Number, second: Number, factor: float) -> Number:
    """The first number, completed by the parts that a range gives only after its second number."""
    if second.begin - first.until > _BEFORE + 6 or second.begin < first.until or second.unit == _DATE:
        return first
    between = plain[first.until : second.begin + 1 if plain[second.begin] in "$€£" else second.begin]
    joined = _TO.fullmatch(between) or (
        _AND.fullmatch(between) and _BETWEEN.search(plain, max(0, first.begin - 16), first.begin)
    )
    if not joined:
        return first
    value, exact = first.value, first.exact
    if factor != 1.0 and first.written[-1:].isdigit() and abs(first.value) < abs(second.value / factor):
        value, exact = value * factor, max(exact, 0.5 * 10.0 ** -_decimals(first.written)) * factor
    percent = first.percent or (second.percent and not first.unit)
    unit, size = (first.unit, first.size) if first.unit or percent else (second.unit, second.size)
    goes_on = second.value >= value
    return replace(first, value=value, exact=exact, percent=percent, unit=unit, size=size, goes_on=goes_on)


def _decimals(written: str) -> int:
    match = re.search(r"[.,](\d{1,12})\Z", plain_digits(written))
    return len(match[1]) if match and len(match[1]) != 3 else 0


def _single(  # noqa: PLR0912 - a table of kinds
    text: str, plain: str, rules: Convention
) -> Iterator[tuple[Number, float, bool]]:
    """Each number, the factor of its scale, and whether it may be the first of a range."""
    dates = dates_of(text)[::-1]
    position, split = 0, 0
    while match := _NUMBER.search(plain, position):
        start, position = match.start(), match.end()
        while dates and dates[-1].end <= start:
            dates.pop()
        date = dates[-1] if dates and dates[-1].begin <= start else None
        if date is not None and date.numbers:
            if start == date.begin:
                for begin, end in date.numbers:
                    yield _of_date(text, begin, end), 1.0, False
            position = date.end
            continue
        before = plain[max(0, start - _BEFORE) : start]
        numeric = match.lastgroup in {"digits", "spaced"}
        if numeric and start >= split and _part_of_name(before, plain[position : position + 24]):
            name = _NAME_AFTER.match(plain, position)
            position = name.end() if name else position
            continue
        if match["han"]:
            value = _han_value(match["han"], plain[position : position + 1])
            if value is None:
                continue
            digits = _Digits(value, 0.0, position, is_count=True)
        elif match["vulgar"]:
            digits = _Digits(unicodedata.numeric(match["vulgar"]), 0.0, position)
        elif match["over"]:
            share = _WORDS.get(match["over"].lower(), 1.0) / _UNDER[match["under"].lower()]
            digits = _Digits(share, _SHARE_EXACT, position)
        elif match["part"]:
            digits = _Digits(_WORDS[match["part"].lower()] / _WORDS[match["whole"].lower()], _SHARE_EXACT, position)
        elif match["word"]:
            digits = _word_value(match, plain)
        elif start < split:  # one of a list: digits up to the next comma
            position = next((place for place in range(start, position) if not plain[place].isdigit()), position)
            digits = _Digits(_float(plain[start:position]), 0.0, position, is_count=True)
        else:
            digits = _digits_value(match, plain, rules)
            split = match.end() if digits.end < match.end() else split
        number, factor = _with_surroundings(text, plain, start, digits, match, rules, date)
        position = max(number.end, number.until, start + 1) if not digits.parts else max(number.until, digits.end)
        bare = numeric and not number.parts and number.unit != _DATE and not _is_year(digits, factor, plain[start : digits.end])
        yield number, factor, bare


def _with_surroundings(
    text: str, plain: str, start: int, digits: _Digits, match: re.Match[str], rules: Convention, date: Date | None
) -> tuple[Number, float]:
    """A number with its sign, scale, share and unit, and the factor of the scale."""
    numeric = match.lastgroup in {"digits", "spaced"}
    currency = CURRENCY_BEFORE.search(plain[max(0, start - _BEFORE) : start])
    first = start - len(currency[0]) if currency else start
    sign, begin = _sign(plain, first)
    if sign < 0 and currency is None:
        currency = CURRENCY_BEFORE.search(plain[max(0, begin - _BEFORE) : begin])
        first = begin - len(currency[0]) if currency else begin
    first, begin = (min(first, begin), begin) if sign < 0 else (first, start)
    accounting = numeric and sign > 0 and _is_accounting(plain, start, digits.end)
    scaled = _scaled(plain, digits, currency is not None, rules, numeric=numeric, closed=accounting)
    end = scaled.end
    value, others, exact = scaled.value, scaled.others, scaled.exact
    percent = _PERCENT.match(plain, end) or _in_a_hundred(plain, end, value) if _goes_on(plain, end) else None
    is_share = percent is not None or plain[max(0, start - 3) : start] == _PERCENT_BEFORE
    if percent:
        if percent["mille"]:
            value, exact, others = value / 10, exact / 10, tuple(other / 10 for other in others)
        end = percent.end()
    unit, size, until = "", 1.0, end
    word = (match["word"] or "").lower()
    ordinal = _ORDINAL.match(plain, end) if numeric and end == digits.end else None
    if ordinal:
        end = until = ordinal.end()
    year = _is_year(digits, scaled.factor, plain[start : digits.end])
    if not (is_share or ordinal or word in _UNITLESS or word.endswith("fold") or (year and currency is None)):
        joint = re.compile(r"\s?(?:d'|de\s|di\s|of\s)").match(plain, end) if scaled.factor != 1.0 else None
        after = (UNIT.match(plain, end) if _goes_on(plain, end) else None) or (
            UNIT.match(plain, joint.end()) if joint else None
        )
        unit, size = unit_of(after, currency[0] if currency else "")
        if after is not None and currency is None:
            until = after.end()
        elif numeric and not unit and end == digits.end and (letters := _SUFFIX.match(plain, end)):
            known = letters[0].casefold() in _TIMES or _is_together(letters[0][0])
            unit, until = ("", end) if known else (f"?{letters[0].casefold().rstrip('s')}", letters.end())
    below = _BELOW_ZERO.match(plain, until, until + 40) if _goes_on(plain, until) else None
    if accounting or below:
        sign = -1
    written = text[begin:end].strip()
    until = below.end() if below else until
    shown = text[first:until].strip() if unit and unit[:1] != "?" else written
    unit = unit or (_DATE if date is not None else "")
    falls = sign > 0 and not _LEVEL.search(plain, max(0, begin - _NEAR_BEFORE), begin)
    falls = falls and _FALLS.search(plain, max(0, begin - _FAR_BEFORE), begin) is not None
    parts = tuple(Number(float(part), False, start, digits.end, 0.0, part) for part in digits.parts)
    number = Number(
        sign * value, is_share, begin, end, exact, written, unit, size, shown, tuple(sign * other for other in others), parts,
        falls=falls, until=until,
    )  # fmt: skip
    return number, scaled.factor


def _in_a_hundred(plain: str, end: int, value: float) -> re.Match[str] | None:
    """Return the rest of a share after a number ("in a hundred", "of every thousand"); None if the number is no part of it."""
    share = _IN_A_HUNDRED.match(plain, end)
    return share if share and 0 < value < (1000 if share["mille"] else 100) else None


def _goes_on(plain: str, position: int) -> bool:
    """Return whether a letter or a sign follows a number directly, or after one space or hyphen."""
    next_char = plain[position : position + 2].lstrip(" \u00a0-")[:1]
    return next_char != "" and not next_char.isdigit() and next_char not in ".,;:()[]\n"


def _scaled(plain: str, digits: _Digits, money: bool, rules: Convention, *, numeric: bool, closed: bool) -> _Scaled:  # noqa: PLR0911, PLR0912
    """Apply the exponent or the scale after some digits."""
    value, exact, end, others = digits.value, digits.exact, digits.end, digits.others
    factor = 1.0
    if numeric:
        if power := _EXPONENT.match(plain, end) or _POWER.match(plain, end):
            factor, end = _ten(next(filter(None, power.groups()))), power.end()
        elif value == 10 and digits.is_count and (power := _OF_TEN.match(plain, end)):
            raised = next(filter(None, power.groups()))
            return _Scaled(_ten(raised), 0.0, power.end(), 1.0, (10.0,) if raised in {"²", "³", "¹"} else ())
        if factor != 1.0:
            exact = exact or 0.5
            return _Scaled(value * factor, exact * factor, end, 1.0, tuple(other * factor for other in others))
    position = end + 1 if closed and plain[end : end + 1] == ")" else end
    if not _goes_on(plain, position):
        return _Scaled(value, 0.0 if digits.is_count else exact, end, 1.0, others)
    scale = _SCALE.match(plain, position)
    if scale and (money or not _MILES.match(plain, position)):
        factor, end = rules.scale(scale["scale"]), scale.end()
        if scale["again"]:
            factor *= rules.scale(scale["again"])
        if plain[end - 1] == "." and (scale["again"] or scale["scale"]).lower() not in _SHORTENED:
            end -= 1
    elif thai := _THAI_SCALE.match(plain, position):
        factor, end = SCALES[thai[1]], thai.end()
    elif (numeric or digits.is_count) and (han := _HAN_SCALE.match(plain, position)):
        return _han_scaled(plain, digits, han)
    elif numeric and (short := (_SHORT_SCALE.match(plain, position) if money else _ATTACHED_SCALE.match(plain, position))):
        factor, end = _SHORT[short[1].lower()], short.end()
    elif numeric and re.compile(r"m(?![\w/\u00b2\u00b3])").match(plain, position) and not others:
        return _Scaled(value, 0.0 if digits.is_count else exact, end, 1.0, (value * 1e6,))
    if factor == 1.0:
        return _Scaled(value, 0.0 if digits.is_count else exact, end, 1.0, others)
    return _Scaled(
        value * factor, (exact or (0.5 if numeric else 0.0)) * factor, end, factor, tuple(other * factor for other in others)
    )


def _han_scaled(plain: str, digits: _Digits, match: re.Match[str]) -> _Scaled:
    """A value with 万, 億, 만 and the like after it, and the rest of the same number: "1億2000万"."""
    factor = math.prod(_HAN_SCALES[char] for char in match[1])
    value, exact, end, least = digits.value * factor, (digits.exact or 0.5) * factor, match.end(), factor
    for _ in range(6):
        more = _HAN_NEXT.match(plain, end)
        if more is None:
            break
        small = math.prod(_HAN_SCALES[char] for char in more[2] or "")
        added = float(more[1].replace(",", "")) * small
        if added >= least or (not more[2] and _SUFFIX.match(plain, more.end()) is None and plain[more.start()].isspace()):
            break
        value, exact, end, least = value + added, 0.5 * small if small > 1 else 0.0, more.end(), small
    return _Scaled(
        value, exact, end, float(factor) if end == match.end() else 1.0, tuple(other * factor for other in digits.others)
    )


def _ten(exponent: str) -> float:
    power = int(exponent.translate(_POWERS)) if len(exponent) <= 5 else _MOST_DIGITS + 1
    return 10.0**power if abs(power) <= _MOST_DIGITS else math.nan


def _float(digits: str) -> float:
    return float(digits) if len(digits) <= _MOST_DIGITS else math.nan


def _word_value(match: re.Match[str], plain: str) -> _Digits:
    value = _WORDS[match["word"].lower()]
    end = match.end()
    if match["more"]:
        if 20 <= value < 100:
            value += _WORDS[match["more"].lower()]
        else:
            end = match.end("word")
    if value < 100 and (rest := _REST.match(plain, end)):
        value = value * 100 + _WORDS[rest["word"].lower()]
        tens = 20 <= _WORDS[rest["word"].lower()] < 100
        value += _WORDS[rest["more"].lower()] if rest["more"] and tens else 0
        end = rest.end() if tens or not rest["more"] else rest.end("word")
    elif match["word"].lower() == "half" and (
        of := re.compile(r"\sa(?=\s(?:million|billion|trillion|dozen)\b)", re.I).match(plain, end)
    ):
        end = of.end()
    return _Digits(value, 0.0, end)


def _han_value(han: str, after: str) -> float | None:
    """The value of Chinese numerals; None if they are other words."""
    if all(char in _HAN_DIGITS for char in han):
        return float("".join(str(_HAN_DIGITS[char]) for char in han)) if after == "年" and len(han) > 2 else None
    if not any(char in _HAN_DIGITS and char not in "〇零" for char in han) and han[0] != "十":
        return None
    total = section = digit = 0
    for char in han:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif char in _HAN_SMALL:
            section, digit = section + (digit or 1) * _HAN_SMALL[char], 0
        else:
            total, section, digit = (
                (total + section + digit or 1) * _HAN_LARGE[char]
                if not total
                else total + (section + digit) * _HAN_LARGE[char],
                0,
                0,
            )
    return float(total + section + digit) if han not in {"十分", "千万", "万一", "一一"} else None


def _digits_value(match: re.Match[str], plain: str, rules: Convention) -> _Digits:  # noqa: PLR0911
    """The value of digits with marks between them."""
    written, end = match[0], match.end()
    if len(written) > 4 * _MOST_DIGITS:
        return _Digits(math.nan, 0.0, end)
    if match["spaced"]:
        return _spaced_value(written, end, rules)
    whole = not any(mark in written for mark in ".,'\u066b\u066c\u00b7")
    if whole:
        if (fraction := _fraction(plain, match)) is not None:
            return fraction
        value = _float(written)
        if vulgar := _VULGAR.match(plain, end):
            return _Digits(value + unicodedata.numeric(vulgar[1]), 0.0, vulgar.end())
        return _Digits(value, 0.5, end, is_count=True)
    if written.startswith((".", "\u00b7")):
        rest = written[1:]
        return _exactly("0." + rest, end) if rest.isdigit() else _Digits(math.nan, 0.0, end)
    pieces = re.split(r"[.,'\u066b\u066c\u00b7]", written)
    marks = [char for char in written if not char.isdigit()]
    return _grouped(written, pieces, marks, end, rules)


def _grouped(  # noqa: PLR0911 - a table of cases
    written: str, pieces: list[str], marks: list[str], end: int, rules: Convention
) -> _Digits:
    thirds = all(len(piece) == 3 for piece in pieces[1:]) and len(pieces[0]) <= 3 and pieces[0][0] != "0"
    last = marks[-1]
    if last in "\u066b\u00b7" and len(set(marks[:-1])) <= 1 and last not in marks[:-1]:
        return _exactly("".join(pieces[:-1]) + "." + pieces[-1], end)
    if set(marks) <= {"'"} or set(marks) == {"\u066c"}:
        return _Digits(_float("".join(pieces)), 0.5, end) if thirds else _first_of_list(pieces, end, written)
    if len(set(marks)) == 2 and marks.count(last) == 1 and last in ".,":
        head = pieces[:-1]
        groups = all(len(piece) == 3 for piece in head[1:]) and len(head[0]) <= 3
        if groups or (last == "." and _INDIAN.fullmatch(written)):
            return _exactly("".join(head) + "." + pieces[-1], end)
        return _Digits(math.nan, 0.0, end)
    if len(set(marks)) > 1 or last not in ".,":
        return _Digits(math.nan, 0.0, end)
    if len(marks) > 1:
        if thirds or (last == "," and _INDIAN.fullmatch(written)):
            return _Digits(_float("".join(pieces)), 0.5, end)
        return _first_of_list(pieces, end, written) if last == "," else _Digits(math.nan, 0.0, end)
    decimal = _exactly(".".join(pieces), end)
    if not thirds:
        if last == "," and rules.decimal == ".":  # "3,5" in an English text: a decimal comma, or two numbers
            if len(pieces[0]) == len(pieces[1]) == 4:
                return _first_of_list(pieces, end, written)
            return decimal._replace(others=(float(pieces[0]), float(pieces[1])), parts=tuple(pieces))
        return decimal
    joined = _Digits(_float("".join(pieces)), 0.5, end)
    if not rules.decimal:
        first, second = (decimal, joined) if last == "." else (joined, decimal)
        return first._replace(others=(second.value,))
    return decimal if last == rules.decimal else joined


def _spaced_value(written: str, end: int, rules: Convention) -> _Digits:
    """Digits with thousands separated by a space; a plain space may also separate several numbers."""
    head, mark, tail = written.replace(",", ".").partition(".")
    value = _exactly("".join(head.split()) + mark + tail, end)
    pieces = head.split(" ")
    sure = len(pieces) == 1 or rules.spaces or bool(tail) or any(piece[0] == "0" for piece in pieces[1:])
    if sure:
        return value
    return value._replace(others=tuple(map(float, pieces)), parts=tuple(pieces))


def _first_of_list(pieces: list[str], end: int, written: str) -> _Digits:
    return _Digits(_float(pieces[0]), 0.0, end - len(written) + len(pieces[0]), is_count=True)


def _exactly(digits: str, end: int) -> _Digits:
    decimals = len(digits.partition(".")[2])
    return _Digits(_float(digits), 0.5 * 10.0**-decimals, end)


def _fraction(plain: str, match: re.Match[str]) -> _Digits | None:
    """A fraction, a mixed number or a ratio that begins with some digits; None if there is none."""
    end = match.end()
    if len(match[0]) > 6 or plain[match.start() - 1 : match.start()] in ({"/", ":"}):
        return None
    top = int(match[0])
    if fraction := _FRACTION.match(plain, end):
        below = int(fraction[1])
        if 0 < top < below and len(match[0]) <= 3:
            return _Digits(top / below, 0.0, fraction.end(), parts=(match[0], fraction[1]))
        return None
    if (mixed := _MIXED.match(plain, end)) and 0 < int(mixed[1]) < int(mixed[2]) <= 16:
        return _Digits(top + int(mixed[1]) / int(mixed[2]), 0.0, mixed.end())
    ratio = _RATIO.match(plain, end)
    if ratio and float(ratio[1]) > 0:
        return _Digits(top / float(ratio[1]), 0.0, ratio.end(), parts=(match[0], ratio[1]))
    return None


def _sign(plain: str, start: int) -> tuple[int, int]:
    """-1 if a sign or a word before a place makes a number negative, and the position of its beginning."""
    if start and plain[start - 1] in "-\u2013\u2212":
        position = start - 1
        before = plain[position - 1 : position]
        opens = not before or before in _OPENING or _is_together(before)
        if opens and before.isspace() and plain[position] != "\u2212":
            opens = not plain[:position][-3:].rstrip()[-1:].isdigit()
        return (-1, position) if opens else (1, start)
    if plain[max(0, start - 2) : start] in {"\u2212 ", "\u2212\u00a0"}:
        ahead = plain[max(0, start - 4) : start - 2]
        if (not ahead or not ahead[-1].isalnum()) and not ahead.rstrip()[-1:].isdigit():
            return -1, start - 2
    if word := _MINUS_WORD.search(plain, max(0, start - 12), start):
        return -1, word.start()
    return 1, start


def _is_accounting(plain: str, start: int, end: int) -> bool:
    """Return whether digits are in parentheses that mean a negative value: "$(5.2)", "(5.2) million", or alone in a cell."""
    if plain[start - 1 : start] != "(" or plain[end : end + 1] != ")":
        return False
    opened = _AFTER_OPENING.search(plain, max(0, start - 12), start)
    cell = opened is not None and opened[0].lstrip("|\t\n ") == "("
    if opened is not None and (not cell or _CLOSED_CELL.match(plain, end)):
        return True
    return _SCALE.match(plain, end + 1) is not None


def _is_year(digits: _Digits, factor: float, written: str) -> bool:
    return factor == 1.0 and len(written) == 4 and written.isdigit() and _FIRST_YEAR <= digits.value <= _LAST_YEAR


def _of_date(text: str, begin: int, end: int) -> Number:
    part = text[begin:end]
    return Number(float(part), False, begin, end, 0.0, part, _DATE, measured=part, until=end)


_TOGETHER = re.compile(f"[{WRITTEN_TOGETHER}]")


def _is_together(char: str) -> bool:
    return _TOGETHER.match(char) is not None


def _part_of_name(before: str, after: str) -> bool:
    """Return whether digits belong to a name: after a letter, a hyphen after a letter, or letters and digits."""
    last = before[-1:]
    if CURRENCY_BEFORE.search(before):
        return False
    if last == "_" or (last.isalpha() and not _is_together(last)):
        return True
    if last == "-" and before[-2:-1].isalpha() and not _is_together(before[-2:-1]):
        return True
    if last in {".", ","} and before[-2:-1].isdigit():
        return True
    return _NAME_AFTER.match(after) is not None and _EXPONENT.match(after) is None and not _is_together(after[0])
