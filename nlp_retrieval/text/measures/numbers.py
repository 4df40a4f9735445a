"""Numbers of a text, with their units: "1.2 million people", "30%", "two trials", "in 1998", "40 km", "$5m".

Two numbers agree where their values are equal as far as the less exact of the two is written ("about 1.5 million" and
"1,502,113"). Where both have a unit, these decide too: "40 km" and "40,000 metres" agree, "40 km" and "40 miles" do not, and 12
March is not 12 km. Of a date in digits alone (2019-03-12) the year and the day are numbers, and the month is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from nlp_retrieval.text.measures.dates import dates_of
from nlp_retrieval.text.measures.units import CURRENCY_BEFORE, UNIT, unit_of

__all__ = ["SCALES", "SPELLED", "WORDS", "Number", "agreeing", "numbers_of", "unmatched_numbers"]

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
WORDS: dict[str, float] = {word: float(value) for value, word in enumerate(_SMALL)}
WORDS |= {word: 10.0 * value for value, word in enumerate(_TENS, 2)}
WORDS |= {word: float(value) for value, word in enumerate(_ORDINALS) if word not in {"second", "zeroth"}}
WORDS |= {"once": 1, "twice": 2, "thrice": 3, "half": 0.5, "dozen": 12, "single": 1, "both": 2, "double": 2, "triple": 3}
SCALES = {
    "hundred": 1e2,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
    "m": 1e6,
    "bn": 1e9,
    "k": 1e3,
    "mn": 1e6,
}
"""How much a word for a scale multiplies."""

SPELLED = "|".join(sorted(WORDS, key=len, reverse=True))
_VALUE = rf"(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?)|\b(?P<word>{SPELLED})\b"
_NUMBER = re.compile(
    rf"(?:{_VALUE})(?:[\s-](?P<more>{'|'.join([*_SMALL[1:10]])})\b)?"
    rf"(?:[\s-]?(?P<scale>hundred|thousand|million|billion|trillion|bn)\b)?(?:st|nd|rd|th)?"
    rf"(?:\s?(?P<percent>%|percent\b|per cent\b))?",
    re.IGNORECASE,
)
_SHORT_SCALE = re.compile(r"\s?(m|k|mn|bn)(?![\w/])", re.IGNORECASE)
_UNITLESS = frozenset(_ORDINALS) | {"once", "twice", "thrice", "half", "single", "both", "double", "triple"}
_ORDINAL = re.compile(r"\d(?:st|nd|rd|th)\Z")
_DATE = "date"
_FIRST_YEAR, _LAST_YEAR = 1500, 2199
_BEFORE = 5
_MOST = 400
_MOST_THERE = 20_000


@dataclass(frozen=True)
class Number:
    """A number in a text.

    Args:
        value: what it says; 0.3 million is 300,000, 30% is 30.
        percent: whether it is a share in hundred.
        begin: where it begins in the text, in characters.
        end: where it ends.
        exact: the half of the last digit that is written: "1.5 million" is exact to 50,000.
        written: in words or in digits, as it stands.
        unit: the base of its unit ("m" of kilometres), as :mod:`nlp_retrieval.text.measures.units` has it, or "date" for a part
            of one; empty where there is none that is known, and of shares in hundred.
        size: how much of the base the unit is.
        measured: as it stands in the text with its unit; ``written`` where it has none.
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


def numbers_of(text: str) -> list[Number]:
    """Return the numbers of a text, in order; at most 400.

    Args:
        text: any text. Digits that belong to a name ("COVID-19", "H2O", "p53") are not numbers.
    """
    return list(islice(_read(text), _MOST))


def agreeing(one: Number, other: Number) -> bool:
    """Return whether two numbers may be the same.

    Args:
        one: a number of a claim.
        other: a number of a passage.
    """
    if one.percent != other.percent:
        return one.percent and abs(one.value / 100 - other.value) < 1e-9 and 0 < other.value < 1
    if one.unit and other.unit:
        return one.unit == other.unit and _equal(one, other, one.size, other.size)
    return _equal(one, other)


