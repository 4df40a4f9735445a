"""Filters over metadata: one small typed language, evaluated to a mask over the items, the same for every retriever.

A filter is made of plain values, as in JSON. ``{"country": "Japan", "year": {"gte": 2015}}`` requires both. A key has either
a value that the item's must equal, or operators, all of which must be met: ``eq``, ``in``, ``gt``, ``gte``, ``lt``, ``lte``,
``exists``. ``and`` and ``or`` take a list of filters, ``not`` takes one. A metadata key with one of these names is written
``metadata.and``.

A value that is a list meets a condition if one of its elements does; an item without the key meets no condition except
``{"exists": false}``; ``not`` holds for exactly the items for which its filter does not. Text is ordered by code points;
numbers are compared as numbers, and a number, a truth value and a text are never equal. No part of a filter ever becomes
part of a query language or a pattern.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import numpy as np

from nlp_retrieval.core.unicode import refuse_lone_surrogates
from nlp_retrieval.errors import QueryError, nearest

Where = Mapping[str, Any]
"""A filter as plain values."""

Scalar = str | bool | int | float
Operator = Literal["eq", "in", "gt", "gte", "lt", "lte", "exists"]

OPERATORS: tuple[Operator, ...] = ("eq", "in", "gt", "gte", "lt", "lte", "exists")

_OTHERS = {
    "=": "'eq'", "==": "'eq'", "equals": "'eq'", "ne": '{"not": {...}}', "!=": '{"not": {...}}', "<>": '{"not": {...}}',
    "nin": '{"not": {"key": {"in": [...]}}}', "not in": '{"not": {"key": {"in": [...]}}}', "<": "'lt'", "<=": "'lte'",
    ">": "'gt'", ">=": "'gte'", "le": "'lte'", "ge": "'gte'", "min": "'gte'", "max": "'lte'", "from": "'gte'", "to": "'lte'",
    "any": "'in'", "or": "'in'", "between": "'gte' and 'lte'", "contains": "'eq': a list meets it if one of its elements does",
    "not": '{"not": {"key": ...}}, around the key',
}  # fmt: skip
"""Equivalents here of operators of other languages."""

_PREFIX = "metadata."
_DEEPEST = 64
_LONGEST_LIST = 1_000_000
_MOST_CONDITIONS = 1000
"""Maximum number of conditions. Each scans all items, and its mask is held until all are combined."""

_MOST_BITS = 2048
"""Maximum number of bits of an integer: some 600 digits, which can be printed whatever Python's own limit is."""


@dataclass(frozen=True)
class Condition:
    """A condition on a metadata value.

    Args:
        key: metadata key.
        operator: one of :data:`OPERATORS`.
        values: values to compare with: one value, any number with ``in``, a truth value with ``exists``.
    """

    key: str
    operator: Operator
    values: tuple[Scalar, ...]

    def holds(self, value: object) -> bool:
        """Return whether a metadata value meets it; None stands for a missing key."""
        if self.operator == "exists":
            return (value is not None) is self.values[0]
        if isinstance(value, list):
            return any(self._holds_of_one(inner) for inner in value)
        return self._holds_of_one(value)

    def _holds_of_one(self, value: object) -> bool:
        if not isinstance(value, str | bool | int | float):
            return False
        if self.operator in ("eq", "in"):
            return any(kind_of(value) == kind_of(wanted) and value == wanted for wanted in self.values)
        (bound,) = self.values
        return kind_of(value) == kind_of(bound) and _ORDERED[self.operator](value, bound)


@dataclass(frozen=True)
class Combination:
    """Combined filters.

    Args:
        operator: ``and``, ``or``, or ``not`` (of one).
        parts: the filters.
    """

    operator: Literal["and", "or", "not"]
    parts: tuple[Filter, ...]


Filter = Condition | Combination

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}


def conditions_of(wanted: Filter) -> list[Condition]:
    """Return the conditions of a filter, in order."""
    if isinstance(wanted, Combination):
        return [condition for part in wanted.parts for condition in conditions_of(part)]
    return [wanted]


def keys_of(wanted: Filter) -> set[str]:
    """The metadata keys that a filter reads."""
    return set().union(*map(keys_of, wanted.parts)) if isinstance(wanted, Combination) else {wanted.key}


def kind_of(value: object) -> str:
    """Return the kind of a single value: ``"text"``, ``"truth value"`` or ``"number"``."""
    if isinstance(value, str):
        return "text"
    return "truth value" if isinstance(value, bool) else "number"


