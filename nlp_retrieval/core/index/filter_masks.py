"""Which items meet a filter: typed columns are compared by Arrow, columns of mixed values one value at a time.

Both agree with :meth:`~nlp_retrieval.core.filters.Condition.holds` on the values as they were indexed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.filters import Combination, Condition, Filter, kind_of
from nlp_retrieval.errors import QueryError, nearest

_KINDS = {"bool": "truth value", "int": "number", "float": "number", "str": "text", "strings": "text"}
_ORDERED = {"gt": pc.greater, "gte": pc.greater_equal, "lt": pc.less, "lte": pc.less_equal}
_INT64 = 2**63


def check_filter(wanted: Filter, kinds: Mapping[str, str]) -> None:
    """Refuse a filter that does not fit the metadata of this index.

    Args:
        wanted: the filter.
        kinds: kinds of the metadata columns, by key.

    Raises:
        QueryError: a key that no item has, or a value of a different type than the key's.
    """
    if isinstance(wanted, Combination):
        for part in wanted.parts:
            check_filter(part, kinds)
        return
    if wanted.key not in kinds:
        has = nearest(wanted.key, kinds) if kinds else "its items have no metadata"
        raise QueryError(f"where: no item of this index has the metadata key {wanted.key!r}; {has}")
    kind = _KINDS.get(kinds[wanted.key])
    if wanted.operator == "exists" or kind is None:
        return
    for value in wanted.values:
        if kind_of(value) != kind:
            raise QueryError(f"where: {wanted.key} is a {kind} in this index, and {value!r} is a {kind_of(value)}")


Columns = Mapping[str, tuple[str, Sequence[tuple[str, pa.Array]]]]
"""For each metadata key its kind in the whole index, and for each batch its kind there and its values."""


def mask_of(wanted: Filter, columns: Columns, n_items: int) -> Mask:
    """Return which items meet a filter.

    Args:
        wanted: a checked filter.
        columns: the metadata.
        n_items: number of items.
    """
    if isinstance(wanted, Combination):
        masks = [mask_of(part, columns, n_items) for part in wanted.parts]
        if wanted.operator == "not":
            return ~masks[0]
        joined = np.logical_and if wanted.operator == "and" else np.logical_or
        result: Mask = joined.reduce(masks)
        return result
    joint, batches = columns[wanted.key]
    parts = [_of_batch(wanted, kind, batch, joint == "json") for kind, batch in batches]
    return np.concatenate(parts) if parts else np.zeros(n_items, np.bool_)


def _of_batch(condition: Condition, kind: str, batch: pa.Array, mixed: bool) -> Mask:
    """Which values of a batch meet a condition; in a mixed column, the condition may have a value of any kind."""
    if kind == "json" or mixed:
        values = batch.to_pylist()
        if kind == "json":
            values = [None if value is None else json.loads(value) for value in values]
        return np.array([condition.holds(value) for value in values], np.bool_)
    if condition.operator == "exists":
        exists: Mask = batch.is_valid().to_numpy(zero_copy_only=False)
        return exists if condition.values[0] else ~exists
    if kind == "strings":
        flat = _compared(condition, "str", batch.flatten())
        lengths = pc.fill_null(pc.list_value_length(batch), 0).to_numpy(zero_copy_only=False)
        owner = np.repeat(np.arange(len(batch)), lengths)
        return np.bincount(owner[flat], minlength=len(batch)) > 0
    return _compared(condition, kind, batch)


def _compared(condition: Condition, kind: str, values: pa.Array) -> Mask:
    """Compare single values of one type; a missing value meets no condition."""
    if condition.operator in ("eq", "in"):
        exact = [stored for value in condition.values if (stored := _stored(value, kind)) is not None]
        if kind == "float" and 0.0 in exact:
            exact += [0.0, -0.0]  # one number, but two to Arrow
        meets = pc.is_in(values, value_set=pa.array(exact, values.type))
    else:
        operator, bound = _bound(condition.operator, condition.values[0], kind)
        if bound is None:
            meets = pc.and_(values.is_valid(), pa.scalar(operator == "all"))
        else:
            meets = _ORDERED[operator](values, pa.scalar(bound, values.type))
    mask: Mask = pc.fill_null(meets, False).to_numpy(zero_copy_only=False)
    return mask


def _stored(value: Any, kind: str) -> Any:
    """A value as a column of this kind stores it; None if it cannot."""
    if kind == "int":
        whole = int(value) if value == int(value) else None
        return whole if whole is not None and -_INT64 <= whole < _INT64 else None
    if kind == "float":
        try:
            return float(value) if float(value) == value else None
        except OverflowError:
            return None
    return value


def _bound(operator: str, value: Any, kind: str) -> tuple[str, Any]:
    """An equivalent comparison with a bound that the column can hold; without a bound, all values pass, or none."""
    if kind == "int":
        value = math.floor(value) if operator in ("gt", "lte") else math.ceil(value)
        if not -_INT64 <= value < _INT64:
            return ("all" if (value > 0) is (operator in ("lt", "lte")) else "none"), None
    if kind == "float" and isinstance(value, int):
        try:
            nearest_float = float(value)
        except OverflowError:
            return ("all" if (value > 0) is (operator in ("lt", "lte")) else "none"), None
        if nearest_float != value:
            # the value lies between two floats: a float is above it exactly if it is at least the upper one, and so on
            below = nearest_float if nearest_float < value else math.nextafter(nearest_float, -math.inf)
            above = math.nextafter(below, math.inf)
            return {"gt": ("gte", above), "gte": ("gte", above), "lt": ("lte", below), "lte": ("lte", below)}[operator]
        value = nearest_float
    return operator, value
