"""Configurations worth their cost: the Pareto front of quality and a cost.

Quality is the main measure over all queries; cost is median latency, and the price of language models if known. A
configuration is on the front when no other is at least as good in both and better in one, by the values as measured and not
as printed; of equal ones, all are on it. Configurations without one of the two values are left out, and with fewer than two
left there is no front. Neighbours on a front may differ by chance. A configuration off the front of latencies is tied with
it if it cannot be distinguished from one on it: their intervals of the median latency overlap, and the test of all pairs does
not distinguish their quality.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.evaluation.comparison import verdict
from nlp_retrieval.evaluation.evaluator import Measure
from nlp_retrieval.reports.columns import COST_COLUMNS, Column, price_columns
from nlp_retrieval.reports.marks import ALPHA

MARK = "\N{BLACK DIAMOND}"
ASCII_MARK = "#"
TIE = "\N{WHITE DIAMOND}"
ASCII_TIE = "~"


@dataclass(frozen=True)
class Front:
    """A Pareto front.

    Args:
        measure: the measure of quality, such as ``"recall@20"``.
        cost: the column of the cost.
        names: the configurations on it, in the order of the report.
        placed: the configurations that have both values.
        tied: those off the front that cannot be distinguished from one on it.
    """

    measure: str
    cost: Column
    names: tuple[str, ...]
    placed: tuple[str, ...]
    tied: tuple[str, ...] = ()


def not_dominated(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each point whether no other is at least as good in both values and better in one.

    Args:
        points: quality (more is better) and cost (less is better); finite.
    """
    found = [False] * len(points)
    last: tuple[float, float] | None = None
    for place in sorted(range(len(points)), key=lambda place: (points[place][1], -points[place][0])):
        if last is None or points[place][0] > last[0] or points[place] == last:
            found[place] = True
            last = points[place]
    return found


def fronts(report: BenchmarkReport) -> dict[str, Front]:
    """Return the fronts by the key of their cost: ``"latency_ms"``, and ``"price_per_1000_queries"`` if prices are known.

    Args:
        report: a finished benchmark.
    """
    measure = report.main_measure
    quality = Column(measure, Measure.parse(measure).family, measure)
    found = {}
    for cost in [*(column for column in COST_COLUMNS if column.key == "latency_ms"), *price_columns(report)[:1]]:
        values = {result.name: (quality.value(result), cost.value(result)) for result in report.configurations}
        points = {name: (good, dear) for name, (good, dear) in values.items() if good is not None and dear is not None}
        if len(points) > 1:
            on_front = not_dominated(list(points.values()))
            names = tuple(name for name, on in zip(points, on_front, strict=True) if on)
            tied = _tied(report, names, tuple(points)) if cost.key == "latency_ms" else ()
            found[cost.key] = Front(measure, cost, names, tuple(points), tied)
    return found


def latency_interval(result: ConfigurationResult) -> tuple[float, float] | None:
    """Return the interval of a median latency in milliseconds; None if unknown."""
    cost = result.cost
    if cost is None or cost.latency_low_ms is None or cost.latency_high_ms is None:
        return None
    return cost.latency_low_ms, cost.latency_high_ms


def _tied(report: BenchmarkReport, names: Sequence[str], placed: Sequence[str]) -> tuple[str, ...]:
    pairwise = report.pairwise
    if pairwise is None or pairwise.measure != report.main_measure:
        return ()
    both = pairwise.both_ways()
    spans = {one.name: span for one in report.configurations if (span := latency_interval(one)) is not None}

    def alike(one: str, other: str) -> bool:
        if one not in spans or other not in spans or (one, other) not in both:
            return False
        (low, high), (other_low, other_high) = spans[one], spans[other]
        return low <= other_high and other_low <= high and verdict(both[one, other], ALPHA) == "not distinguishable"

    return tuple(name for name in placed if name not in names and any(alike(name, other) for other in names))


def front_legend(report: BenchmarkReport, mark: str) -> str:
    """Return the meaning of a front's mark; ``""`` if there is no front.

    Args:
        report: a finished benchmark.
        mark: the mark shown.
    """
    if not fronts(report):
        return ""
    ties, tie = any(front.tied for front in fronts(report).values()), {MARK: TIE, ASCII_MARK: ASCII_TIE}[mark]
    measure = Measure.parse(report.main_measure).label.replace(" @", "@")
    return (
        f"{mark} on the Pareto front of {measure} and this cost: no other configuration is at least as good in both and "
        "better in one. The front is of the values measured; neighbours on it may differ by chance."
    ) + (
        f" {tie} tied with one on it: latency intervals overlap, and the test does not tell their quality apart."
        if ties
        else ""
    )
