"""Quality as Parquet: one table of means and comparisons, one of every query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from nlp_retrieval.benchmarks.marks import ALPHA, by_figure
from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.significance import Comparison
from nlp_retrieval.benchmarks.significance_verdict import verdict

if TYPE_CHECKING:
    from nlp_retrieval.benchmarks.benchmarker import BenchmarkRun

_MEANS = pa.schema(
    {
        "configuration": pa.string(),
        "group": pa.string(),
        "measure": pa.string(),
        "queries": pa.int64(),
        "value": pa.float64(),
        "low": pa.float64(),
        "high": pa.float64(),
        "baseline": pa.string(),
        "difference": pa.float64(),
        "difference_low": pa.float64(),
        "difference_high": pa.float64(),
        "p": pa.float64(),
        "p_holm": pa.float64(),
        "comparisons": pa.int64(),
        "effect_size": pa.float64(),
        "wins": pa.int64(),
        "ties": pa.int64(),
        "losses": pa.int64(),
        "families": pa.int64(),
        "verdict": pa.string(),
    }
)


def means_table(report: BenchmarkReport) -> pa.Table:
    """Return one row for each configuration, group and measure: its mean, and its comparison with the baseline.

    ``group`` is empty for all queries. What the baseline is not compared in, its own rows, is null.

    Args:
        report: a finished benchmark.
    """
    comparisons = by_figure(report)
    rows: list[dict[str, Any]] = []
    for result in report.configurations:
        for group, measures in {"": result.measures, **result.groups}.items():
            for measure, value in measures.items():
                low, high = result.intervals.get(group, {}).get(measure, (None, None))
                row = {"configuration": result.name, "group": group, "measure": measure, "value": value}
                row |= {"queries": report.query_counts.get(group), "low": low, "high": high, "baseline": report.baseline}
                compared = comparisons.get((group, measure, result.name))
                rows.append(row | (_compared(compared) if compared is not None else {}))
    return pa.Table.from_pylist(rows, schema=_MEANS)


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


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as the content of a Parquet file, the same for equal tables."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _compared(one: Comparison) -> dict[str, Any]:
    taken = ("difference", "p", "p_holm", "comparisons", "effect_size", "wins", "ties", "losses", "families")
    low, high = one.interval
    figures = {field: getattr(one, field) for field in taken}
    return figures | {"difference_low": low, "difference_high": high, "verdict": verdict(one, ALPHA)}
