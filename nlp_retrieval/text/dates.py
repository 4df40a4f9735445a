"""Dates of a text, in any common form: "12 March 2019", "March 12", "Mar. 2019", "2019-03-12", "12.03.2019", "12. März 2019".

Two dates agree if no part that both give differs: "12 March 2019" and "in March" agree, "12 March" and "11 March" do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_MOST = 2_000
_MONTHS = "January February March April May June July August September October November December".split()
_NUMBERS = {name[:length].lower(): number for number, name in enumerate(_MONTHS, 1) for length in (3, len(name))}
_NUMBERS |= {"sept": 9}
_NAME = rf"(?:{'|'.join([*_MONTHS, *map(str.upper, _MONTHS)])}|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_LINES = Path(__file__).with_name("months.txt").read_text("utf-8").splitlines()
"""The months in other languages, one a line, and shortened."""
_ELSEWHERE = {name.rstrip("."): number for line in _LINES for number, name in enumerate(line.split(), 1)}
_OTHER_NAME = rf"(?!(?:Mars|MARS|Mayo|MAYO|{_NAME})\b)(?i:{'|'.join(map(re.escape, ' '.join(_LINES).split()))})"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_TO = r"\s?(?:[-\u2013\u2014,/&]|to\b|and\b|or\b)\s?"
_DAYS = rf"{_DAY}(?:{_TO}{_DAY}){{0,3}}"
_YEAR = r"(?:1[5-9]|20|21)\d\d(?!\d)"
_WRITTEN = re.compile(
    rf"(?<![\w.,/])(?P<before>{_DAYS})(?:\s|-)(?:of\s)?(?P<month>{_NAME})(?:(?:,?\s|-)(?P<year>{_YEAR}))?(?!\w)"
    rf"|(?<![\w.,/])(?:(?P<day>\d{{1,2}})(?:\.|er|º)?\s(?:de\s)?)?(?P<other>{_OTHER_NAME})(?:\s(?:del?\s)?(?P<year_after>{_YEAR}))?(?(day)|(?<=\d))(?!\w)"
    rf"|\b(?P<month_first>{_NAME})(?:\s(?P<after>{_DAYS})(?![\d%]|[.,]\d))?(?:(?:,\s?|\s(?:of\s)?)(?P<year_last>{_YEAR}))?(?!\w)"
)
_NUMERIC = re.compile(
    r"(?<![\w.,/-])(?:(?P<year>(?:1[5-9]|20|21)\d\d)(?P<by>[-/.])(?P<month>\d{1,2})(?P=by)(?P<day>\d{1,2})"
    r"|(?P<one>\d{1,2})(?P<between>[./-])(?P<other>\d{1,2})(?P=between)(?P<last>(?:1[5-9]|20|21)\d\d))(?!(?!T\d)\w|/|[.,-]\d)"
)
_PARTS = re.compile(rf"({_TO})?({_DAY})")


@dataclass(frozen=True)
class Reading:
    """Possible meaning of a date."""

    year: int | None
    month: int
    days: frozenset[int]

    def agrees(self, other: Reading) -> bool:
        """Return whether nothing differs that both give."""
        years = self.year is None or other.year is None or self.year == other.year
        return years and self.month == other.month and (not self.days or not other.days or bool(self.days & other.days))


@dataclass(frozen=True)
class Date:
    """A date in a text.

    Args:
        readings: possible meanings: "3/4/2019" is in March or in April.
        begin: where it begins in the text, in characters.
        end: where it ends.
        numbers: positions of the year and the day in a date of digits only; a month, or a possible month, is left out.
        written: its text.

    Examples:
        >>> text = "Signed on 4 May 2021 in Oslo."
        >>> (date,) = dates_of(text)
        >>> date.written, text[date.begin : date.end]
        ('4 May 2021', '4 May 2021')
    """

    readings: tuple[Reading, ...]
    begin: int
    end: int
    numbers: tuple[tuple[int, int], ...]
    written: str

    @property
    def is_full(self) -> bool:
        """Return whether it has more than a month."""
        return any(reading.year is not None or reading.days for reading in self.readings)

    def agrees(self, other: Date) -> bool:
        """Return whether two dates may be the same."""
        return any(one.agrees(another) for one in self.readings for another in other.readings)


def dates_of(text: str) -> list[Date]:
    """Return the dates of a text, and months by themselves, in order; at most 2,000.

    Args:
        text: any text.

    Examples:
        >>> [date.written for date in dates_of("From 2021-05-04 to June 5, 2022")]
        ['2021-05-04', 'June 5, 2022']
    """
    dates = [*islice(_numeric(text), _MOST), *islice(_with_names(text), _MOST)]
    return sorted(dates, key=lambda date: date.begin)[:_MOST]


def months_named(text: str) -> frozenset[int]:
    """Return the months that the dates of a text name, as numbers from 1.

    Args:
        text: any text.

    Examples:
        >>> sorted(months_named("between 3 May and 1 December 2020"))
        [5, 12]
    """
    return frozenset(reading.month for date in dates_of(text) for reading in date.readings)


def month_of(word: str) -> int | None:
    """Return the number of the month that a word names, in full or shortened; None if it names none.

    Args:
        word: a single one.

    Examples:
        >>> month_of("Sept."), month_of("autumn")
        (9, None)
    """
    return _NUMBERS.get(word.lower().rstrip("."))


def _with_names(text: str) -> Iterator[Date]:
    for match in _WRITTEN.finditer(text):
        name = (match["month"] or match["month_first"] or match["other"]).lower().rstrip(".")
        month = _ELSEWHERE[name] if match["other"] else _NUMBERS[name]
        days = _days(match["before"] or match["after"] or match["day"] or "")
        year = match["year"] or match["year_last"] or match["year_after"]
        yield Date((Reading(int(year) if year else None, month, days),), match.start(), match.end(), (), match[0])


def _numeric(text: str) -> Iterator[Date]:
    for match in _NUMERIC.finditer(text):
        if match["year"]:
            readings = _readings(int(match["year"]), [(int(match["month"]), int(match["day"]))])
            numbers: tuple[tuple[int, int], ...] = (match.span("year"), match.span("day"))
        else:
            one, other = int(match["one"]), int(match["other"])
            orders = [(other, one)] if match["between"] == "." else [(other, one), (one, other)]
            readings = _readings(int(match["last"]), orders)
            day = [match.span("one" if readings[0].month == other else "other")] if len(readings) == 1 else []
            numbers = (*day, match.span("last"))
        if readings:
            yield Date(readings, match.start(), match.end(), numbers, match[0])


def _readings(year: int, orders: list[tuple[int, int]]) -> tuple[Reading, ...]:
    possible = dict.fromkeys(order for order in orders if 1 <= order[0] <= 12 and 1 <= order[1] <= 31)
    return tuple(Reading(year, month, frozenset({day})) for month, day in possible)


def _days(written: str) -> frozenset[int]:
    days: list[int] = []
    for match in _PARTS.finditer(written):
        day = int(re.sub(r"\D", "", match[2]))
        ranged = days and match[1] and match[1].strip() in {"-", "\u2013", "\u2014", "to"} and days[-1] < day
        days.extend(range(days[-1] + 1, day + 1) if ranged else [day])
    return frozenset(day for day in days if 1 <= day <= 31)
