"""Numbers and dates of a claim that a passage does not have."""

from __future__ import annotations

from typing import NamedTuple

from nlp_retrieval.text.measures.dates import Date, dates_of
from nlp_retrieval.text.measures.numbers import Number, unmatched_numbers

__all__ = ["MissingFigures", "missing_figures"]


class MissingFigures(NamedTuple):
    """What a passage lacks, as the claim has it, with units, in order; and how many dates the claim has."""

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    n_dates: int


def missing_figures(claim: str, passage: str) -> MissingFigures:
    """Return the numbers and dates of a claim that stand nowhere in a passage.

    A date is missing where no date of the passage agrees with it, whatever numbers stand there; its day and year then are not
    missing once more. A day that a date of the passage has, or a range of days, is there.

    Args:
        claim: a statement.
        passage: what is to support it.
    """
    wanted = [date for date in dates_of(claim) if date.is_full]
    there = dates_of(passage) if wanted else []
    missing = [date for date in wanted if not any(date.agrees(other) for other in there)]
    with_days = [other for other in there if any(reading.days for reading in other.readings)]
    named = [date for date in wanted if any(date.agrees(other) for other in with_days)]
    numbers = [
        number.measured
        for number in unmatched_numbers(claim, passage)
        if not _within(number, missing) and not (number.value <= 31 and _within(number, named))
    ]
    return MissingFigures(tuple(numbers), tuple(date.written for date in missing), len(wanted))


def _within(number: Number, dates: list[Date]) -> bool:
    return any(date.begin <= number.begin and number.end <= date.end for date in dates)
