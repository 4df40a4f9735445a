"""Masks of the items that meet a filter: typed columns are compared by Arrow, mixed columns one value at a time.

Both give the same result as ``holds`` on the indexed values.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.filters import (
    COMPARED,
    OFFSET,
    TIME,
    Combination,
    Condition,
    Filter,
    edge_of,
    instant_of,
    kind_of,
    period_of,
    shown,
)
from nlp_retrieval.core.unicode import normalize
from nlp_retrieval.errors import QueryError, nearest

_KINDS = {"bool": "truth value", "int": "number", "float": "number", "str": "text", "strings": "text"}
_ORDERED = {"gt": pc.greater, "gte": pc.greater_equal, "lt": pc.less, "lte": pc.less_equal}

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
    kind = _KINDS.get(kinds[wanted.key])
    for value in wanted.values if wanted.operator != "exists" else ():
        if kind is not None and kind_of(value) != kind:
            raise _mistyped(wanted.key, value, f"is a {kind}")
    batches = batches_of(wanted.key)
    return _of_mixed(wanted, batches) if kind is None else np.concatenate([_of_batch(wanted, *part) for part in batches])


def _unknown(key: str, kinds: Mapping[str, str]) -> QueryError:
    has = nearest(key, kinds) if kinds else "its items have no metadata"
    if (outer := key.partition(".")[0]) in kinds:
        has = f"a value inside {outer!r} cannot be reached by a path: store it as a metadata key of its own, and index again"
    return QueryError(f"where: no item of this index has the metadata key {key!r}; {has}. A loader keeps its metadata_fields")


def _mistyped(key: str, value: Any, found: str) -> QueryError:
    return QueryError(f"where: {key} {found} in this index, and {shown(value)} is a {kind_of(value)}; give one of its kind")


def _of_mixed(condition: Condition, batches: Batches) -> Mask:
    """Return which values of a column of several types meet a condition; QueryError if none has a type it asks for."""
    values = [
        None if value is None else json.loads(value) if kind == "json" else value
        for kind, batch in batches
        for value in batch.to_pylist()
    ]
    if condition.operator != "exists" and condition.values:
        counts = Counter(kind for value in values for kind in _kinds_in(value))
        if not set(map(kind_of, condition.values)) & set(counts):
            held = ", ".join(f"{kind} ({count:,})" for kind, count in counts.most_common()) or "no value"
            raise _mistyped(condition.key, condition.values[0], f"holds {held}")
    return np.fromiter(map(condition.holds, values), np.bool_, len(values))


def _kinds_in(value: Any) -> set[str]:
    """The kinds of a metadata value that may be a list, for messages."""
    if value is None:
        return set()
    if isinstance(value, list):
        return set().union(*map(_kinds_in, value)) if value else {"empty list"}
    return {"object"} if isinstance(value, dict) else {kind_of(value)}


def _of_batch(condition: Condition, kind: str, batch: pa.Array) -> Mask:
    """Return which values of a batch of one type meet a condition."""
    if condition.operator == "exists":
        exists: Mask = batch.is_valid().to_numpy(zero_copy_only=False)
        return exists if condition.values[0] else ~exists
    if kind == "strings":
        flat = _of_texts(condition, batch.flatten())
        lengths = pc.fill_null(pc.list_value_length(batch), 0).to_numpy(zero_copy_only=False)
        owner = np.repeat(np.arange(len(batch)), lengths)
        return np.bincount(owner[flat], minlength=len(batch)) > 0
    return _of_texts(condition, batch) if kind == "str" else _of_numbers(condition, kind, batch)


def _of_texts(condition: Condition, texts: pa.Array) -> Mask:
    if not pc.all(pc.string_is_ascii(texts)).as_py():
        encoded = texts.dictionary_encode()
        composed = pa.array([normalize("NFC", text) for text in encoded.dictionary.to_pylist()], pa.string())
        texts = composed.take(encoded.indices)
    is_equal = condition.operator in ("eq", "in")
    if is_equal:
        meets = _filled(pc.is_in(texts, value_set=pa.array(condition.values, pa.string())))
    else:
        meets = _filled(_ORDERED[condition.operator](texts, condition.values[0]))
    periods = sorted(period for value in condition.values if (period := period_of(str(value))) is not None)
    if not periods:
        return meets
    instants = _instants(texts)
    is_time: Mask = instants.is_valid().to_numpy(zero_copy_only=False)
    instant = pc.fill_null(instants, 0).to_numpy(zero_copy_only=False)
    if not is_equal:
        edge = edge_of(periods[0], condition.operator)
        ordered: Mask = np.where(is_time, COMPARED[condition.operator](instant, edge), meets)
        return ordered
    firsts, lasts = np.array(periods).T
    nearest = np.searchsorted(firsts, instant, "right") - 1
    within: Mask = (nearest >= 0) & (instant <= np.maximum.accumulate(lasts)[nearest])
    met: Mask = meets | (is_time & within)
    return met


def _instants(texts: pa.Array) -> pa.Array:
    """``instant_of`` of each text."""
    nothing = pa.scalar(None, pa.string())
    times = pc.if_else(pc.match_substring_regex(texts, f"^{TIME}$"), texts, nothing)
    has_offset = pc.match_substring_regex(times, f":[0-9.]+{OFFSET}$")
    try:
        exact = pc.if_else(has_offset, times, nothing).cast(pa.timestamp("us", "UTC"))
        in_utc = pc.if_else(has_offset, nothing, times).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:  # 30 February, nanoseconds
        return pa.array([None if time is None else instant_of(time) for time in times.to_pylist()], pa.int64())
    return pc.coalesce(exact.cast(pa.int64()), in_utc.cast(pa.int64()))


def _of_numbers(condition: Condition, kind: str, values: pa.Array) -> Mask:
    if kind == "bool":
        return _filled(pc.is_in(values, value_set=pa.array(condition.values, pa.bool_())))
    values = values.cast(pa.float64(), safe=False)  # exact: columns of whole numbers have none beyond 2**53
    floats = [(_nearest_float(value), value) for value in condition.values]
    if condition.operator in ("eq", "in"):
        exact = [number for number, value in floats if number == value]
        exact += [0.0, -0.0] if 0.0 in exact else []  # one number, but two to Arrow
        return _filled(pc.is_in(values, value_set=pa.array(exact, pa.float64())))
    ((number, value),) = floats
    operator: str = condition.operator
    if number != value:  # no float is equal to the value, which lies below this one, or above it
        upper, lower = ("gte", "lt") if COMPARED["gt"](number, value) else ("gt", "lte")
        operator = upper if operator in ("gt", "gte") else lower
    return _filled(_ORDERED[operator](values, number))


def _nearest_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _filled(meets: pa.Array) -> Mask:
    """The mask of a comparison; a missing value meets no condition."""
    mask: Mask = pc.fill_null(meets, False).to_numpy(zero_copy_only=False)
    return mask
