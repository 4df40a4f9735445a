"""Filters over metadata: one small typed language, evaluated to a mask over the items, the same for every retriever.

A filter is made of plain values, as in JSON. ``{"country": "Japan", "year": {"gte": 2015}}`` requires both. A key has either
a value that the item's must equal, or operators, all of which must be met: ``eq``, ``in``, ``gt``, ``gte``, ``lt``, ``lte``,
``exists``. ``and`` and ``or`` take a list of filters, ``not`` takes one. A metadata key with one of these names is written
``metadata.and``.

A value that is a list meets a condition if one of its elements does; an item without the key meets no condition except
``{"exists": false}``; ``not`` holds for exactly the items for which its filter does not. Text is ordered by code points, but a
day or a time in ISO 8601 is compared as one, also with a year or a month. Numbers are compared as numbers, and a number, a
truth value and a text are never equal. No part of a filter ever becomes part of a query language or a pattern.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from operator import ge, gt, le, lt
from typing import Any, Literal

import numpy as np

from nlp_retrieval.core.unicode import normalize, refuse_lone_surrogates
from nlp_retrieval.errors import QueryError, nearest

Where = Mapping[str, Any]
"""A filter as plain values."""

Scalar = str | bool | int | float
Operator = Literal["eq", "in", "gt", "gte", "lt", "lte", "exists"]

OPERATORS: tuple[Operator, ...] = ("eq", "in", "gt", "gte", "lt", "lte", "exists")

_PREFIX = "metadata."
_DEEPEST = 64
_MOST_CONDITIONS = 1000
"""Maximum number of conditions. Each scans all items, and its mask is held until all are combined."""

_MOST_BITS = 2048
"""Maximum number of bits of an integer: some 600 digits, which can be printed whatever Python's own limit is."""


@dataclass(frozen=True)
class Condition:
    """A condition on a metadata value: one value to compare with, any number with ``in``, a truth value with ``exists``."""

    key: str
    operator: Operator
    values: tuple[Scalar, ...]

    def holds(self, value: object) -> bool:
        """Return whether a metadata value meets it; None stands for a missing key."""
        if self.operator == "exists":
            return (value is not None) is self.values[0]
        return any(map(self._holds_of_one, value if isinstance(value, list) else [value]))

    def _holds_of_one(self, value: object) -> bool:
        if not isinstance(value, str | bool | int | float):
            return False
        kind = kind_of(value)
        if isinstance(value, str):
            if self.periods and (instant := instant_of(value)) is not None:
                return bool(self.holds_at(np.int64(instant)))
            value = normalize("NFC", value)
        if self.operator in ("eq", "in"):
            return (kind, value) in self._equal
        return kind_of(self.values[0]) == kind and bool(_COMPARED[self.operator](value, self.values[0]))

    def holds_at(self, instants: Any) -> Any:
        """Return which instants meet it, as microseconds since 1970, where it has periods."""
        firsts, lasts = self._spans
        if self.operator in ("eq", "in"):
            nearest = np.searchsorted(firsts, instants, "right") - 1
            return (nearest >= 0) & (instants <= lasts[nearest])
        return _COMPARED[self.operator](instants, firsts[0] if self.operator in ("gte", "lt") else lasts[0])

    @cached_property
    def _spans(self) -> Any:
        return np.maximum.accumulate(np.array(self.periods)).T  # the first instants are in order already

    @cached_property
    def _equal(self) -> set[tuple[str, Scalar]]:
        return {(kind_of(wanted), wanted) for wanted in self.values}

    @cached_property
    def periods(self) -> list[tuple[int, int]]:
        """The first and the last instant of each value that is a year, a month, a day or a time, in order."""
        periods = (_period_of(wanted) for wanted in self.values if isinstance(wanted, str))
        return sorted(period for period in periods if period is not None)


@dataclass(frozen=True)
class Combination:
    """Combined filters; of one with ``not``."""

    operator: Literal["and", "or", "not"]
    parts: tuple[Filter, ...]


Filter = Condition | Combination

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}

