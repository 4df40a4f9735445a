"""The comparison for other programs: as CSV and as JSON, every figure as it was measured.

A row for each configuration and group of queries; cost is measured over all queries, and stands with them. A name that a
spreadsheet would take for a formula has an apostrophe before it in CSV.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.measure import LABELS
from nlp_retrieval.reports.columns import (
    ANSWER_COLUMNS,
    COST,
    COST_COLUMNS,
    LANGUAGE_MODEL_COLUMNS,
    Column,
)
from nlp_retrieval.reports.view import ReportView
from nlp_retrieval.text.printing import printable

ALL = "all"


def chosen_columns(view: ReportView, names: Sequence[str]) -> list[Column]:
    """Return columns by their names, in the order in which they are named.

    Args:
        view: of a finished benchmark.
        names: each a measure (``recall@5``), a cost (``latency_ms``), a family of them (``recall``, ``cost``) or ``all``; none:
            those of the table in a terminal.

    Raises:
        ConfigurationError: there is no such column.
    """
    chosen: dict[str, Column] = {}
    for name in names:
        found = [column for column in view.columns if name in (column.key, column.family, ALL)]
        if not found:
            known = [ALL, *dict.fromkeys(name for column in view.columns for name in (column.family, column.key))]
            raise ConfigurationError(f"there is no column {name!r}; {nearest(name, known)}")
        chosen |= {column.key: column for column in found}
    return list(chosen.values()) or list(view.summary)


def refuse_unknown_columns(names: Sequence[str], k_values: Sequence[int]) -> None:
    """Refuse columns that no benchmark with these cutoffs has.

    Args:
        names: as for :func:`chosen_columns`.
        k_values: the cutoffs.

    Raises:
        ConfigurationError: there is no such column.
    """
    costs = [column.key for column in (*COST_COLUMNS, *LANGUAGE_MODEL_COLUMNS, *ANSWER_COLUMNS)]
    costs += ["price_per_1000_queries", "price_spent"]
    known = [ALL, COST, *LABELS, *(f"{family}@{k}" for family in LABELS for k in k_values), *costs]
    for name in names:
        if name not in known:
            raise ConfigurationError(f"there is no column {name!r}; {nearest(name, known)}")


def csv_table(view: ReportView, columns: Sequence[Column]) -> str:
    """Return the comparison as CSV, with a heading.

    Args:
        view: of a finished benchmark.
        columns: of figures.
    """
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["queries", "configuration", "baseline", *(column.key for column in columns)])
    for row in _rows(view, columns):
        rows.writerow([_safe(value) for value in row.values()])
    return written.getvalue()


def json_table(view: ReportView, columns: Sequence[Column]) -> str:
    """Return the comparison as a list of objects in JSON; a figure that was not measured is null.

    Args:
        view: of a finished benchmark.
        columns: of figures.
    """
    return json.dumps(list(_rows(view, columns)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rows(view: ReportView, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    for group in view.groups:
        for row in group.rows:
            about = {"queries": printable(group.name or ALL), "configuration": printable(row.result.name)}
            cells = [row.cells[column.key] for column in columns]
            figures = {cell.column.key: None if cell.repeated else cell.value for cell in cells}
            yield about | {"baseline": row.is_baseline} | figures


def _safe(value: object) -> object:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(("=", "+", "-", "@")) else value
    return str(value).lower() if isinstance(value, bool) else value
