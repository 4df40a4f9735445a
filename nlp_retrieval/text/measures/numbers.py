"""Numbers of a text, with what they count: "1.2 million people", "30%", "two trials", "in 1998".

Two numbers agree where their values are equal as far as the less exact of the two is written ("about 1.5 million" and
"1,502,113"), and their units do not contradict one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

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
    """

    value: float
    percent: bool
    begin: int
    end: int
    exact: float
    written: str


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
    return abs(one.value - other.value) <= max(one.exact, other.exact, 1e-9 * abs(one.value))


def unmatched_numbers(claim: str, passage: str) -> list[Number]:
    """Return the numbers of a claim that stand nowhere in a passage.

    Args:
        claim: a statement.
        passage: what is to support it; of any length, and with up to 20,000 different numbers.
    """
    missing = numbers_of(claim)
    seen: set[tuple[float, bool, float]] = set()
    for other in _read(passage):
        said = (other.value, other.percent, other.exact)
        if said not in seen:
            seen.add(said)
            missing = [number for number in missing if not agreeing(number, other)]
        if not missing or len(seen) == _MOST_THERE:
            break
    return missing


def _read(text: str) -> Iterator[Number]:
    for match in _NUMBER.finditer(text):
        before = text[max(0, match.start() - 2) : match.start()]
        if match["digits"] and _part_of_name(before, text[match.end() : match.end() + 1]):
            continue
        value = float(match["digits"].replace(",", "")) if match["digits"] else float(WORDS[match["word"].lower()])
        exact = 0.5 * 10.0 ** -len(match["digits"].partition(".")[2]) if match["digits"] else 0.0
        if match["more"] and match["word"] and 20 <= value < 100:
            value += WORDS[match["more"].lower()]
        if match["scale"]:
            value, exact = value * SCALES[match["scale"].lower()], exact * SCALES[match["scale"].lower()]
        elif match["digits"] and match["digits"].isdigit():
            exact = 0.0  # a plain count or a year: 12 is not 12.4
        yield Number(value, bool(match["percent"]), match.start(), match.end(), exact, match[0].strip())


def _part_of_name(before: str, after: str) -> bool:
    """Whether digits belong to a name: a letter stands beside them, or a hyphen after a letter."""
    if before[-1:].isalpha() or (before[-1:] in {"-", "\u2010", "\u2011"} and before[:1].isalpha()):
        return True
    return (before[-1:] in {".", ","} and before[:1].isdigit()) or (after.isalpha() and after.lower() not in set("kmstnrd"))
