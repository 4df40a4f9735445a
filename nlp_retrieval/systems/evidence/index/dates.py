"""Dates of fetching: parsing them, and the moments by which versions are ordered."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from nlp_retrieval.errors import InputError

__all__ = ["after", "moment_of", "now"]


def moment_of(text: str, *, last: bool = False) -> str:
    """Return the moment of an ISO 8601 date or time, in UTC, as text that sorts by time.

    Args:
        text: "2026-01-19", "2026-01-19T14:30:00Z"; without an offset it is UTC.
        last: for a date without a time, return the end of that day, else its beginning.

    Raises:
        InputError: it is not such a date.
    """
    if not isinstance(text, str):
        raise InputError(f"a date is a string in ISO 8601 such as 2026-01-19, not {type(text).__name__}")
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        if last and _is_date(text):
            moment += timedelta(days=1, microseconds=-1)
    except (ValueError, OverflowError):
        raise InputError(f"{text[:60]!r} is not a date in ISO 8601; write 2026-01-19 or 2026-01-19T14:30:00Z") from None
    return _written(moment)


def now() -> str:
    """Return the present moment, in the form of :func:`moment_of`."""
    return _written(datetime.now(UTC))


def after(moment: str) -> str:
    """Return the moment after a moment in the form of :func:`moment_of`, or the same if there is none."""
    try:
        return _written(datetime.fromisoformat(moment) + timedelta(microseconds=1))
    except (ValueError, OverflowError):
        return moment


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds")
