"""Batches of an Arrow table as records: checked for damage, with values converted to JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa

from nlp_retrieval.core.files.json_text import parse_json
from nlp_retrieval.errors import SourceError
from nlp_retrieval.loaders.fields import RecordLoader
from nlp_retrieval.loaders.files import MAX_ENTRY, JsonObject, too_long
from nlp_retrieval.loaders.values import plain_value

BATCH = 256
"""Rows at a time: few, because a row may be a whole book."""


def check_schema(loader: RecordLoader, place: str, schema: pa.Schema) -> None:
    """Refuse a table whose columns cannot be id, text and title, before a row of it is read.

    Raises:
        SourceError: a column is missing, occurs twice, or is not text.
    """
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise SourceError(f'{place}: {schema.names.count(name)} columns are called "{name[:40]}"; rename one')
    loader.check_columns(place, schema.names)
    for field in loader.taken_fields:
        found = _type_of(schema, field)
        if found is None or not _is_no_text(found):
            continue
        parameter = loader.parameter_of(field)
        cure = f"pass {parameter}=... with another column"
        if pa.types.is_struct(found) and found.num_fields:
            cure = f'name a field in it, such as "{field}.{found.field(0).name}", as {parameter}'
        elif parameter in ("id_field", "title_field"):
            cure = f"pass {parameter}=None where no column is fit, or name another"
        raise SourceError(f'{place}: column "{field}" holds {str(found)[:80]}, and not text; {cure}')


def _is_no_text(kind: pa.DataType) -> bool:
    types = pa.types
    return any(is_one(kind) for is_one in (types.is_nested, types.is_binary, types.is_large_binary, types.is_temporal))


def _type_of(schema: pa.Schema, field: str) -> Any:
    """The type of a column, or of a field in a struct; None if it does not exist."""
    if field in schema.names:
        return schema.field(field).type
    name, *inner = field.split(".")
    found = schema.field(name).type if name in schema.names else None
    for part in inner:
        if found is None or not pa.types.is_struct(found) or found.get_field_index(part) < 0:
            return None
        found = found.field(part).type
    return found


def rows_of_batches(source: str, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the rows of batches, each with its location (``items.parquet, row 17``), rows counted from 1.

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
                for row in _converted(f"{source}, row {number + 1} or soon after", part):
                    number += 1
                    place = f"{source}, row {number}"
                    for column, kind in odd:
                        row[column] = plain_value(place, column, _parsed(kind, row[column]))
                    yield place, row
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{source}: damaged after row {number} ({str(error)[:200]}); fetch or write it again") from error


def _converted(place: str, part: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return cast(list[dict[str, Any]], part.to_pylist(maps_as_pydicts="strict"))
    except (pa.ArrowException, UnicodeDecodeError):
        raise
    except (
        OverflowError,
        ValueError,
        LookupError,
    ) as error:  # a date after the year 9999, an unknown zone, a key twice in a map
        raise SourceError(
            f"{place}: a value that Python has no form for ({str(error)[:200]}); "
            "make text of its column, or leave it out with metadata_fields"
        ) from None


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with times in microseconds, the finest that Python knows; so they are the same with and without pandas."""
    for place, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            coarser = batch.column(place).cast(pa.timestamp("us", field.type.tz), safe=False)
        elif field.type == pa.time64("ns"):
            coarser = batch.column(place).cast(pa.time64("us"), safe=False)
        else:
            continue
        batch = batch.set_column(place, field.name, coarser)
    return batch


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch, or, if it is very long, its rows one by one."""
    if batch.nbytes <= MAX_ENTRY:
        yield batch
    else:
        yield from (batch.slice(row, 1) for row in range(len(batch)))


def _parsed(kind: pa.DataType, value: Any) -> Any:
    """A value with JSON texts decoded; ``datasets`` stores columns of mixed types as JSON."""
    if value is None or not _holds_json(kind):
        return value
    if _is_json(kind):
        try:
            return parse_json(value)
        except ValueError:
            return value  # ``datasets`` does not encode texts such as 001
    if pa.types.is_struct(kind):
        return {field.name: _parsed(field.type, value[field.name]) for field in kind}
    if pa.types.is_map(kind):
        return {key: _parsed(kind.item_type, inner) for key, inner in value.items()}
    return [_parsed(kind.value_type, inner) for inner in value]


def _is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and str(kind.extension_name) == "arrow.json"


def _holds_json(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_json(field.type) for field in kind)
    inner = getattr(kind, "item_type" if pa.types.is_map(kind) else "value_type", None)
    return _is_json(kind) or (inner is not None and _holds_json(inner))


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    return any(is_one(kind) for is_one in (types.is_string, types.is_large_string, types.is_integer, types.is_boolean))
