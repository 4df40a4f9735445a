"""Numbers and dates of a claim that a passage does not have."""

from __future__ import annotations

from typing import NamedTuple

from nlp_retrieval.text import Date, Number, compare_numbers, dates_of

__all__ = ["MissingFigures", "missing_figures"]


class MissingFigures(NamedTuple):
    """What a passage lacks, as the claim has it, with units, in order; and how many dates the claim has.

    Args:
        numbers: of the claim that do not surely stand in the passage.
        dates: of the claim that no date of the passage agrees with.
        n_dates: how many dates the claim has.
        unclear: of the numbers, those that the passage may have, each beside how it is written there: "1.234" and "1,234"
            where nothing tells which mark is the decimal one.
    """

    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    n_dates: int
    unclear: tuple[tuple[str, str], ...] = ()


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
    lacking = [
        (number, other)
        for number, other in compare_numbers(claim, passage)
        if not _within(number, missing) and not (number.value <= 31 and _within(number, named))
    ]
    return MissingFigures(
        tuple(number.measured for number, _ in lacking),
        tuple(date.written for date in missing),
        len(wanted),
        tuple((number.measured, other.measured) for number, other in lacking if other is not None),
    )


def _within(number: Number, dates: list[Date]) -> bool:
    return any(date.begin <= number.begin and number.end <= date.end for date in dates)
