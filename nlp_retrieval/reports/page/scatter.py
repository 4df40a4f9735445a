"""Charts of quality against a cost, with the Pareto front: one point for each configuration.

A line through a point is the 95% interval of a median latency. Rings mark the front, broken rings what is tied with it.
"""

from __future__ import annotations

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.reports.columns import COST_COLUMNS, Column, family_label, price_columns
from nlp_retrieval.reports.page.charts import SHORTEST
from nlp_retrieval.reports.page.drawing import (
    BOTTOM,
    LEFT,
    LINE,
    RING,
    TOP,
    WIDTH,
    Point,
    beside,
    cost_axis,
    finite,
    grid,
    leader,
    marker,
    path,
    placed_labels,
    quality_axis,
    ring,
    svg,
    text_at,
    text_width,
    whisker,
)
from nlp_retrieval.reports.page.labels import labels_of_names
from nlp_retrieval.reports.page.series import SERIES_END, foremost, named_last, series
from nlp_retrieval.reports.pareto import fronts, latency_interval, not_dominated
from nlp_retrieval.text.printing import printable

_LEGEND = 20.0


def quality_latency(report: BenchmarkReport) -> str:
    """Return recall at the largest cutoff against median latency, with the Pareto front; ``""`` where nothing was measured.

    Args:
        report: a finished benchmark.
    """
    (latency,) = (column for column in COST_COLUMNS if column.key == "latency_ms")
    return _quality_against(report, latency, "latency", ("median latency", "median latency, ms", "in {} ms"))


def quality_price(report: BenchmarkReport) -> str:
    """Return recall at the largest cutoff against the price of 1,000 queries; ``""`` where no price is known.

    Args:
        report: a finished benchmark.
    """
    found = price_columns(report)
    if not found or report.prices is None:
        return ""
    currency = report.prices.currency
    said = ("price", f"{currency} per 1,000 queries", f"for {{}} {currency} per 1,000 queries")
    return _quality_against(report, found[0], "price", said)


def _quality_against(report: BenchmarkReport, cost: Column, name: str, said: tuple[str, str, str]) -> str:
    """One labelled point per configuration; those on the front are ringed, and a line steps from one to the next."""
    k = max(report.k_values, default=0)
    points = {
        place: (value, dear)
        for place, result in enumerate(report.configurations)
        if (value := finite(result.measures.get(f"recall@{k}"))) is not None and (dear := cost.value(result)) is not None
    }
    if not points:
        return ""
    what, x_title, of_point = said
    spans = {place: _interval(report.configurations[place], cost) for place in points}
    on_front, ties = _front(points), _ties(report, cost)
    named = foremost(report, {place: value for place, (value, _) in points.items()}, on_front)
    height, right = max(SHORTEST, LINE * len(named) + TOP + BOTTOM), WIDTH - 10
    y = quality_axis([value for value, _ in points.values()], height)
    x = cost_axis([dear for _, dear in points.values()] + [end for span in spans.values() if span for end in span], right)
    heading = f"{family_label('recall')} at {k}"
    edge = "; 0 at the left edge" if any(dear <= 0 for _, dear in points.values()) else ""
    body = grid(x, y, right, height, heading, f"{x_title} (log scale{edge})")
    marks = {place: (x.at(dear), y.at(value)) for place, (value, dear) in points.items()}
    if on_front:
        body += [
            _steps([marks[place] for place in on_front]),
            *_front_legend(height + _LEGEND / 2, ties=bool(ties & set(points))),
        ]
    labels = labels_of_names([result.name for result in report.configurations])
    # what is named finds a place for its label in the order of its importance
    area = (LEFT + 2, TOP - 6, WIDTH, height - BOTTOM - 1)
    label_places = placed_labels({place: marks[place] for place in named}, dict(enumerate(labels)), area)
    told = {}
    for place in named_last(points, named):
        value, dear = points[place]
        also = ", on the Pareto front" if place in on_front else ", tied with the Pareto front" if place in ties else ""
        span = spans[place]
        between = f" ({cost.text(span[0])} to {cost.text(span[1])})" if span else ""
        figures = f"{value:.3f} {of_point.format(cost.text(dear) + between)}"
        told[place] = f"{printable(report.configurations[place].name)}: {figures}{also}"
        px, py = marks[place]
        body += [series(place, told[place], place in named), marker(place, px, py)]
        body += [whisker(x.at(span[0]), x.at(span[1]), py)] if span else []
        if also:
            body += [ring(px, py, "ring" if place in on_front else "tie")]
        body += [*_label((px, py), labels[place], label_places.get(place)), SERIES_END]
    description = "; ".join(told[place] for place in points)
    return svg(f"chart-{name}", f"{heading} against {what}", description, height + (_LEGEND if on_front else 0), body)


def _interval(result: ConfigurationResult, cost: Column) -> tuple[float, float] | None:
    return latency_interval(result) if cost.key == "latency_ms" else None


def _ties(report: BenchmarkReport, cost: Column) -> set[int]:
    front = fronts(report).get(cost.key)
    return {place for place, one in enumerate(report.configurations) if front is not None and one.name in front.tied}


def _label(mark: Point, text: str, place: Point | None) -> list[Markup]:
    """A name at its place, with a line to its point where it is apart; without a place, for when it is pointed at."""
    (px, py), width = mark, text_width(text)
    if place is None:
        is_left = px + RING + 4 + width > WIDTH
        at = px - RING - 4 if is_left else px + RING + 4
        return [text_at(at, py, text, anchor="end" if is_left else "start", role="label extra")]
    left, middle = place
    apart = abs(middle - py) > 1 and not left < px < left + width
    line = [leader(px, py, left - 2 if left > px else left + width + 2, middle)] if apart else []
    return [*line, beside(px, left, middle, text)]


def _front(points: dict[int, tuple[float, float]]) -> list[int]:
    """Return which points are on the front, the cheapest first; none where there is nothing to compare."""
    if len(points) < 2:
        return []
    on_front = [place for place, on in zip(points, not_dominated(list(points.values())), strict=True) if on]
    return sorted(on_front, key=lambda place: points[place][1])


def _steps(marks: list[tuple[float, float]]) -> Markup:
    """Return the best quality to be had for each cost: level from a point to the next, and then up."""
    (x, y), *others = marks
    return path("step", f"M{x:.1f},{y:.1f}" + "".join(f"H{px:.1f}V{py:.1f}" for px, py in others), dash="5 3")


def _front_legend(y: float, *, ties: bool) -> list[Markup]:
    said, x = "Pareto front of the values measured", LEFT + 2 * RING + 30
    tied = [ring(WIDTH - 100, y, "tie"), text_at(WIDTH - 88, y, "tied with it", anchor="start")] if ties else []
    steps = path("step", f"M{LEFT + 2 * RING:.1f},{y:.1f}h24", dash="5 3")
    return [ring(LEFT + RING, y), steps, text_at(x, y, said, anchor="start"), *tied]