TIME = (
    "[12][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    "(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,9})?)?(?:Z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])?)?"
)
"""Pattern of a day or a time in ISO 8601, as databases, tables and JSON write them."""
_PERIOD = re.compile("[12][0-9]{3}(?:-[01][0-9](?:-[0-3][0-9])?)?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant_of(text: str) -> int | None:
    """Return the microseconds since 1970 of a day or a time in ISO 8601, in UTC without an offset; None for another text."""
    if re.fullmatch(TIME, text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:  # 30 February
        return None
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)


def _period_of(text: str) -> tuple[int, int] | None:
    """Return the first and the last instant of a year, a month, a day or a time in ISO 8601; None for another text."""
    if _PERIOD.fullmatch(text) is None:
        instant = instant_of(text)
        return None if instant is None else (instant, instant)
    try:
        start = np.datetime64(text)
    except ValueError:
        return None
    first, after = np.array([start, start + 1], "M8[us]").astype(np.int64).tolist()
    return first, after - 1


def kind_of(value: object) -> str:
    """Return the kind of a single value: ``"text"``, ``"truth value"`` or ``"number"``."""
    if isinstance(value, str):
        return "text"
    return "truth value" if isinstance(value, bool) else "number"


def parse_filter(where: object, place: str = "where", depth: int = 0) -> Filter:
    """Read a filter of plain values, or raise a QueryError that says where it is none; ``depth`` filters contain this one.

    Examples:
        >>> parse_filter({"year": {"gte": 2020}, "country": {"in": ["Norway", "Sweden"]}})
        Combination(operator='and', parts=(Condition(key='year', operator='gte', values=(2020,)), Condition(key='country',
        operator='in', values=('Norway', 'Sweden'))))
    """
    if not isinstance(where, Mapping) or not where:
        raise QueryError(f'{place}: expected conditions such as {{"country": "Japan"}}, found {shown(where)}')
    if depth > _DEEPEST:
        raise QueryError(f"{place}: more than {_DEEPEST} filters inside each other; write it flatter")
    parts: list[Filter] = []
    for key, value in where.items():
        if not isinstance(key, str) or not key:
            raise QueryError(f"{place}: {key!r} is not a metadata key; keys are text")
        refuse_lone_surrogates(key, f"{place}: a metadata key", QueryError)
        if key == "not":
            parts.append(Combination("not", (parse_filter(value, f"{place}.not", depth + 1),)))
        elif key in ("and", "or"):
            if not isinstance(value, Sequence) or isinstance(value, str) or not value:
                raise QueryError(f"{place}.{key}: expected a list of filters, found {shown(value)}")
            inner = (parse_filter(part, f"{place}.{key}[{number}]", depth + 1) for number, part in enumerate(value))
            parts.append(Combination("and" if key == "and" else "or", tuple(inner)))
        else:
            parts += _conditions(normalize("NFC", key.removeprefix(_PREFIX)), value, f"{place}.{key}")
    parsed = parts[0] if len(parts) == 1 else Combination("and", tuple(parts))
    if not depth and (count := _count(parsed)) > _MOST_CONDITIONS:
        raise QueryError(
            f"{place}: {count:,} conditions are too many; at most {_MOST_CONDITIONS:,} "
            '({"in": [...]} is one, whatever the number of its values)'
        )
    return parsed


def _count(wanted: Filter) -> int:
    return sum(map(_count, wanted.parts)) if isinstance(wanted, Combination) else 1


def keys_of(wanted: Filter) -> set[str]:
    """Return the metadata keys that a filter asks about."""
    return {wanted.key} if isinstance(wanted, Condition) else set[str]().union(*map(keys_of, wanted.parts))


def _conditions(key: str, value: object, where: str) -> list[Condition]:
    if not isinstance(value, Mapping):
        return [Condition(key, "eq", (_scalar(value, where),))]
    if not value:
        raise QueryError(f"{where}: no operator; take one of {', '.join(OPERATORS)}")
    conditions = []
    for operator, wanted in value.items():
        place, values = f"{where}.{operator}", [wanted]
        if operator not in OPERATORS:
            raise QueryError(
                f"{where}: there is no operator {operator!r}; {nearest(str(operator), OPERATORS)} (the opposite of a filter is "
                '{"not": {...}}, and a value inside a value needs a metadata key of its own)'
            )
        if operator == "in":
            if not isinstance(wanted, Iterable) or isinstance(wanted, str | bytes | Mapping) or getattr(wanted, "ndim", 1) == 0:
                raise QueryError(f"{place}: expected a list of values, found {shown(wanted)}")
            values = list(wanted)
        elif operator == "exists" and not isinstance(wanted, bool):
            raise QueryError(f"{place}: expected true or false, found {shown(wanted)}")
        scalars = tuple(_scalar(value, place) for value in values)
        if operator in _COMPARED and isinstance(scalars[0], bool):
            raise QueryError(f"{place}: truth values have no order; compare with eq")
        conditions.append(Condition(key, operator, scalars))
    return conditions


def _scalar(value: object, where: str) -> Scalar:
    if isinstance(value, np.floating | Decimal):
        value = float(str(value))  # 0.7 in single precision is 0.7
    elif isinstance(value, np.datetime64 | date):
        value = str(value)
    elif isinstance(value, np.generic):
        value = value.item()
    if value is None:
        raise QueryError(f'{where}: null is not a value; {{"exists": false}} finds items without the key')
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryError(f"{where}: {value} is not a number to compare with")
    if not isinstance(value, str | bool | int | float):
        hint = '; any of several: {"in": [...]}' if isinstance(value, list | tuple | set) else ""
        raise QueryError(f"{where}: expected a text, a number or a truth value, found {shown(value)}{hint}")
    refuse_lone_surrogates(value, f"{where}: the value", QueryError)
    if isinstance(value, str):
        return normalize("NFC", value)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise QueryError(f"{where}: a number of {value.bit_length():,} bits is too large to compare with")
    return value


def shown(value: object) -> str:
    """Return a value for a message, not too long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, nesting without end
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."
