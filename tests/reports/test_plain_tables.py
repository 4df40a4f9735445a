"""The comparison as CSV and JSON holds every figure as it was measured, and only what was asked for."""

from __future__ import annotations

import csv
import io
import json

import pytest

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.reports.tables import chosen_columns, csv_table, json_table
from nlp_retrieval.reports.view import view_of

from .report_data import configuration, cost_like, report_of, usual_report


def test_csv_and_json_hold_the_same_figures_in_full() -> None:
    view = view_of(usual_report())
    columns = chosen_columns(view, ["all"])
    assert columns == list(view.columns)
    told = json.loads(json_table(view, columns))
    rows = list(csv.DictReader(io.StringIO(csv_table(view, columns))))
    assert len(told) == len(rows) == 9
    for one, row in zip(told, rows, strict=True):
        assert list(one) == list(row)
        result = next(result for result in view.report.configurations if result.name == one["configuration"])
        group = "" if one["queries"] == "all" else one["queries"]
        assert one["recall@5"] == (result.groups[group] if group else result.measures)["recall@5"] == float(row["recall@5"])
        assert one["latency_ms"] == (None if group else result.cost.latency_ms if result.cost else None)
        assert one["baseline"] == (one["configuration"] == "bm25") == (row["baseline"] == "true")


def test_columns_are_chosen_by_name_and_family_in_the_order_given() -> None:
    view = view_of(usual_report())
    assert [column.key for column in chosen_columns(view, ["latency_ms", "ndcg", "recall@5", "ndcg@5"])] == [
        "latency_ms",
        "ndcg@5",
        "ndcg@10",
        "ndcg@21",
        "recall@5",
    ]
    assert chosen_columns(view, []) == list(view.summary)
    with pytest.raises(ConfigurationError, match="no column 'recal@5'; did you mean 'recall@5'"):
        chosen_columns(view, ["recal@5"])


def test_names_are_no_formulas_and_no_commands() -> None:
    view = view_of(report_of(configuration('=cmd|"/c calc"\x1b', {"recall@5": 0.5}, cost=cost_like()), k_values=[5]))
    (row,) = csv.DictReader(io.StringIO(csv_table(view, chosen_columns(view, ["recall@5"]))))
    assert row["configuration"] == '\'=cmd|"/c calc"\N{REPLACEMENT CHARACTER}'
