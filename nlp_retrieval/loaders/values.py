"""Values of databases and tables as JSON values."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid

from pydantic import JsonValue

from nlp_retrieval.errors import SourceError

__all__ = ["plain_value"]


_EXACT = 2**53
"""Largest whole number up to which floats are exact."""

_LEAVE_OUT = "convert it to text, or leave it out with metadata_fields"


def plain_value(  # noqa: PLR0911 -- one for each kind of value
    place: str, column: str, value: object, whole: bool = False, cure: str = _LEAVE_OUT
) -> JsonValue:
    """Turn a value of a driver or a table into a JSON value; NaN, which tables use for missing values, becomes null.

    Args:
        place: its location.
        column: its column.
        value: to convert.
        whole: a decimal without fraction becomes an integer (Oracle's ids).
        cure: advice if it cannot be converted.

    Raises:
        SourceError: it cannot be converted: bytes, an interval.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case decimal.Decimal() if value.is_finite() and value == value.to_integral_value() and (whole or abs(value) > _EXACT):
            return int(value)
        case float() | decimal.Decimal():
            return None if math.isnan(value) else float(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case uuid.UUID():
            return str(value)
        case list() | tuple():
            return [plain_value(place, column, inner, cure=cure) for inner in value]
        case dict():
            return {str(key): plain_value(place, column, inner, cure=cure) for key, inner in value.items()}
    raise SourceError(
        f'{place}: column "{column}" holds {type(value).__name__}, which is neither text nor a JSON value; {cure}'
    )
