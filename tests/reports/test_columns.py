from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nlp_retrieval.benchmarks.results import BenchmarkReport

from .report_data import configuration, measures_like, printed, report_of, usual_report


def figures(text: str) -> list[str]:
    return re.findall(r"\d[\d,]*\.\d+|\d[\d,]+", text)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(width: int) -> None:
    report = usual_report()
    text = printed(report, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    largest = f"{report.configurations[2].measures['recall@21']:.3f}"
    assert largest in text
    (row,) = (line for line in text.partition("configuration")[2].splitlines() if line.startswith("hybrid "))
    left_out = re.search(r"(\d+) columns? left out", text)
    assert len(figures(row)) + int(left_out[1] if left_out else 0) == 11, "those of groups are columns too"
    whole = {f"{v:.3f}" for r in report.configurations for m in (r.measures, *r.groups.values()) for v in m.values()}
    table = text.partition("configuration")[2]
    assert {figure for figure in figures(table) if re.fullmatch(r"0\.\d+", figure)} <= whole


def test_the_best_is_first_and_its_groups_follow_it_in_the_same_row() -> None:
    report = usual_report()
    lines = printed(report, 140).splitlines()
    assert lines[0].startswith("hybrid has the highest Recall@21 ")
    rows = [line for line in lines if line.split()[:1] and line.split()[0] in ("bm25", "dense", "hybrid")][1:]
    assert [row.split()[0] for row in rows] == ["hybrid", "bm25", "dense"]
    hybrid = report.configurations[2]
    of_groups = [hybrid.measures, hybrid.groups["hops=2"], hybrid.groups["hops=3"]]
    assert figures(rows[0])[:3] == [f"{measures['recall@21']:.3f}" for measures in of_groups]
    heading = " ".join(printed(report, 140).partition("configuration")[0].split())
    assert "all hops=2 hops=3" in heading
    assert re.search("n=1,200 +n=700 +n=500", printed(report, 140))


def with_grid(report: BenchmarkReport, values: dict[str, dict[str, str | int]]) -> BenchmarkReport:
    return replace(report, manifest=report.manifest | {"grid": {"axes": {}, "values": values}})


def test_axes_of_a_grid_are_columns_in_place_of_names() -> None:
    names = ["rrf, k=10", "rrf, k=60", "sum, k=10", "sum, k=60"]
    levels = [0.2, 0.4, 0.3, 0.5]
    report = report_of(
        configuration("bm25", measures_like(0.1)),
        *(configuration(name, measures_like(level)) for name, level in zip(names, levels, strict=True)),
    )
    values = {name: {"fusion": name[:3], "k": int(name[-2:])} for name in names}
    text = printed(with_grid(report, values), 80)
    table = text.partition("configuration")[2].partition("* baseline,")[0]
    assert not any(name in table for name in names)
    rows = [line.split()[:2] for line in table.splitlines()[2:] if line]
    assert rows == [["sum", "60"], ["rrf", "60"], ["sum", "10"], ["rrf", "10"], ["bm25", "*"]]
    assert "sum, k=60" in " ".join(printed(with_grid(report, values), 30).split()), "there is no room for axes"


def test_a_terminal_of_ascii_gets_marks_of_ascii() -> None:
    text = printed(usual_report(), 100, "ascii")
    assert all(said in text for said in ("|  31.0#|", "|  24.0 |", "# Pareto front"))
