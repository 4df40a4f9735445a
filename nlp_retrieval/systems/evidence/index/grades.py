"""Grades of sources: A is best, E is worst."""

from __future__ import annotations

from nlp_retrieval.errors import InputError, nearest

__all__ = ["GRADES", "at_least", "check_grade"]

GRADES = ("A", "B", "C", "D", "E")
"""Grades, best first."""


def check_grade(grade: object, what: str) -> str:
    """Return a grade after checking it.

    Args:
        grade: to check.
        what: its name in the message.

    Raises:
        InputError: it is not a grade.
    """
    if not isinstance(grade, str) or grade not in GRADES:
        shown = repr(grade)[:40]
        raise InputError(f"{what} is {shown}, and grades are A (best) to E; {nearest(str(grade)[:40].upper(), GRADES)}")
    return grade


def at_least(minimum: str | None) -> list[str] | None:
    """Return the grades that are no worse than a minimum, or None if there is no minimum.

    Raises:
        InputError: it is not a grade.
    """
    return None if minimum is None else list(GRADES[: GRADES.index(check_grade(minimum, "min_quality")) + 1])
