"""A benchmark as Parquet: a table of means and comparisons, one of every query, and one of costs.

Quality and cost are in tables of their own: quality can be compared byte by byte between two runs, and times cannot. What
is on a Pareto front depends on times, so it stands with the costs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.evaluation.verdict import verdict
from nlp_retrieval.reports.marks import ALPHA
from nlp_retrieval.reports.view import ReportView, Row, view_of

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

_LANGUAGE_MODEL = pa.schema(
    {
        "calls": pa.int64(),
        "cache_hits": pa.int64(),
        "tokens_in": pa.int64(),
        "tokens_out": pa.int64(),
        "failures": pa.int64(),
        "degraded": pa.int64(),
        "query_tokens_in": pa.float64(),
        "query_tokens_out": pa.float64(),
    }
)
_COSTS = pa.schema(
    [
        ("configuration", pa.string()),
        ("latency_ms", pa.float64()),
        ("latency_p95_ms", pa.float64()),
        ("queries_per_second", pa.float64()),
        ("index_seconds", pa.float64()),
        ("index_bytes", pa.int64()),
        ("index_peak_bytes", pa.int64()),
        ("search_peak_bytes", pa.int64()),
        *_LANGUAGE_MODEL,
        ("price_per_1000_queries", pa.float64()),
        ("price_spent", pa.float64()),
        ("currency", pa.string()),
        ("pareto_latency", pa.bool_()),
        ("pareto_price", pa.bool_()),
    ]
)
_FRONTS = {"latency_ms": "pareto_latency", "price_per_1000_queries": "pareto_price"}


def means_table(report: BenchmarkReport | ReportView) -> pa.Table:
    """Return one row for each configuration, group and measure: its mean, and its comparison with the baseline.

    ``group`` is empty for all queries. What the baseline is not compared in, its own rows, is null.

    Args:
        report: a finished benchmark, or what is shown of it.
    """
    view = view_of(report)
    report = view.report
    rows: list[dict[str, Any]] = []
    for result in report.configurations:
        for group, measures in {"": result.measures, **result.groups}.items():
            for measure, value in measures.items():
                low, high = result.intervals.get(group, {}).get(measure, (None, None))
                row = {"configuration": result.name, "group": group, "measure": measure, "value": value}
                row |= {"queries": report.query_counts.get(group), "low": low, "high": high, "baseline": report.baseline}
                compared = view.comparisons.get((group, measure, result.name))
                rows.append(row | (_compared(compared) if compared is not None else {}))
    return pa.Table.from_pylist(rows, schema=_MEANS)


def costs_table(report: BenchmarkReport | ReportView) -> pa.Table:
    """Return one row for each configuration: its cost, and whether it is on the Pareto fronts of latency and price.

    Null stands where a figure was not measured, no language model was asked, a price is not known, or the configuration has
    no place in a front.

    Args:
        report: a finished benchmark, or what is shown of it.
    """
    view = view_of(report)
    rows = view.groups[0].rows if view.groups else []
    return pa.Table.from_pylist([_cost_row(row, view) for row in rows], schema=_COSTS)


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


def _cost_row(row: Row, view: ReportView) -> dict[str, Any]:
    name, cost, prices = row.result.name, row.result.cost, view.report.prices
    figures: dict[str, Any] = {"configuration": name}
    if cost is None:
        return figures
    figures |= {field: getattr(cost, field) for field in _COSTS.names if hasattr(cost, field)}
    if (asked := cost.language_model) is not None:
        figures |= {field: getattr(asked, field) for field in _LANGUAGE_MODEL.names}
    if row.prices and prices is not None:
        figures |= row.prices | {"currency": prices.currency}
    return figures | {_FRONTS[key]: name in front.names for key, front in view.fronts.items() if name in front.placed}


def _compared(one: Comparison) -> dict[str, Any]:
    taken = ("difference", "p", "p_holm", "comparisons", "effect_size", "wins", "ties", "losses", "families")
    low, high = one.interval
    figures = {field: getattr(one, field) for field in taken}
    return figures | {"difference_low": low, "difference_high": high, "verdict": verdict(one, ALPHA)}
