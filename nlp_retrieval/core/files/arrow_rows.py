"""Parquet files within bounds, and rows of Arrow batches as JSON objects: checked for damage, and converted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nlp_retrieval.core.files.opening import open_regular
from nlp_retrieval.core.files.records import LEAVE_OUT, MAX_ENTRY, JsonObject, plain_value, too_long
from nlp_retrieval.errors import SourceError

BATCH = 256
"""Rows at a time: few, because a row may be a whole book."""

# A few kilobytes of Parquet may stand for gigabytes: a page may be compressed a thousandfold, and one long text may be that of
# all rows. So the sizes in the footer are compared before the data are read, and a table is read in parts.

_LARGEST_UNPACKED = 2**28
"""Bytes of a column in a row group that may be packed more than ``_MOST_PACKED`` times."""
_MOST_PACKED = 200
_ORDINARY = 10
"""How many times text is packed at most, as a rule; of more, few rows are read at a time."""
_LARGEST_TABLE = 2**31


def open_parquet(source: str | Path) -> tuple[pq.ParquetFile, int]:
    """Open a Parquet file, and say how many rows to read at a time; ArrowInvalid for none, or one that unpacks to much more."""
    open_regular(Path(source)).close()  # Arrow would wait for a pipe
    file = pq.ParquetFile(source, pre_buffer=False, buffer_size=2**20)
    rows = BATCH
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    for column in (group.column(number) for group in groups for number in range(group.num_columns)):
        unpacked, packed = column.total_uncompressed_size, max(column.total_compressed_size, 1)
        if unpacked > max(_LARGEST_UNPACKED, _MOST_PACKED * packed):
            file.close()
            raise pa.ArrowInvalid(
                f"column {column.path_in_schema!r} unpacks from {packed:,} bytes to {unpacked:,}; is it what it should be?"
            )
        if unpacked > _ORDINARY * packed:  # any of its values may be as long as all of them together
            rows = min(rows, max(1, MAX_ENTRY // unpacked))
    return file, rows


def read_parquet(path: str | Path) -> pa.Table:
    """Return a Parquet file as a table of at most 2 GiB; ArrowInvalid for none, or a larger one."""
    file, rows = open_parquet(path)
    batches: list[pa.RecordBatch] = []
    size = 0
    with file:
        for batch in file.iter_batches(16 * rows):
            size += batch.nbytes
            if size > _LARGEST_TABLE:
                raise pa.ArrowInvalid(f"it takes more than {_LARGEST_TABLE >> 30} GiB")
            batches.append(batch)
        return pa.Table.from_batches(batches, file.schema_arrow).combine_chunks()


def rows_of_batches(source: str, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, JsonObject]]:
    """Yield the rows of batches, each with its location: ``items.parquet, row 17``; SourceError for any fault."""
    number = 0
    try:
        for batch in batches:
            batch.validate(full=True)  # untrusted data may have offsets outside its memory
            odd = [(field.name, field.type) for field in batch.schema if not _is_plain(field.type)]
            whole = _in_microseconds(batch)
            for part in [whole] if whole.nbytes <= MAX_ENTRY else (whole.slice(row, 1) for row in range(len(whole))):
                if part.nbytes > MAX_ENTRY:
                    raise too_long(f"{source}, row {number + 1}")
                for row in part.to_pylist(maps_as_pydicts="strict"):
                    number += 1
                    location = f"{source}, row {number}"
                    for column, kind in odd:
                        row[column] = plain_value(location, column, _as_written(kind, row[column]))
                    yield location, row
    except SourceError:
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{source}: damaged after row {number} ({str(error)[:200]}); fetch or write it again") from error
    except (OverflowError, ValueError, LookupError) as error:  # a date after the year 9999, a key twice in a map
        raise SourceError(
            f"{source}, row {number + 1} or soon after: a value that Python has no form for ({str(error)[:200]}); {LEAVE_OUT}"
        ) from None


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with times in microseconds, the finest that Python knows; so they are the same with and without pandas."""
    for position, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            coarser = pa.timestamp("us", field.type.tz)
        elif field.type == pa.time64("ns"):
            coarser = pa.time64("us")
        else:
            continue
        batch = batch.set_column(position, field.name, batch.column(position).cast(coarser, safe=False))
    return batch


def _as_written(kind: pa.DataType, value: Any) -> Any:
    """A value in which 0.7 in single precision is 0.7."""
    if isinstance(value, list) and hasattr(kind, "value_type"):
        return [_as_written(kind.value_type, inner) for inner in value]
    if isinstance(value, dict) and (pa.types.is_struct(kind) or pa.types.is_map(kind)):
        kinds = {field.name: field.type for field in kind} if pa.types.is_struct(kind) else {}
        return {key: _as_written(kinds[key] if kinds else kind.item_type, inner) for key, inner in value.items()}
    is_short = isinstance(value, float) and pa.types.is_floating(kind) and kind != pa.float64()
    return float(str(kind.to_pandas_dtype()(value))) if is_short else value


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    return any(is_one(kind) for is_one in (types.is_string, types.is_large_string, types.is_integer, types.is_boolean))
