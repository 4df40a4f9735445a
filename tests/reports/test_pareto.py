"""The Pareto front is the one that comparing every pair gives, and it is marked wherever costs are shown."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.figures import MARK, fronts, not_dominated
from nlp_retrieval.reports.page.page import quality_latency, quality_price, render_page
from nlp_retrieval.reports.tables import latex_table, markdown_table
from nlp_retrieval.reports.terminal import SummaryTable
from nlp_retrieval.reports.view import view_of
from reports.page.test_page import Page

from .report_data import configuration, cost_like, priced_report, report_of, usual_report

CAVEAT = "neighbours on it may differ by chance"


def printed(report: BenchmarkReport, width: int = 120, encoding: str = "utf-8", *, verbose: bool = True) -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict")
    Console(file=file, width=width).print(SummaryTable(view_of(report), verbose=verbose))
    file.flush()
    return file.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined, no-any-return]


def one_line(text: str) -> str:
    return " ".join(text.split())


def of_figures(*rows: tuple[str, float, float]) -> BenchmarkReport:
    """A report of names, recalls and latencies."""
    return report_of(*(configuration(n, {"recall@5": r}, cost=cost_like(ms)) for n, r, ms in rows), k_values=[5])


def on_front(report: BenchmarkReport, cost: str = "latency_ms") -> tuple[str, ...]:
    return fronts(report)[cost].names


# what is on it

FEW = st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float))
MANY = st.tuples(st.floats(0, 1), st.floats(0, 1e6))


@given(st.one_of(st.lists(FEW, max_size=12), st.lists(MANY, max_size=12)))
def test_the_front_is_what_no_other_point_dominates(points: list[tuple[float, float]]) -> None:
    def dominated(point: tuple[float, float]) -> bool:
        return any(q >= point[0] and c <= point[1] and (q > point[0] or c < point[1]) for q, c in points)

    assert not_dominated(points) == [not dominated(point) for point in points]


def test_equal_configurations_are_both_on_the_front() -> None:
    report = of_figures(("a", 0.5, 3.0), ("b", 0.5, 3.0), ("slower", 0.5, 4.0), ("worse", 0.4, 3.0))
    assert on_front(report) == ("a", "b")


def test_what_was_not_measured_has_no_place() -> None:
    report = of_figures(("a", 0.5, 3.0), ("b", 0.6, 4.0), ("lost", float("nan"), 1.0))
    timeless = configuration("timeless", {"recall@5": 0.9}, cost=replace(cost_like(), latency_ms=float("nan")))
    external = replace(configuration("external", {"recall@5": 0.99}), cost=None)
    report = replace(report, configurations=[*report.configurations, timeless, external])
    front = fronts(report)["latency_ms"]
    assert (front.names, front.placed) == (("a", "b"), ("a", "b"))


def test_the_front_of_prices_stands_beside_that_of_latencies() -> None:
    report = priced_report()
    assert on_front(report) == ("bm25", "small", "large")
    assert on_front(report, "price_per_1000_queries") == ("bm25", "dense", "small", "large")


# how it is shown


def test_the_terminal_marks_latencies_on_the_front_once_and_says_what_the_mark_is() -> None:
    text = printed(usual_report())
    table, _, below = text.partition("* baseline")
    marked = [line.split()[0] for line in table.splitlines() if MARK in line]
    assert marked == ["hybrid", "bm25"]
    assert "* baseline, ◆ Pareto front" in printed(usual_report(), verbose=False)
    assert "2.50◆" in table
    assert "31.0◆" in table
    assert "◆ on the Pareto front of Recall@21 and this cost: no other configuration" in one_line(below)
    assert CAVEAT in one_line(below)


def test_tables_in_files_mark_the_front_in_the_rows_of_all_queries() -> None:
    report = usual_report()
    rows = [line for line in markdown_table(report).splitlines() if line.startswith("| all")]
    assert [row.count("◆") for row in rows] == [1, 0, 1]
    assert markdown_table(report).count("◆") == 3  # two figures and the legend
    source = latex_table(report)
    assert source.count(r"\rlap{$^{\diamond}$}") == 2
    assert r"$^{\diamond}$ on the Pareto front of Recall@21" in source
    assert "◆" not in source
    for shown in (markdown_table(report), source):
        assert CAVEAT in one_line(shown)


def test_the_page_marks_the_front_of_each_cost_and_the_chart_steps_through_it() -> None:
    source = render_page(priced_report())
    assert not Page(source).open
    assert source.count('title="on the Pareto front">◆') == 3 + 4
    chart = quality_price(priced_report())
    assert quality_price(usual_report()) == ""
    assert "USD per 1,000 queries (log scale; 0 at the left edge)" in chart
    assert "small: 0.463 for 0.18 USD per 1,000 queries, on the Pareto front" in chart
    draw = [(f"c{place}", 0.3 + 0.37 * ((place * 7) % 11) / 11, 1.0 + (place * 5) % 13) for place in range(11)]
    path = next(re.finditer(r'class="step"[^>]*d="(M[^"]*V[^"]*)"', quality_latency(of_figures(*draw))))[1]
    across = [float(x) for x in re.findall(r"[MH]([\d.]+)", path)]
    up = [float(y) for y in re.findall(r"[,V]([\d.]+)", path)]
    assert len(across) == len(on_front(of_figures(*draw)))
    assert across == sorted(across)
    assert up == sorted(up, reverse=True)