def unmatched_numbers(claim: str, passage: str) -> list[Number]:
    """Return the numbers of a claim that stand nowhere in a passage.

    Args:
        claim: a statement.
        passage: what is to support it; of any length, and with up to 20,000 different numbers.
    """
    missing = numbers_of(claim)
    seen: set[tuple[float, bool, float, str, float]] = set()
    for other in _read(passage):
        said = (other.value, other.percent, other.exact, other.unit, other.size)
        if said not in seen:
            seen.add(said)
            missing = [number for number in missing if not agreeing(number, other)]
        if not missing or len(seen) == _MOST_THERE:
            break
    return missing


def _equal(one: Number, other: Number, size: float = 1.0, other_size: float = 1.0) -> bool:
    value = one.value * size
    return abs(value - other.value * other_size) <= max(one.exact * size, other.exact * other_size, 1e-9 * abs(value))


def _read(text: str) -> Iterator[Number]:
    dates = dates_of(text)[::-1]
    for match in _NUMBER.finditer(text):
        while dates and dates[-1].end <= match.start():
            dates.pop()
        date = dates[-1] if dates and dates[-1].begin <= match.start() else None
        if date is not None and date.numbers:
            if match.start() == date.begin:
                yield from (_of_date(text, begin, end) for begin, end in date.numbers)
            continue
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        if match["digits"] and _part_of_name(before[-2:], text[match.end() : match.end() + 1]):
            continue
        value = float(match["digits"].replace(",", "")) if match["digits"] else float(WORDS[match["word"].lower()])
        exact = 0.5 * 10.0 ** -len(match["digits"].partition(".")[2]) if match["digits"] else 0.0
        if match["more"] and match["word"] and 20 <= value < 100:
            value += WORDS[match["more"].lower()]
        scale, end = match["scale"], match.end()
        if not scale and match["digits"] and CURRENCY_BEFORE.search(before) and (short := _SHORT_SCALE.match(text, end)):
            scale, end = short[1], short.end()
        if scale:
            value, exact = value * SCALES[scale.lower()], exact * SCALES[scale.lower()]
        elif match["digits"] and match["digits"].isdigit():
            exact = 0.0  # a plain count or a year: 12 is not 12.4
        written = text[match.start() : end].strip()
        unit, size, first, last = _unit(match, text, end, before)
        measured = text[first:last].strip() if unit else written
        unit = unit or (_DATE if date is not None else "")
        yield Number(value, bool(match["percent"]), match.start(), end, exact, written, unit, size, measured)


def _of_date(text: str, begin: int, end: int) -> Number:
    part = text[begin:end]
    return Number(float(part), False, begin, end, 0.0, part, _DATE, measured=part)


def _unit(match: re.Match[str], text: str, end: int, before: str) -> tuple[str, float, int, int]:
    """The unit of a number, and where both begin and end; shares, ordinals and years have none."""
    word, digits = match["word"], match["digits"]
    currency, after = CURRENCY_BEFORE.search(before), UNIT.match(text, end)
    year = digits is not None and digits.isdigit() and len(digits) == 4 and _FIRST_YEAR <= int(digits) <= _LAST_YEAR
    counts = match["percent"] or _ORDINAL.search(match[0]) or (word and word.lower() in _UNITLESS)
    if counts or (year and not match["scale"] and not currency):
        return "", 1.0, match.start(), end
    first = match.start() - len(currency[0]) if currency else match.start()
    return *unit_of(after, before), first, after.end() if after and not currency else end


def _part_of_name(before: str, after: str) -> bool:
    """Whether digits belong to a name: a letter stands beside them, or a hyphen after a letter."""
    if before[-1:].isalpha() or (before[-1:] in {"-", "\u2010", "\u2011"} and before[:1].isalpha()):
        return True
    return (before[-1:] in {".", ","} and before[:1].isdigit()) or (after.isalpha() and after.lower() not in set("kmstnrd"))