def parse_filter(where: object, place: str = "where", depth: int = 0) -> Filter:
    """Read a filter.

    Args:
        where: plain values.
        place: path to the filter, for messages.
        depth: how many filters contain this one.

    Raises:
        QueryError: it is not a filter; the message says where, and gives a valid one.

    Examples:
        >>> parse_filter({"year": {"gte": 2020}, "country": {"in": ["Norway", "Sweden"]}})
        Combination(operator='and', parts=(Condition(key='year', operator='gte', values=(2020,)), Condition(key='country',
        operator='in', values=('Norway', 'Sweden'))))
    """
    if not isinstance(where, Mapping) or not where:
        raise QueryError(f'{place}: expected conditions such as {{"country": "Japan"}}, found {_shown(where)}')
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
            parts.append(_joined(key, value, f"{place}.{key}", depth))
        else:
            parts += _conditions(key.removeprefix(_PREFIX), value, f"{place}.{key}")
    parsed = parts[0] if len(parts) == 1 else Combination("and", tuple(parts))
    if not depth and (count := _count(parsed)) > _MOST_CONDITIONS:
        raise QueryError(
            f"{place}: {count:,} conditions are too many; at most {_MOST_CONDITIONS:,} "
            '({"in": [...]} is one, whatever the number of its values)'
        )
    return parsed


def _count(wanted: Filter) -> int:
    return sum(map(_count, wanted.parts)) if isinstance(wanted, Combination) else 1


def _joined(key: str, value: object, where: str, depth: int) -> Combination:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise QueryError(f"{where}: expected a list of filters, found {_shown(value)}")
    parts = tuple(parse_filter(part, f"{where}[{number}]", depth + 1) for number, part in enumerate(value))
    return Combination("and" if key == "and" else "or", parts)


def _conditions(key: str, value: object, where: str) -> list[Condition]:
    if not isinstance(value, Mapping):
        return [Condition(key, "eq", (_scalar(value, where),))]
    if not value:
        raise QueryError(f"{where}: no operator; take one of {', '.join(OPERATORS)}")
    conditions = []
    for operator, wanted in value.items():
        if operator not in OPERATORS:
            raise QueryError(
                f"{where}: there is no operator {operator!r}; {_meant(str(operator))} (a value inside a value cannot be "
                "compared: keep it as a metadata key of its own)"
            )
        conditions.append(Condition(key, operator, _operand(operator, wanted, f"{where}.{operator}")))
    return conditions


def _meant(operator: str) -> str:
    """Return the equivalent of another language's operator, or similar operators."""
    equivalent = _OTHERS.get(operator.strip("$").casefold())
    return f"write {equivalent}" if equivalent is not None else nearest(operator, OPERATORS)


def _operand(operator: Operator, wanted: object, where: str) -> tuple[Scalar, ...]:
    if operator == "in":
        if not isinstance(wanted, Sequence | set | frozenset) or isinstance(wanted, str):
            raise QueryError(f"{where}: expected a list of values, found {_shown(wanted)}")
        if len(wanted) > _LONGEST_LIST:
            raise QueryError(f"{where}: {len(wanted):,} values are too many; at most {_LONGEST_LIST:,}")
        return tuple(_scalar(value, where) for value in wanted)
    if operator == "exists":
        if not isinstance(wanted, bool):
            raise QueryError(f"{where}: expected true or false, found {_shown(wanted)}")
        return (wanted,)
    single = _scalar(wanted, where)
    if operator != "eq" and isinstance(single, bool):
        raise QueryError(f"{where}: truth values have no order; compare with eq")
    return (single,)


def _scalar(value: object, where: str) -> Scalar:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None:
        raise QueryError(f'{where}: null is not a value; {{"exists": false}} finds items without the key')
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryError(f"{where}: {value} is not a number to compare with")
    if not isinstance(value, str | bool | int | float):
        hint = '; any of several: {"in": [...]}' if isinstance(value, list | tuple | set) else ""
        if isinstance(value, date):
            hint = f"; write a date as the items have it, such as {value.isoformat()!r}"
        raise QueryError(f"{where}: expected a text, a number or a truth value, found {_shown(value)}{hint}")
    refuse_lone_surrogates(value, f"{where}: the value", QueryError)
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise QueryError(f"{where}: a number of {value.bit_length():,} bits is too large to compare with")
    return value


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, nesting without end
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."
