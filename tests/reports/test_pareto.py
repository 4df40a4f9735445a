"""The Pareto front is the one that comparing every pair gives, and it is marked wherever costs are shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.figures import fronts, not_dominated

from .report_data import configuration, cost_like, report_of


def of_figures(*rows: tuple[str, float, float]) -> BenchmarkReport:
    """A report of names, recalls and latencies."""
    return report_of(*(configuration(n, {"recall@5": r}, cost=cost_like(ms)) for n, r, ms in rows), k_values=[5])


FEW = st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float))
MANY = st.tuples(st.floats(0, 1), st.floats(0, 1e6))


@given(st.one_of(st.lists(FEW, max_size=12), st.lists(MANY, max_size=12)))
def test_the_front_is_what_no_other_point_dominates(points: list[tuple[float, float]]) -> None:
    def dominated(point: tuple[float, float]) -> bool:
        return any(q >= point[0] and c <= point[1] and (q > point[0] or c < point[1]) for q, c in points)

    assert not_dominated(points) == [not dominated(point) for point in points]


def test_equal_configurations_are_both_on_the_front() -> None:
    report = of_figures(("a", 0.5, 3.0), ("b", 0.5, 3.0), ("slower", 0.5, 4.0), ("worse", 0.4, 3.0))
    assert fronts(report)["latency_ms"].names == ("a", "b")
