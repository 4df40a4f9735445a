"""A benchmark as Parquet: the measures of every query. Quality alone, so that two runs can be compared byte by byte."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from nlp_retrieval.benchmarks.results import BenchmarkRun


def per_query_table(run: BenchmarkRun) -> pa.Table:
    """Return one row for each configuration and query, with a column for each measure.

    ``family`` and ``group`` are null where the query has none.

    Args:
        run: a finished run.
    """
    tables = []
    for name, measures in run.per_query.items():
        about = {
            "configuration": pa.array([name] * len(run.query_ids), pa.string()),
            "query_id": pa.array(run.query_ids, pa.string()),
            "family": pa.array(run.families, pa.string()),
            "group": pa.array(run.query_groups, pa.string()),
        }
        tables.append(pa.table(about | {measure: pa.array(values) for measure, values in measures.items()}))
    return pa.concat_tables(tables)


def parquet_bytes(table: pa.Table, notes: Sequence[str] = ()) -> bytes:
    """Return a table as the content of a Parquet file, the same for equal tables.

    Args:
        table: what to write.
        notes: what must be known of its figures; kept in the metadata of the file, under ``notes``, as a list in JSON.
    """
    if notes:
        told = {b"notes": json.dumps(list(notes), ensure_ascii=False).encode()}
        table = table.replace_schema_metadata((table.schema.metadata or {}) | told)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written
