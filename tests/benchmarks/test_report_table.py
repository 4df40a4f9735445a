"""A report as a table and in a notebook: its figures, and nothing that a name of a configuration would do."""

from __future__ import annotations

import pytest

from nlp_retrieval import BenchmarkReport

from .small_benchmark import benchmarker, searchers


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkReport:
    return benchmarker(tmp_path_factory.mktemp("table") / "index", searchers=searchers()).run().report


def test_a_row_for_each_configuration_holds_its_measures_intervals_and_cost(report: BenchmarkReport) -> None:
    rows = report.table().to_arrow().to_pylist()
    assert [row["configuration"] for row in rows] == ["bm25", "dense", "hybrid + overlap"]
    assert [row["baseline"] for row in rows] == [True, False, False]
    for row, result in zip(rows, report.configurations, strict=True):
        assert {name: row[name] for name in result.measures} == result.measures
        for name, (low, high) in result.intervals[""].items():
            assert (row[f"{name}.low"], row[f"{name}.high"]) == (low, high)
        assert result.cost is not None
        assert row["latency_ms"] == result.cost.latency_ms
        assert row["index_bytes"] == result.cost.index_bytes
        assert {name: row[f"stage_ms.{name}"] for name in result.cost.stage_ms} == result.cost.stage_ms
    frame = report.table().to_pandas().set_index("configuration")
    assert frame.loc["dense", "recall@5"] == report.configurations[1].measures["recall@5"]
    assert report.table().to_polars().height == 3
