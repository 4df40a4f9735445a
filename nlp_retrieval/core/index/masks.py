"""Masks of the items that meet a filter: typed columns are compared by Arrow, mixed columns one value at a time.

Both give the same result as ``holds`` on the indexed values.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.filters import Combination, Condition, Filter, conditions_of, kind_of
from nlp_retrieval.errors import QueryError, nearest

_KINDS = {"bool": "truth value", "int": "number", "float": "number", "str": "text", "strings": "text"}
_ORDERED = {"gt": pc.greater, "gte": pc.greater_equal, "lt": pc.less, "lte": pc.less_equal}
_INT64 = 2**63
_TRUTH_VALUES = ("true", "false", "yes", "no", "1", "0")
_MOST_VALUES, _MOST_COMPARED = 100_000, 1000
"""Most distinct values of a key that a note reads, and that it compares letter by letter."""
_MOST_REASONS, _LONGEST_SHOWN = 5, 80


def check_filter(wanted: Filter, kinds: Mapping[str, str]) -> None:
    """Raise an error if a filter does not match the metadata of this index.

    Args:
        wanted: the filter.
        kinds: kinds of the metadata columns, by key.

    Raises:
        QueryError: a key that no item has, or a value of a different type than the key's values.
    """
    if isinstance(wanted, Combination):
        for part in wanted.parts:
            check_filter(part, kinds)
        return
    if wanted.key not in kinds:
        has = nearest(wanted.key, kinds) if kinds else "its items have no metadata"
        outer = wanted.key.partition(".")[0]
        if outer != wanted.key and outer in kinds:
            has = (
                f"a value inside {outer!r} cannot be reached by a path: store it as a metadata key of its own, and index again"
            )
        raise QueryError(
            f"where: no item of this index has the metadata key {wanted.key!r}; {has}. A key that the source has and the "
            "index lacks was not kept by its loader (metadata_fields)"
        )
    kind = _KINDS.get(kinds[wanted.key])
    if wanted.operator == "exists" or kind is None:
        return
    for value in wanted.values:
        if kind_of(value) != kind:
            raise QueryError(
                f"where: {wanted.key} is a {kind} in this index, and {_shown(value)} is a {kind_of(value)}{_cure(value, kind)}"
            )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _cure(value: Any, kind: str) -> str:
    """Return a value written as another kind, if possible."""
    if kind == "text":
        other = (
            "; or, to compare numbers, index them as numbers (a CSV file: number_fields)" if kind_of(value) == "number" else ""
        )
        return f"; write it in quotation marks: {json.dumps(value)!r}{other}"
    if kind == "truth value":
        return "; write true or false, without quotation marks" if str(value).casefold() in _TRUTH_VALUES else ""
    try:
        number = json.loads(str(value))
    except ValueError:
        return ""
    return (
        f"; write it without quotation marks: {number}"
        if kind_of(value) == "text" and _kind_for_message(number) == "number"
        else ""
    )


def _kind_for_message(value: Any) -> str:
    """The kind of any metadata value, as used in messages."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "object"
    return "list" if isinstance(value, list) else kind_of(value)


def note_of(wanted: Filter, columns: Columns, mask: Mask) -> str | None:
    """Return a note about a filter: why no item meets it, or which values it leaves out by their type.

    Args:
        wanted: a checked filter.
        columns: the metadata.
        mask: the items that meet it.

    Raises:
        QueryError: a key has no value at all of the type that a condition uses.
    """
    is_met = mask.any()
    compared = [
        _Compared.of(condition, columns)
        for condition in conditions_of(wanted)
        if condition.operator != "exists" and (columns[condition.key][0] == "json" or not is_met)
    ]
    left_out = [note for comparison in compared if (note := comparison.left_out()) is not None]
    if is_met:
        return f"where: {'; '.join(left_out)}" if left_out else None
    reasons = [comparison.unmet() for comparison in compared if not mask_of(comparison.condition, columns, len(mask)).any()]
    reasons = reasons or ["some items meet each condition, and no item meets them together"]
    return f"no item of this index meets the filter; nothing is found: {'; '.join([*reasons[:_MOST_REASONS], *left_out])}"


