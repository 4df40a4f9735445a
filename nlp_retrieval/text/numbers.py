"""Numbers of a text, with their units, as they appear in reports: "1.2 million people", "30%", "-5 °C", "$38.4B", "3½".

Read are signs ("-5", "minus 5", "$(5)"), digits of any script, thousands and decimals as European languages mark them,
exponents, fractions, ratios, ranges ("3-5 million" are 3 and 5 million), scales of many languages, and number words in English.
Digits of names ("COVID-19") are no numbers; of a date of digits only the year and the day are, but not the month.

Two numbers agree if their values, with their signs and units, are equal to the precision of the less exact one ("about 1.5
million" and "1,502,113"). A number that may mean several values ("1.234" in a text of unknown language) keeps them all, and
agrees only with an equally ambiguous one in the same wording. All work is linear in the length of the text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from nlp_retrieval.text.dates import Date, dates_of
from nlp_retrieval.text.units import CURRENCY_BEFORE, SCALES, UNIT, either, unit_of
from nlp_retrieval.text.words import HAN, HANGUL

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
_WRITTEN_TOGETHER = f"{HAN}{HANGUL}\u3040-\u30ff\u0900-\u0965\u0970-\u0dff\u0e00-\u0e4f\u0600-\u065f\u066e-\u06ef"
"""Letters of scripts that put no space between a number and a word."""
_MOST_DIGITS = 300
_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺−–", "0123456789-+--")
_NUMBER = re.compile(
    r"(?P<spaced>(?<![\d.,'])(?<!\d[ \u00a0])(?:\d{1,3}(?:\u00a0\d{3}){1,6}|[1-9]\d{0,2}(?: \d{3}){1,4}(?! \d))(?:[.,]\d{1,12})?(?![\d']|[.,]\d))"  # noqa: E501
    r"|(?P<digits>(?:(?<![\w.,)\]'])\.)?\d+(?:[.,']\d+)*)"
    rf"|\b(?P<over>(?:a(?=\s\w{{4,7}}\sof\b)|one)(?=[\s-](?:{either(_UNDER)})\b)|(?:{'|'.join(_SMALL[2:10])})(?=[\s-](?:halves|(?:{either(_UNDER)})s)\b))"
    rf"[\s-](?P<under>{either(_UNDER)})s?\b"
    rf"|\b(?P<part>{'|'.join(_SMALL[1:10])})\s(?:in|out\sof)\s(?P<whole>{'|'.join(_SMALL[2:])})\b"
    rf"|\b(?P<word>{either(_WORDS)})\b"
    r"|(?P<vulgar>[\u00bc-\u00be\u2150-\u215e\u2189])",
    re.IGNORECASE,
)
_CARDINALS = {*_SMALL[1:], *_TENS}
_SIZES = {word: SCALES[word] for word in ("hundred", "thousand", "million", "billion", "trillion")}
_AFTER_TENS = f"(?:{either([*_CARDINALS, *(_WORDS.keys() & _ORDINALS[1:10])])})"
_NEXT_WORD = re.compile(
    rf"(?:[\s-]|(?<=hundred)\sand\s)"
    rf"(?P<word>{either(_SIZES)}|(?<=-)(?:{_AFTER_TENS}|second)"
    # "forty third-party vendors", "two million five-year-olds"
    rf"|{_AFTER_TENS}(?!-(?!(?:{either([*_CARDINALS, *_SIZES, *_ORDINALS])})\b)[^\W\d_]))\b",
    re.IGNORECASE,
)
_AND_A_HALF = re.compile(r"\sand\sa\shalf\b", re.IGNORECASE)
_HALF_A = re.compile(r"\sa(?=\s(?:million|billion|trillion|dozen)\b)", re.IGNORECASE)
_INDIAN = re.compile(r"\d{1,2}(?:,\d\d){1,10},\d{3}(?:\.\d+)?")
_FRACTION = re.compile(r"(?:/|\sout\sof\s|(?<=(?<!\d)1)\sin\s)(\d{1,3})(?![\d/]|[.,]\d)")
_MIXED = re.compile(r"[ \u00a0-](\d{1,2})/(\d{1,2})(?![\d/]|[.,]\d)")
_RATIO = re.compile(r"(?:\s:\s|:)(\d{1,6}(?:\.\d{1,6})?)(?![\d:]|[.,]\d)")
_VULGAR = re.compile(r"[ \u00a0]?([\u00bc-\u00be\u2150-\u215e\u2189])")
_EXPONENT = re.compile(r"[eE]([-+\u2212\u2013]?\d+)(?!\w)")
_POWER = re.compile(
    r"(?:\s?(?:[\u00d7\u00b7*xX]|\\times|\\cdot)\s?10)(?:\^\{?\s?([-+\u2212\u2013]?\d+)\}?|\*\*([-+\u2212]?\d+)|([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]{1,5}))"
)
_OF_TEN = re.compile(r"(?:\^\{?\s?([-+\u2212\u2013]?\d+)\}?|\*\*([-+\u2212]?\d+)|([⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]{1,5}))")
_TOGETHER = re.compile(f"[{_WRITTEN_TOGETHER}]")
_KILO = "(?<![千兆](?=[米克瓦卡伏赫帕焦]|字节|比特))"
"""Not of a prefix of a unit: kilometre, megawatt."""
_ONE_SCALE = rf"({either(SCALES)}){_KILO}(?:(?<=[{_WRITTEN_TOGETHER}])|(?!\w))\.?"
_SCALE = re.compile(rf"[\s-]?{_ONE_SCALE}(?:\s{_ONE_SCALE})?", re.IGNORECASE)
_SHORT_SCALE = re.compile(r"\s?(mm|mn|bn|tn|m|k|b|t)(?![\w/])", re.IGNORECASE)
_ATTACHED_SCALE = re.compile(rf"(k|K|M|B)(?=[{_WRITTEN_TOGETHER}]|(?![\w/\u00b2\u00b3₂]))")
_LONE_M = re.compile(r"m(?![\w/\u00b2\u00b3])")
_SHORTENED = frozenset("mio mrd tsd mln mlrd mld tys тыс млн млрд".split())
_SHORT = {"k": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12, "tn": 1e12}
_MIDDLE_DOT = re.compile(r"(?:(?<=\d)|(?<![\w.,)\]']))\u00b7(?=\d)(?!10[\^*\u2070\u00b9\u00b2\u00b3\u2074-\u207b])")
"""A decimal point, and no sign of multiplication."""
_PERCENT = re.compile(
    r"\s?(?:(?P<mille>‰|per mille\b)|%|(?:percent|pct|prozent|pro[cs]enta?|p(?:er|our) cento?|por ?cien?to|процент\w{0,3})\b)"
    r"(?![\s-]?points?\b|p\b)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"[^\W\d_]{1,20}")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?!\w)", re.IGNORECASE)
_OF = re.compile(r"\s(?:of\s|de\s|di\s|d')")
_TIMES = frozenset(["x", "s", "fold", "x-fold"])
_NAME_AFTER = re.compile(r"[^\W\d_]+(?:\d|-\d)\w*")
_MINUS_WORD = re.compile(r"\b(?:minus|negative)\s\Z", re.IGNORECASE)
_BELOW_ZERO = re.compile(r"[^.,;!?\n\d]{0,16}?\b(?:below zero|below freezing)\b", re.IGNORECASE)
_FALLS = re.compile(
    r"\b(?:f[ae]ll\w{0,3}|dropp?\w{0,3}|declin\w{1,4}|decreas\w{1,4}|reduc\w{1,5}|los(?:s|t|e|es|ses|ing)|deficits?|down|cut|sank"
    r"|shr[iau]nk\w{0,4}|plunge\w?|tumbl\w{1,3}|slump\w{0,3}|lower\w{0,3}|minus|negative|outflows?)\b",
    re.IGNORECASE,
)
_LEVEL = re.compile(r"\b(?:to|at|below|under|above|over|than)\s(?:[^\w\s]|US\$){0,4}\Z", re.IGNORECASE)
"""Words before a number that gives the level reached by a decrease, and not its amount."""
_OPENING = frozenset(" \t\n\r\u00a0([{=:;,<>~≈/|\"'“„«*_`+±≤≥$€£¥₹")
_ACCOUNTING = re.compile(r"[$€£¥₹]\s?\(\Z")
_MONEY = r"(?:US\$|[$€£¥₹]|[A-Z]{3}\s?)?"
_TO = re.compile(rf"\s?(?:[-\u2013\u2014\u2212~\u301c\uff5e]|to\s)\s?{_MONEY}")
_BETWEEN = re.compile(rf"\b[Bb]etween\s{_MONEY}\Z")
_AND = re.compile(rf"\sand\s{_MONEY}")
_DATE = "date"
_FIRST_YEAR, _LAST_YEAR = 1500, 2199
_BEFORE = 6
_FAR_BEFORE, _NEAR_BEFORE = 40, 16
_MOST = 400
_MOST_THERE = 100_000
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
        unit: the base of its unit ("m" of kilometres), as ``units.tsv`` has it; "date" for a part of
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


def numbers_of(text: str) -> list[Number]:
    """Return the numbers of a text, in order; at most 400.

    Args:
        text: any text. Digits that belong to a name ("COVID-19", "H2O", "p53") are not numbers.

    Examples:
        >>> [number.value for number in numbers_of("Emissions fell by 12.5% to 3,400 tonnes.")]
        [12.5, 3400.0]
    """
    return list(islice(_numbers(text), _MOST))


def _numbers(text: str) -> Iterable[Number]:
    return _of_known(text) if len(text) <= _LONGEST_KNOWN else read_numbers(text)


@lru_cache(maxsize=32)  # a claim is compared with many passages, and a passage asked several things
def _of_known(text: str) -> tuple[Number, ...]:
    return tuple(read_numbers(text))


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
    if one.percent != other.percent:
        share, bare = (one, other) if one.percent else (other, one)
        in_words = bare.is_share and bare.exact == _SHARE_EXACT
        slack = _SHARE_EXACT if in_words else 1e-9
        return (one.percent or in_words) and abs(share.value / 100 - bare.value) < slack and 0 < bare.value < 1
    if one.unit and other.unit:
        return one.unit == other.unit and _equal(one, other, one.size, other.size)
    return _equal(one, other)


def compare_numbers(claim: str, passage: str) -> list[tuple[Number, Number | None]]:
    """Return the numbers of a claim that are not certainly in a passage, each with a number that may be the same.

    Args:
        claim: a statement.
        passage: to support the claim; of any length, of which the first 100,000 numbers are read.

    Returns:
        Pairs in order, with None if nothing in the passage may be the same.

    Examples:
        >>> ((claimed, written),) = compare_numbers("It has 40 stations.", "The line has 41 stations.")
        >>> claimed.value, written
        (40.0, None)
    """
    wanted = numbers_of(claim)
    missing, left = dict(enumerate(wanted)), [number.parts for number in wanted]
    maybe: dict[int, Number] = {}
    for other in islice(_numbers(passage) if wanted else (), _MOST_THERE):
        in_words = any(map(str.isalpha, other.written))  # "4 out of 10" names 10, while 1:5 does not name 5
        split = [part for part in other.parts if in_words or all(_named(wanted, one) for one in other.parts)]
        for at, number in list(missing.items()):
            forms = [other, *([] if number.parts and not number.others else split)]  # 5:1 does not match the 5 of 1:5
            left[at] = tuple(part for part in left[at] if not agreeing(part, other))
            has_all = number.parts and not left[at]
            agrees = any(agreeing(number, form) for form in (forms[:1] if other.others else forms))
            if agrees or (has_all and not number.others):
                del missing[at]
            elif at not in maybe and (has_all or any(_may_agree(number, form) for form in forms)):
                maybe[at] = other
        if not missing:
            break
    return [(number, maybe.get(at)) for at, number in missing.items()]


def _named(wanted: list[Number], part: Number) -> bool:
    return any(agreeing(number, part) or any(agreeing(one, part) for one in number.parts) for number in wanted)


def _bare(written: str) -> str:
    return "".join(plain_digits(written).split()).lower()


def _may_agree(one: Number, other: Number) -> bool:
    if not (one.others or other.others):
        return False
    return any(
        agreeing(replace(one, value=value, exact=0.0, others=()), replace(other, value=another, exact=0.0, others=()))
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
    """A value of digits: its exactness, its end, other possible values, whether it is a plain count, and its scale."""

    value: float
    exact: float
    end: int
    others: tuple[float, ...] = ()
    is_count: bool = False
    parts: tuple[str, ...] = ()
    factor: float = 1.0

    def scaled(self, factor: float, end: int, exact: float) -> _Digits:
        others = tuple(other * factor for other in self.others)
        return self._replace(value=self.value * factor, exact=exact * factor, end=end, others=others, factor=factor)


def read_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text, in order; in a range that names its scale, share or unit once, the first gets them too."""
    plain = _MIDDLE_DOT.sub(".", plain_digits(text))
    waiting: Number | None = None
    for single, factor, bare in _single(text, plain, decimal_mark(plain)):
        number = single
        if waiting is not None:
            first = _ranged(plain, waiting, number, factor)
            if first.goes_on and not (number.unit or number.percent):  # "$5-10 billion"
                number = replace(number, unit=first.unit, size=first.size)
            yield first
        waiting = number if bare else None
        if not bare:
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
        decimals = re.search(r"[.,](\d{1,2}|\d{4,12})\Z", plain_digits(first.written))
        value, exact = value * factor, max(exact, 0.5 * 10.0 ** -(len(decimals[1]) if decimals else 0)) * factor
    percent = first.percent or (second.percent and not first.unit)
    unit, size = (first.unit, first.size) if first.unit or percent else (second.unit, second.size)
    goes_on = second.value >= value
    return replace(first, value=value, exact=exact, percent=percent, unit=unit, size=size, goes_on=goes_on)


