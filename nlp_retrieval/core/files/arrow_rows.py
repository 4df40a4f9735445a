"""Rows of Arrow batches as JSON objects: checked for damage, and with values that are no JSON converted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import pyarrow as pa

from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.core.files.records import LEAVE_OUT, MAX_ENTRY, JsonObject, plain_value, too_long
from nlp_retrieval.errors import SourceError

BATCH = 256
"""Rows at a time: few, because a row may be a whole book."""


def rows_of_batches(source: str, batches: Iterator[pa.RecordBatch], cure: str = LEAVE_OUT) -> Iterator[tuple[str, JsonObject]]:
    """Yield the rows of batches, each with its location (``items.parquet, row 17``), rows counted from 1.

    Args:
        source: name of the source, for messages.
        batches: in order.
        cure: advice about a value that cannot be converted.

    Raises:
        SourceError: the data is damaged, a row is longer than ``MAX_ENTRY`` bytes, or a value cannot be converted to JSON.
    """
    number = 0
    try:
        for batch in batches:
            batch.validate(full=True)  # untrusted data may have offsets outside its memory
            odd = [(field.name, field.type) for field in batch.schema if not _is_plain(field.type)]
            for part in _parts(_in_microseconds(batch)):
                if part.nbytes > MAX_ENTRY:
                    raise too_long(f"{source}, row {number + 1}")
                for row in _converted(f"{source}, row {number + 1} or soon after", part, cure):
                    number += 1
                    location = f"{source}, row {number}"
                    for column, kind in odd:
                        row[column] = plain_value(location, column, _parsed(kind, row[column]), cure=cure)
                    yield location, row
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{source}: damaged after row {number} ({str(error)[:200]}); fetch or write it again") from error


def _converted(location: str, part: pa.RecordBatch, cure: str) -> list[dict[str, Any]]:
    try:
        return cast(list[dict[str, Any]], part.to_pylist(maps_as_pydicts="strict"))
    except (pa.ArrowException, UnicodeDecodeError):
        raise
    except (
        OverflowError,
        ValueError,
        LookupError,
    ) as error:  # a date after the year 9999, an unknown zone, a key twice in a map
        raise SourceError(f"{location}: a value that Python has no form for ({str(error)[:200]}); {cure}") from None


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with times in microseconds, the finest that Python knows; so they are the same with and without pandas."""
    for location, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            coarser = batch.column(location).cast(pa.timestamp("us", field.type.tz), safe=False)
        elif field.type == pa.time64("ns"):
            coarser = batch.column(location).cast(pa.time64("us"), safe=False)
        else:
            continue
        batch = batch.set_column(location, field.name, coarser)
    return batch


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch, or, if it is very long, its rows one by one."""
    if batch.nbytes <= MAX_ENTRY:
        yield batch
    else:
        yield from (batch.slice(row, 1) for row in range(len(batch)))


def _parsed(kind: pa.DataType, value: Any) -> Any:
    """A value as it was written: a JSON text of ``datasets`` is decoded, and 0.7 in single precision is 0.7."""
    if value is None or not _is_stored_otherwise(kind):
        return value
    if _is_json(kind):
        with suppress(ValueError):  # ``datasets`` does not encode texts such as 001
            value = parse_json(value)
        return value
    if pa.types.is_floating(kind):
        return float(str(kind.to_pandas_dtype()(value)))
    if pa.types.is_struct(kind):
        return {field.name: _parsed(field.type, value[field.name]) for field in kind}
    if pa.types.is_map(kind):
        return {key: _parsed(kind.item_type, inner) for key, inner in value.items()}
    return [_parsed(kind.value_type, inner) for inner in value]


def _is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and str(kind.extension_name) == "arrow.json"


def _is_stored_otherwise(kind: pa.DataType) -> bool:
    """Return whether a type holds JSON texts or numbers of less than double precision, which print with fewer digits."""
    if pa.types.is_struct(kind):
        return any(_is_stored_otherwise(field.type) for field in kind)
    inner = getattr(kind, "item_type" if pa.types.is_map(kind) else "value_type", None)
    is_short = pa.types.is_floating(kind) and kind != pa.float64()
    return is_short or _is_json(kind) or (inner is not None and _is_stored_otherwise(inner))


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    return any(is_one(kind) for is_one in (types.is_string, types.is_large_string, types.is_integer, types.is_boolean))
