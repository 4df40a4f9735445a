"""Quantities of a text: numbers with their units, the year for which they hold, and their baseline.

"cut emissions by about 45% below 2010 levels by 2030" is one quantity: 45 %, approximate, for 2030, against 2010. Units are
scaled to one base (``units.tsv``), so that "1.2 Gt" and "1,200 Mt" agree. The work is linear in the length of the text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Literal, TypeVar

from nlp_retrieval.text.numbers import Number, read_numbers
from nlp_retrieval.text.sentences import sentences_of

T = TypeVar("T")
U = TypeVar("U")

_MOST = 400
_MOST_READ = 20_000
_YEAR = re.compile(
    r"(?:(?<![\w.,/$€£])|(?<=\bFY))(?P<first>1[6-9]\d\d|20\d\d|21\d\d)(?:(?:"
    r"\s?[-\u2013/]\s?|\s(?:to|through|(?<=between \d{4}\s)and)\s(?=\d{4}))(?P<last>(?:1[6-9]|20|21)?\d\d))?(?![\w%]|[.,]\d)"
)
_TARGET = re.compile(r"\b(?:by|before|until|no later than|up to|towards?)\s(?:the\s)?(?:(?:end of|year)\s)?\Z", re.IGNORECASE)
_BASE = re.compile(
    r"\b(?:relative to|compared (?:to|with)|in relation to|with respect to|below|above|against|versus|vs\.?|over|"
    r"base year(?: of)?|baseline(?: of)?|reference year(?: of)?|under|(?<!later\s)than|from what (?:it|they) (?:was|were))\s"
    r"(?:(?:the\s)?(?:(?:level|emission)s?\s(?:in|of)\s)?|(?:(?:the|those|that|its|their)\s)?"
    r"(?:(?:level|emission|figure|value|amount)s?\s)?(?:of emissions\s)?(?:in|of|for)\s(?:the\s)?)(?:year\s)?\Z",
    re.IGNORECASE,
)
_CUT = "in|of|down|cuts?|reductions?|total|net|greenhouse|gas|ghg|co2|its|the|our|their|emissions?"
_ON = re.compile(rf"(?:%|\bper\s?cent)\s(?:(?:{_CUT})\s){{0,5}}(?:on|from)\s\Z", re.IGNORECASE)
_ONWARDS = re.compile(r"\s?(?:(?:to|until|till|through|and|on|onwards?)\b|[-\u2013])", re.IGNORECASE)
_LEVELS = re.compile(r"\s(?:emissions?\s)?(?:levels?|baseline|base year|reference)\b", re.IGNORECASE)
_SCENARIO = re.compile(
    r"\b(?:business[\s-]as[\s-]usual|BAU|"
    r"(?:baseline|reference|current[\s-]polic(?:y|ies))\s(?:scenario|projections?|case)|baseline levels?)\b",
    re.IGNORECASE,
)
_MONEY = r"\s?(?:US\$|[$€£]|(?-i:[A-Z]{3}))?\s?\Z"
_ABOUT = re.compile(
    rf"(?:\b(?:about|around|approximately|roughly|nearly|almost|some|circa|ca\.|an estimated)|[~≈]){_MONEY}", re.I
)
_NOT = r"(?<!\bno\s)(?<!\bnot\s)"
_LEAST = re.compile(
    rf"(?:\b(?:at least|{_NOT}(?:more than|over|exceeding|above)|(?:no|not) (?:less|fewer) than|minimum of|mindestens|mind\."
    rf"|au moins|al menos|por lo menos|almeno)|[>≥]){_MONEY}",
    re.IGNORECASE,
)
_MOSTLY = re.compile(
    rf"(?:\b(?:at most|up to|{_NOT}(?:less|fewer) than|under|(?:no|not) (?:more than|over|above|(?:to )?exceed(?:ing)?)"
    rf"|maximum of|below|höchstens|max\.|au plus|como máximo|al massimo)|[<≤]){_MONEY}",
    re.IGNORECASE,
)
_BEFORE = 40
_BEGIN = attrgetter("begin")


@dataclass(frozen=True)
class Year:
    """A year, or a range of years, in a text.

    Args:
        first: the year, or the first of the range.
        last: the last of the range; ``first`` for a single year.
        role: ``target`` ("by 2030"), ``baseline`` ("below 2010 levels"), or empty.
        begin: where it begins in the text, in characters.
        end: where it ends.

    Examples:
        >>> (year,) = years_of("a law of 2021")
        >>> year.first, year.role
        (2021, '')
    """

    first: int
    last: int
    role: Literal["", "target", "baseline"]
    begin: int
    end: int


@dataclass(frozen=True)
class Quantity:
    """A number with a unit.

    Args:
        value: in the base of the unit; for a range ("45-50%") its lower end.
        upper: the upper end of a range; otherwise ``value``.
        unit: the base ("t CO2e", "%", "W", "Wh", "ha", "USD", "year", ...).
        exact: half a unit of the last written digit, in the base: 1.5 Mt is exact to 50,000 t.
        approximate: whether the text has "about", "nearly" or the like.
        bound: ``least`` ("at least 20%"), ``most`` ("up to 20%"), or empty.
        year: for which it holds: the nearest year of its sentence other than a baseline, target years first; None for none.
        baseline: of the quantity: a year, ``BAU`` for a scenario, or empty.
        begin: where the number begins in the text, in characters.
        end: where its unit ends.
        written: its text.

    Examples:
        >>> (quantity,) = quantities_of("at least 30 % by 2030")
        >>> quantity.value, quantity.unit, quantity.bound
        (30.0, '%', 'least')
    """

    value: float
    upper: float
    unit: str
    exact: float
    approximate: bool
    bound: Literal["", "least", "most"]
    year: int | None
    baseline: str
    begin: int
    end: int
    written: str


def years_of(text: str) -> list[Year]:
    """Return the years of a text, 1600 to 2199, in order; at most 400.

    Args:
        text: any text.

    Examples:
        >>> [(year.first, year.role) for year in years_of("40% below 1990 levels by 2030")]
        [(1990, 'baseline'), (2030, 'target')]
    """
    years = []
    for match in islice(_YEAR.finditer(text), _MOST):
        first = int(match["first"])
        last = max(first, int(f"{first}"[: -len(match["last"])] + match["last"])) if match["last"] else first
        before = text[max(0, match.start() - _BEFORE) : match.start()]
        role: Literal["", "target", "baseline"] = "target" if _TARGET.search(before) else ""
        is_base = first == last and _ON.search(before) and not _ONWARDS.match(text, match.end())
        if is_base or _BASE.search(before) or _LEVELS.match(text, match.end(), match.end() + _BEFORE):
            role = "baseline"
        years.append(Year(first, last, role, match.start(), match.end()))
    return years


def quantities_of(text: str) -> list[Quantity]:
    """Return the numbers of a text that have a unit, in order; at most 400, of its first 20,000 numbers.

    Args:
        text: any text. For numbers without a unit, see :func:`~nlp_retrieval.text.numbers.numbers_of`.

    Examples:
        >>> [(quantity.value, quantity.unit) for quantity in quantities_of("5 km and 3 tonnes")]
        [(5000.0, 'm'), (3.0, 't')]
    """
    years = years_of(text)
    scenarios = [(match.start(), match.end()) for match in islice(_SCENARIO.finditer(text), _MOST)]
    begins = [begin for begin, _ in sentences_of(text)]
    quantities = []
    for first, last in islice(_measured(text), _MOST):
        start, end = first.begin, max(last.until, last.end)
        sentence = bisect_right(begins, start)
        begin, stop = begins[sentence - 1] if sentence else 0, begins[sentence] if sentence < len(begins) else len(text)
        here = years[bisect_left(years, begin, key=_BEGIN) : bisect_left(years, stop, key=_BEGIN)]
        before = text[max(0, start - _BEFORE) : start]
        bound: Literal["", "least", "most"] = "least" if _LEAST.search(before) else "most" if _MOSTLY.search(before) else ""
        value, upper = first.value * first.size, last.value * (last.size if last.unit or last.percent else first.size)
        targets = [(year.begin, year.end, year.last) for year in here if year.role == "target"]
        others = [(year.begin, year.end, year.last) for year in here if not year.role]
        against = [(year.begin, year.end, str(year.first)) for year in here if year.role == "baseline"]
        against += [(*span, "BAU") for span in scenarios if begin <= span[0] < stop]
        quantities.append(Quantity(
            value, max(value, upper), "%" if first.percent else first.unit, first.exact * first.size,
            _ABOUT.search(before) is not None, bound, _nearest(start, end, targets or others, None),
            _nearest(start, end, against, ""), start, end, text[start:end],
        ))  # fmt: skip
    return quantities


def same_value(one: Quantity, other: Quantity) -> bool:
    """Return whether two quantities of one unit agree to the less exact precision; a tenth more if one is approximate."""
    loose = 0.1 * min(abs(one.value), abs(other.value)) if one.approximate or other.approximate else 0.0
    slack = max(one.exact, other.exact, loose, 1e-9 * abs(one.value))
    return one.value <= other.upper + slack and other.value <= one.upper + slack


def changed_quantities(earlier: str, later: str) -> list[tuple[Quantity, Quantity]]:
    """Return quantities of a text whose value differs in a later version of it, as pairs, in the order of the earlier.

    Quantities of one measure are compared in their order; quantities in only one of the texts make no pair.

    Args:
        earlier: a text.
        later: its later wording.

    Examples:
        >>> ((before, after),) = changed_quantities("a capacity of 20 MW", "a capacity of 25 MW")
        >>> before.value, after.value
        (20000000.0, 25000000.0)
    """
    after: dict[tuple[str, int | None, str], list[Quantity]] = {}
    for quantity in quantities_of(later):
        after.setdefault(_measure(quantity), []).append(quantity)
    left = []
    for quantity in quantities_of(earlier):  # those in both texts are unchanged, whatever their order
        candidates = after.get(_measure(quantity), [])
        kept = next((other for other in candidates if same_value(quantity, other)), None)
        if kept is None:
            left.append(quantity)
        else:
            candidates.remove(kept)
    return [(quantity, after[_measure(quantity)].pop(0)) for quantity in left if after.get(_measure(quantity))]


def _measure(quantity: Quantity) -> tuple[str, int | None, str]:
    return quantity.unit, quantity.year, quantity.baseline


def _nearest(begin: int, end: int, places: list[tuple[int, int, T]], otherwise: U) -> T | U:
    """Return what is said at the place that is nearest to a quantity, one after it rather than before."""

    def distance(place: tuple[int, int, T]) -> tuple[int, int]:
        return (place[0] - end if place[0] >= end else 2 * (begin - place[1]) + 20), place[0]

    return min(places, key=distance)[2] if places else otherwise


def _measured(text: str) -> Iterator[tuple[Number, Number]]:
    """The numbers with a known unit, each with the upper end of its range, or with itself."""
    lower: Number | None = None
    for number in islice(read_numbers(text), _MOST_READ):
        first, lower = lower or number, None
        measured = number if number.percent or number.unit else first  # a currency is before a range
        has_unit = measured.percent or measured.unit[:1] not in {"", "?"}
        if number.goes_on:
            lower = number
        elif has_unit and measured.unit != "date" and not math.isnan(number.value):
            same = (first.percent, first.unit) == (measured.percent, measured.unit)
            yield (first if same else number), number