def _single(text: str, plain: str, mark: str) -> Iterator[tuple[Number, float, bool]]:
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
                    part = text[begin:end]
                    yield Number(float(part), False, begin, end, 0.0, part, _DATE, measured=part, until=end), 1.0, False
            position = date.end
            continue
        before = plain[max(0, start - _BEFORE) : start]
        numeric = match.lastgroup in {"digits", "spaced"}
        if numeric and start >= split and _part_of_name(before, plain[position : position + 24]):
            name = _NAME_AFTER.match(plain, position)
            position = name.end() if name else position
            continue
        if match["vulgar"]:
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
            digits = _digits_value(match, plain, mark)
            split = match.end() if digits.end < match.end() else split
        number, factor = _with_surroundings(text, plain, start, digits, match, date)
        position = max(number.end, number.until, start + 1) if not digits.parts else max(number.until, digits.end)
        bare = numeric and not number.parts and number.unit != _DATE and not _is_year(digits, factor, plain[start : digits.end])
        yield number, factor, bare


def _with_surroundings(
    text: str, plain: str, start: int, digits: _Digits, match: re.Match[str], date: Date | None
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
    in_brackets = numeric and plain[digits.end : digits.end + 1] == ")"
    in_brackets = in_brackets and _ACCOUNTING.search(plain, max(0, start - 3), start) is not None
    scaled = _scaled(plain, digits, currency is not None, numeric=numeric, closed=in_brackets)
    percent = _PERCENT.match(plain, scaled.end) if _goes_on(plain, scaled.end) else None
    end = percent.end() if percent else scaled.end
    unit, size, until = "", 1.0, end
    word = (match["word"] or "").lower()
    ordinal = _ORDINAL.match(plain, end) if numeric and end == digits.end else None
    if ordinal:
        end = until = ordinal.end()
    year = _is_year(digits, scaled.factor, plain[start : digits.end])
    if not (percent or ordinal or word in _UNITLESS or word.endswith("fold") or (year and currency is None)):
        joint = _OF.match(plain, end) if scaled.factor != 1.0 else None
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
    sign = -1 if in_brackets or below else sign
    until = below.end() if below else until
    written = text[begin:end].strip()
    shown = text[first:until].strip() if unit and unit[:1] != "?" else written
    unit = unit or (_DATE if date is not None else "")
    falls = sign > 0 and not _LEVEL.search(plain, max(0, begin - _NEAR_BEFORE), begin)
    falls = falls and _FALLS.search(plain, max(0, begin - _FAR_BEFORE), begin) is not None
    parts = tuple(Number(float(part), False, start, digits.end, 0.0, part) for part in digits.parts)
    divisor = sign * (10 if percent and percent["mille"] else 1)
    number = Number(
        scaled.value / divisor, percent is not None, begin, end, scaled.exact / abs(divisor), written, unit, size, shown,
        tuple(other / divisor for other in scaled.others), parts, falls=falls, until=until,
    )  # fmt: skip
    return number, scaled.factor


def _goes_on(plain: str, position: int) -> bool:
    """Return whether a letter or a sign follows a number directly, or after one space or hyphen."""
    next_char = plain[position : position + 2].lstrip(" \u00a0-")[:1]
    return next_char != "" and not next_char.isdigit() and next_char not in ".,;:()[]\n"


def _scaled(plain: str, digits: _Digits, money: bool, *, numeric: bool, closed: bool) -> _Digits:
    """Apply the exponent or the scale after some digits."""
    exact, end = digits.exact, digits.end
    if numeric and (power := _EXPONENT.match(plain, end) or _POWER.match(plain, end)):
        return digits.scaled(_ten(next(filter(None, power.groups()))), power.end(), exact or 0.5)._replace(factor=1.0)
    if numeric and digits.value == 10 and digits.is_count and (power := _OF_TEN.match(plain, end)):
        raised = next(filter(None, power.groups()))
        return _Digits(_ten(raised), 0.0, power.end(), (10.0,) if raised in {"²", "³", "¹"} else ())
    end += closed  # "$(5) million"
    if _goes_on(plain, end):
        if scale := _SCALE.match(plain, end):
            words = [word.lower() for word in scale.groups() if word]
            dot = plain[scale.end() - 1] == "." and words[-1] not in _SHORTENED
            factor = math.prod(map(SCALES.__getitem__, words))
            return digits.scaled(factor, scale.end() - dot, exact or (0.5 if numeric else 0.0))
        if numeric and (short := (_SHORT_SCALE if money else _ATTACHED_SCALE).match(plain, end)):
            return digits.scaled(_SHORT[short[1].lower()], short.end(), exact or 0.5)
        if numeric and _LONE_M.match(plain, end) and not digits.others:
            if (counted := UNIT.match(plain, end + 1)) and counted[0].endswith(("s", "people")):  # "1.2m households"
                return digits.scaled(1e6, end + 1, exact or 0.5)
            digits = digits._replace(others=(digits.value * 1e6,))  # metres, or millions
    return digits._replace(exact=0.0) if digits.is_count else digits


def _ten(exponent: str) -> float:
    power = int(exponent.translate(_POWERS)) if len(exponent) <= 5 else _MOST_DIGITS + 1
    return 10.0**power if abs(power) <= _MOST_DIGITS else math.nan


def _float(digits: str) -> float:
    return float(digits) if len(digits) <= _MOST_DIGITS else math.nan


def _word_value(match: re.Match[str], plain: str) -> _Digits:
    """The value of words in English: "two thousand five hundred and one", "one and a half"."""
    word, end = match["word"].lower(), match.end()
    if word not in _CARDINALS:
        half_a = _HALF_A.match(plain, end) if word == "half" else None
        return _Digits(_WORDS[word], 0.0, half_a.end() if half_a else end)
    total, group, smallest = 0.0, _WORDS[word], math.inf
    others: tuple[float, ...] = ()
    while joint := _NEXT_WORD.match(plain, end):
        word = joint["word"].lower()
        size = _SIZES.get(word)
        if size is None:
            value = _WORDS.get(word, 2.0)  # the thirty-second president, or a thirty-second break
            fits = group % 100 == 0 if word in _CARDINALS else False
            if not (fits or (value < 10 and group % 100 >= 20 and group % 10 == 0)):
                break
            others = (total + group,) if word == "second" else ()
            group += value
        elif size == 100 and 0 < group < 100:
            group *= size
        elif size > 100 and group and size < smallest:
            total, group, smallest = total + group * size, 0.0, size
        else:
            break
        end = joint.end()
    half = _AND_A_HALF.match(plain, end) if not total else None
    value, end = (group + 0.5, half.end()) if half else (total + group, end)
    return _Digits(value, 0.0, end, others, factor=1.0 if smallest == math.inf else smallest)


def _digits_value(match: re.Match[str], plain: str, mark: str) -> _Digits:
    """The value of digits with marks between them."""
    written, end = match[0], match.end()
    if len(written) > 4 * _MOST_DIGITS:
        return _Digits(math.nan, 0.0, end)
    if match["spaced"]:
        return _spaced_value(written, end, mark)
    if not written.isdigit():
        return _marked_value(f"0{written}" if written[0] == "." else written, end, mark)
    if (fraction := _fraction(plain, match)) is not None:
        return fraction
    if vulgar := _VULGAR.match(plain, end):
        return _Digits(_float(written) + unicodedata.numeric(vulgar[1]), 0.0, vulgar.end())
    return _Digits(_float(written), 0.5, end, is_count=True)


def _marked_value(written: str, end: int, mark: str) -> _Digits:
    """Digits with full stops, commas or apostrophes: thousands, a decimal, several numbers, or what is no number ("3.2.1")."""
    pieces, marks = re.split(r"[.,']", written), [char for char in written if not char.isdigit()]
    last, kinds = marks[-1], len(set(marks))
    is_indian = last != "'" and _INDIAN.fullmatch(written) is not None
    whole, unreadable = _Digits(_float("".join(pieces)), 0.5, end), _Digits(math.nan, 0.0, end)
    first_of_list = _Digits(_float(pieces[0]), 0.0, end - len(written) + len(pieces[0]), is_count=True)
    if kinds > 1:
        is_decimal = kinds == 2 and marks.count(last) == 1 and last != "'"
        is_decimal = is_decimal and (_in_thirds(pieces[:-1]) or (is_indian and last == "."))
        return _exactly("".join(pieces[:-1]) + "." + pieces[-1], end) if is_decimal else unreadable
    if last == "'" or len(marks) > 1:
        return whole if _in_thirds(pieces) or is_indian else unreadable if last == "." else first_of_list
    decimal = _exactly(".".join(pieces), end)
    if _in_thirds(pieces):
        first, second = (decimal, whole) if last == (mark or ".") else (whole, decimal)
        return first if mark else first._replace(others=(second.value,))
    if last == "," and mark == ".":  # "3,5" in an English text: a decimal comma, or two numbers
        if len(pieces[0]) == len(pieces[1]) == 4:
            return first_of_list
        return decimal._replace(others=(float(pieces[0]), float(pieces[1])), parts=tuple(pieces))
    return decimal


def _in_thirds(pieces: list[str]) -> bool:
    return len(pieces[0]) <= 3 and pieces[0][0] != "0" and all(len(piece) == 3 for piece in pieces[1:])


def _spaced_value(written: str, end: int, mark: str) -> _Digits:
    """Digits with thousands separated by a space; a plain space may also separate several numbers."""
    head, mark, tail = written.replace(",", ".").partition(".")
    value = _exactly("".join(head.split()) + mark + tail, end)
    pieces = head.split(" ")
    sure = len(pieces) == 1 or mark == "," or bool(tail) or any(piece[0] == "0" for piece in pieces[1:])
    if sure:
        return value
    return value._replace(others=tuple(map(float, pieces)), parts=tuple(pieces))


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
            opens = not plain[max(0, position - 3) : position].rstrip()[-1:].isdigit()
        return (-1, position) if opens else (1, start)
    if plain[max(0, start - 2) : start] in {"\u2212 ", "\u2212\u00a0"}:
        ahead = plain[max(0, start - 4) : start - 2]
        if (not ahead or not ahead[-1].isalnum()) and not ahead.rstrip()[-1:].isdigit():
            return -1, start - 2
    if word := _MINUS_WORD.search(plain, max(0, start - 12), start):
        return -1, word.start()
    return 1, start


def _is_year(digits: _Digits, factor: float, written: str) -> bool:
    return factor == 1.0 and len(written) == 4 and written.isdigit() and _FIRST_YEAR <= digits.value <= _LAST_YEAR


def _is_together(char: str) -> bool:
    return _TOGETHER.match(char) is not None


def _part_of_name(before: str, after: str) -> bool:
    """Return whether digits belong to a name: after a letter, a hyphen after a letter, or letters and digits."""
    last = before[-1:]
    letter = before[-2:-1] if last == "-" else last
    if CURRENCY_BEFORE.search(before) or before.endswith("FY"):
        return False
    if last == "_" or (letter.isalpha() and not _is_together(letter)):
        return True
    if last in {".", ","} and before[-2:-1].isdigit():
        return True
    power = _EXPONENT.match(after) or _POWER.match(after)
    return _NAME_AFTER.match(after) is not None and power is None and not _is_together(after[0])


_SPACES = dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", "\u00a0")
_SHAPES = _SPACES | {
    "\uff0e": ".", "\u2024": ".", "\uff0c": ",", "\uff05": "%", "\u066a": "%", "\ufe6a": "%", "\uff0d": "\u2212",
    "\ufe63": "\u2212", "\uff0b": "+", "\uff04": "$", "\uffe5": "\u00a5", "\uff1a": ":", "\uff0f": "/", "\u2044": "/",
    "\u2215": "/", "\u2019": "'", "\u02bc": "'", "\u2018": "'", "\uff07": "'", "\u22c5": "\u00b7", "\u2010": "-", "\u2011": "-",
    "\u2012": "\u2013", "\uff08": "(", "\uff09": ")", "\u066b": ".", "\u066c": "'",
}  # fmt: skip
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def plain_digits(text: str) -> str:
    """Return a text of the same length with digits 0 to 9, and one shape for each sign, mark and space within numbers."""
    return text if text.isascii() else _NOT_ASCII.sub(lambda match: _plain(match[0]), text)


@lru_cache(maxsize=2**14)
def _plain(char: str) -> str:
    if char in _SHAPES:
        return _SHAPES[char]
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    return unicodedata.normalize("NFKC", char) if "\uff21" <= char <= "\uff5a" else char


_READ = 20_000
_WORDS_OF_MARK = {
    ".": "the of and to is was were for with by on that from at it are has have an this had be not or which than",
    ",": "der die das und ist mit für im den dem ein eine nicht auf sind hat waren bei le la les des et est du un une pour "
    "dans sur avec el los las del fue por para il lo gli di che della o os as e é em um uma da do dos de het een van w na "
    "było och är av på för og er til",
}
"""Function words of languages by their decimal mark."""
_MARK_OF = {word: mark for mark, words in _WORDS_OF_MARK.items() for word in words.split()}
_LETTERS = re.compile(r"[^\W\d_]+")
_SURE_COMMA = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3}){1,6},\d|\d{1,3}(?:\.\d{3}){2,6}(?![.,]?\d)|\d{1,3},\d{1,2}\s?%)")
_SURE_POINT = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3}){1,6}\.\d|\d{1,3}(?:,\d{3}){2,6}(?![.,]?\d)|\d{1,3}\.\d{1,2}\s?%)")


def decimal_mark(text: str) -> str:
    """Return the decimal mark of a text: "." or ","; empty if it is unknown, and "1.234" may mean 1.234 or 1,234."""
    head = text[:_READ]
    comma, point = _SURE_COMMA.search(head) is not None, _SURE_POINT.search(head) is not None
    if comma != point:
        return "," if comma else "."
    counts = Counter(_MARK_OF[word] for word in _LETTERS.findall(head.lower()) if word in _MARK_OF)
    fewer = min(counts["."], counts[","])
    return "" if 3 * fewer > max(counts.values(), default=0) or not counts else max(counts, key=lambda mark: counts[mark])
