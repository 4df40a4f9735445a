"""A sweep of two parameters is one heat map, of three one for each value of the third; what is no grid is none."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.reports.page.grids import heat_maps
from nlp_retrieval.reports.page.page import render_page
from reports.report_data import configuration, report_of

from .test_page import Page


def result(name: str, recall: float, **config: Any) -> ConfigurationResult:
    return replace(
        configuration(name, {"recall@5": recall}), config={"name": "searcher", "retrievers": None, "reranker": None} | config
    )


def bm25(k1: float, b: float) -> dict[str, Any]:
    return {"lexical": {"name": "bm25", "k1": k1, "b": b}}


def sweep(*rerankers: Any) -> list[ConfigurationResult]:
    values = product((0.9, 0.4, 1.2), (0.75, 0.3), rerankers)
    return [
        result(f"c{n}", 0.3 + 0.02 * n, retrievers=bm25(k1, b), reranker=reranker) for n, (k1, b, reranker) in enumerate(values)
    ]


def report(*results: ConfigurationResult) -> BenchmarkReport:
    return report_of(*results, k_values=[5])


def test_two_parameters_are_one_map_with_numbers_in_order() -> None:
    heat = heat_maps(report(*sweep(None)))
    assert heat is not None
    assert (heat.rows.path, heat.columns.path, heat.third) == ("retrievers.lexical.b", "retrievers.lexical.k1", None)
    assert (list(heat.rows.labels), list(heat.columns.labels)) == (["0.3", "0.75"], ["0.4", "0.9", "1.2"])
    ((_, rows),) = heat.maps
    shown = {(row, column): cell.name for row, cells in rows for column, cell in zip(heat.columns.labels, cells, strict=True)}
    low, high = (f"c{n}" for n in (3, 1, 5)), (f"c{n}" for n in (2, 0, 4))
    assert shown == dict(zip(product(("0.3", "0.75"), ("0.4", "0.9", "1.2")), [*low, *high], strict=True))
    cells = [cell for _, row in rows for cell in row]
    assert [cell.name for cell in cells if cell.best] == ["c5"]
    assert {cell.level for cell in cells if cell.name in ("c0", "c5")} == {0, 7}


def test_a_third_parameter_makes_a_map_for_each_of_its_values_on_one_scale() -> None:
    heat = heat_maps(report(*sweep(None, {"name": "overlap", "blend": "rank"})))
    assert heat is not None
    assert heat.third is not None
    assert (heat.third.path, list(heat.third.labels)) == ("reranker", ["none", "overlap"])
    assert len(heat.maps) == 2
    names = [cell.name for _, rows in heat.maps for _, row in rows for cell in row]
    assert sorted(names) == sorted(f"c{n}" for n in range(12))
    assert sum(cell.best for _, rows in heat.maps for _, row in rows for cell in row) == 1


def test_what_does_not_fit_is_left_out_and_counted_and_what_was_not_run_is_empty() -> None:
    dense = result("dense", 0.9, retrievers={"dense": {"name": "faiss"}})
    heat = heat_maps(report(dense, *sweep(None)[1:]))
    assert heat is not None
    assert heat.outside == 1
    cells = [cell for _, rows in heat.maps for _, row in rows for cell in row]
    assert [cell.value for cell in cells if cell.position == -1] == [None]
    source = render_page(report(dense, *sweep(None)[1:]))
    assert "1 configuration outside the grid is not shown" in source
    assert not Page(source).open


def test_searchers_without_a_grid_have_no_map() -> None:
    names = ("bm25", "faiss", "colbert", "pyserini", "link_graph")
    unlike = [result(name, 0.3, retrievers={"one": {"name": name}}) for name in names]
    assert heat_maps(report(*unlike)) is None
    assert heat_maps(report(*sweep(None)[:3])) is None
    assert heat_maps(report(*[result(f"k{n}", 0.3, retrievers=bm25(n, 0.4)) for n in range(8)])) is None, "one axis is no grid"
    assert 'id="grid"' not in render_page(report(*unlike))
