"""Masks of the items that meet a filter: a condition is asked once for each distinct value of a metadata key."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.filters import Combination, Condition, Filter, kind_of, shown
from nlp_retrieval.errors import QueryError, nearest

_KINDS = {"bool": "truth value", "int": "number", "float": "number", "str": "text", "strings": "text"}

Batches = Sequence[tuple[str, pa.Array]]
"""For each batch of a metadata key, its kind there and its values."""


def mask_of(wanted: Filter, kinds: Mapping[str, str], batches_of: Callable[[str], Batches]) -> Mask:
    """Return the items that meet a filter, given the kind of each key and what returns its values; QueryError if it cannot."""
    if isinstance(wanted, Combination):
        masks = [mask_of(part, kinds, batches_of) for part in wanted.parts]
        if wanted.operator == "not":
            return ~masks[0]
        joined = np.logical_and if wanted.operator == "and" else np.logical_or
        result: Mask = joined.reduce(masks)
        return result
    if wanted.key not in kinds:
        raise _unknown(wanted.key, kinds)
    batches = batches_of(wanted.key)
    if wanted.operator != "exists" and wanted.values:
        _check_kinds(wanted, _KINDS.get(kinds[wanted.key]), batches)
    return np.concatenate([_of_batch(wanted, *part) for part in batches])


def _unknown(key: str, kinds: Mapping[str, str]) -> QueryError:
    has = nearest(key, kinds) if kinds else "its items have no metadata"
    if (outer := key.partition(".")[0]) != key and outer in kinds:
        has = f"a value inside {outer!r} cannot be reached by a path: store it as a metadata key of its own, and index again"
    return QueryError(
        f"where: no item of this index has the metadata key {key!r}; {has}. A key that the source has and the index lacks "
        "was not kept by its loader (metadata_fields)"
    )


def _check_kinds(condition: Condition, kind: str | None, batches: Batches) -> None:
    """Raise a QueryError if a value has another kind than the key's, or none has one of those that a mixed key holds."""
    if kind is not None:
        for value in condition.values:
            if kind_of(value) != kind:
                raise _mistyped(condition.key, value, f"is a {kind}", {kind})
        return
    values = (value for part in batches for value in _values(*part))
    counts = Counter(kind for value in values for kind in _kinds_in(value))
    if not {*map(kind_of, condition.values)} & counts.keys():
        held = ", ".join(f"{kind} ({count:,})" for kind, count in counts.most_common()) or "no value"
        raise _mistyped(condition.key, condition.values[0], f"holds {held}", counts)


def _mistyped(key: str, value: Any, found: str, kinds: Collection[str]) -> QueryError:
    """The error for a value of another kind than those of a key, with the value as it was meant, if that is known."""
    cure = ""
    if "object" in kinds:
        cure = "; a value inside a value cannot be compared: keep it as a metadata key of its own"
    elif kind_of(value) != "text" and "text" in kinds:
        cure = f'; write it in quotation marks: "{json.dumps(value)}"'
    elif kind_of(value) == "text":
        with suppress(ValueError):
            meant = parse_json(str(value))
            if isinstance(meant, bool | int | float) and kind_of(meant) in kinds:
                cure = f"; write it without quotation marks: {value}"
    return QueryError(f"where: {key} {found} in this index, and {shown(value)} is a {kind_of(value)}{cure}")


def _values(kind: str, column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return [None if value is None else json.loads(value) for value in values] if kind == "json" else values


def _kinds_in(value: Any) -> set[str]:
    """The kinds of a metadata value that may be a list, for messages."""
    if value is None:
        return set()
    if isinstance(value, list):
        return set().union(*map(_kinds_in, value)) if value else {"empty list"}
    return {"object"} if isinstance(value, dict) else {kind_of(value)}


def _of_batch(condition: Condition, kind: str, column: pa.Array) -> Mask:
    """Return which values of a batch meet a condition."""
    if condition.operator == "exists" and kind != "json":  # where null may be written
        exists: Mask = column.is_valid().to_numpy(zero_copy_only=False)
        return exists if condition.values[0] else ~exists
    encoded = (column.flatten() if kind == "strings" else column).dictionary_encode(null_encoding="encode")
    distinct = _values(kind, encoded.dictionary)
    test = condition.test_of(_KINDS[kind]) if kind in _KINDS else condition.holds
    missing = condition.holds(None)
    meets = np.array([missing if value is None else test(value) for value in distinct], np.bool_)
    flat: Mask = meets[encoded.indices.to_numpy()]
    if kind != "strings":
        return flat
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    owner = np.repeat(np.arange(len(column)), lengths)
    return np.bincount(owner[flat], minlength=len(column)) > 0