@dataclass(frozen=True)
class _Compared:
    """A condition and the distinct values of its key: number of items per kind, and the comparable values."""

    condition: Condition
    counts: Mapping[str, int]
    values: Sequence[Any]

    @classmethod
    def of(cls, condition: Condition, columns: Columns) -> _Compared:
        joint, batches = columns[condition.key]
        if joint != "json":
            distinct = [pc.unique(batch.flatten() if kind == "strings" else batch).drop_null() for kind, batch in batches]
            values = [value for part in distinct for value in part[:_MOST_VALUES].to_pylist()]
            return cls(condition, {}, list(dict.fromkeys(values)))
        counts: Counter[str] = Counter()
        comparable: dict[Any, None] = {}
        kinds = set(map(kind_of, condition.values))
        for kind, batch in batches:
            for value in batch.to_pylist():
                if value is None:
                    continue
                decoded = json.loads(value) if kind == "json" else value
                inner = decoded if isinstance(decoded, list) else [decoded]
                kinds_here = set(map(_kind_for_message, inner)) or {"empty list"}
                counts.update(kinds_here)
                comparable |= dict.fromkeys(
                    scalar for scalar in inner if _kind_for_message(scalar) in kinds and len(comparable) < _MOST_VALUES
                )
        if condition.values and not kinds & set(counts):
            first = condition.values[0]
            has = ", ".join(f"{kind} ({count:,})" for kind, count in counts.most_common()) or "no value"
            hint = _cure(first, next((kind for kind in counts if kind in _KINDS.values()), ""))
            if "object" in counts:
                hint = "; a value inside a value cannot be compared: keep it as a metadata key of its own"
            raise QueryError(
                f"where: {condition.key} holds in this index: {has}; and {_shown(first)} is a {kind_of(first)}{hint}"
            )
        return cls(condition, counts, list(comparable))

    def left_out(self) -> str | None:
        """Return which values of other kinds a comparison skips."""
        kinds = set(map(kind_of, self.condition.values))
        others = {kind: count for kind, count in self.counts.items() if kind not in {*kinds, "null", "empty list"}}
        if not others or not kinds:
            return None
        listed = ", ".join(f"{count:,} that hold a {kind}" for kind, count in others.items())
        return f"{self.condition.key} is compared as a {' or '.join(sorted(kinds))}, which leaves out items: {listed}"

    def unmet(self) -> str:
        """Return why no item meets the condition."""
        key, (*wanted,) = self.condition.key, self.condition.values
        if not wanted:
            return f"{key}: in has an empty list of values"
        shown = _shown(wanted[0]) + (f" or one of {len(wanted) - 1:,} more" if len(wanted) > 1 else "")
        if self.condition.operator in ("eq", "in"):
            texts = [value for value in self.values if isinstance(value, str)]
            folded = {text.strip().casefold(): text for text in texts}
            near = [
                folded[close]
                for value in wanted[:_MOST_REASONS]
                if isinstance(value, str)
                for close in get_close_matches(value.strip().casefold()[:_LONGEST_SHOWN], list(folded)[:_MOST_COMPARED], n=1)
            ]
            if near:
                return f"{key} is never {shown}; did you mean {', '.join(map(_shown, dict.fromkeys(near)))}?"
        numbers = [value for value in self.values if kind_of(value) == kind_of(wanted[0]) != "truth value"]
        between = f"; it is from {_shown(min(numbers))} to {_shown(max(numbers))}" if numbers else ""
        order = ", by code points" if numbers and isinstance(numbers[0], str) else ""
        is_never = "is never" if self.condition.operator in ("eq", "in") else f"is never {self.condition.operator}"
        return f"{key} {is_never} {shown}{between}{order}"


Columns = Mapping[str, tuple[str, Sequence[tuple[str, pa.Array]]]]
"""For each metadata key, its kind in the whole index; for each batch, its kind there and its values."""


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
    """Return which values of a batch meet a condition; in a mixed column, the condition may have a value of any kind."""
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
        exact = [stored for value in condition.values if (stored := _as_column_value(value, kind)) is not None]
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


def _as_column_value(value: Any, kind: str) -> Any:
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
    """An equivalent comparison with a bound that fits the column; without a bound, all values pass, or none."""
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
