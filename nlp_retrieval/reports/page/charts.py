"""Charts as inline SVG, without a plotting library.

Colours come from the page's custom properties through classes (``series-0`` to ``series-7``), so that one SVG serves
light and dark; without the page's style sheet everything is drawn in the text's colour. A series is told apart by
marker and dash too, and what is on a Pareto front by a ring. What was not measured is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.reports.columns import COST_COLUMNS, Column, family_label, price_columns
from nlp_retrieval.reports.page.drawing import (
    BOTTOM,
    LEFT,
    LINE,
    RING,
    TOP,
    WIDTH,
    beside,
    cost_axis,
    cutoff_axis,
    finite,
    grid,
    label_of,
    leader,
    marker,
    path,
    placed_labels,
    quality_axis,
    ring,
    spread,
    svg,
    text_at,
    text_width,
)
from nlp_retrieval.reports.pareto import not_dominated
from nlp_retrieval.text.printable import printable

_COLOURS = 8
_SHORTEST = 272.0
_LEGEND = 20.0
_SERIES_END = Markup("</g>")
_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2")


def recall_curves(report: BenchmarkReport, measure: str = "recall") -> str:
    """Return one curve per configuration over the cutoffs, all queries; ``""`` where nothing was measured.

    Args:
        report: a finished benchmark.
        measure: a measure with values between 0 and 1, without its cutoff: ``"recall"``, ``"perfect_recall"``.
    """
    found = {
        place: [(k, finite(result.measures.get(f"{measure}@{k}"))) for k in report.k_values]
        for place, result in enumerate(report.configurations)
    }
    curves = {place: kept for place, points in found.items() if (kept := [(k, v) for k, v in points if v is not None])}
    if not curves:
        return ""
    labels = {place: label_of(report.configurations[place].name) for place in curves}
    right = WIDTH - 26 - max(text_width(label) for label in labels.values())
    height = max(_SHORTEST, LINE * len(curves) + TOP + BOTTOM)
    y = quality_axis([value for points in curves.values() for _, value in points], height)
    x = cutoff_axis(report.k_values, right - 8)
    body = grid(x, y, right, height, family_label(measure), "cutoff k" + (" (log scale)" if x.logarithmic else ""))
    order = sorted(curves, key=lambda place: y.at(curves[place][-1][1]))
    label_heights = spread([y.at(curves[place][-1][1]) for place in order], LINE, TOP, height - BOTTOM)
    for place, label_y in zip(order, label_heights, strict=True):
        marks = [(x.at(k), y.at(value)) for k, value in curves[place]]
        title = f"{printable(report.configurations[place].name)}: " + _series_text(curves[place])
        body += [_series(place, title)]
        line = "L".join(f"{px:.1f},{py:.1f}" for px, py in marks)
        dash = _DASHES[place % len(_DASHES)]
        body += [path("curve", f"M{line}", dash=dash)]
        body += [marker(place, px, py) for px, py in marks]
        body += [leader(marks[-1][0] + 6, marks[-1][1], right + 18, label_y)]
        body += [text_at(right + 22, label_y, labels[place], anchor="start"), _SERIES_END]
    said = "; ".join(f"{report.configurations[place].name}: {_series_text(points)}" for place, points in curves.items())
    return svg(f"chart-{measure}", f"{family_label(measure)} over the cutoff k", said, height, body)


def quality_latency(report: BenchmarkReport, measure: str = "recall") -> str:
    """Return quality at the largest cutoff against median latency, with the Pareto front; ``""`` where nothing was measured.

    Args:
        report: a finished benchmark.
        measure: a measure with values between 0 and 1, without its cutoff.
    """
    (latency,) = (column for column in COST_COLUMNS if column.key == "latency_ms")
    return _quality_against(report, measure, latency, "latency", ("median latency", "median latency, ms", "in {} ms"))


def quality_price(report: BenchmarkReport, measure: str = "recall") -> str:
    """Return quality at the largest cutoff against the price of 1,000 queries; ``""`` where no price is known.

    Args:
        report: a finished benchmark.
        measure: a measure with values between 0 and 1, without its cutoff.
    """
    found = price_columns(report)
    if not found or report.prices is None:
        return ""
    currency = report.prices.currency
    said = ("price", f"{currency} per 1,000 queries", f"for {{}} {currency} per 1,000 queries")
    return _quality_against(report, measure, found[0], "price", said)


def _quality_against(report: BenchmarkReport, measure: str, cost: Column, name: str, said: tuple[str, str, str]) -> str:
    """One labelled point per configuration; those on the front are ringed, and a line steps from one to the next."""
    k = max(report.k_values, default=0)
    points = {
        place: (value, dear)
        for place, result in enumerate(report.configurations)
        if (value := finite(result.measures.get(f"{measure}@{k}"))) is not None and (dear := cost.value(result)) is not None
    }
    if not points:
        return ""
    what, x_title, of_point = said
    height = max(_SHORTEST, LINE * len(points) + TOP + BOTTOM)
    right = WIDTH - 10
    y = quality_axis([value for value, _ in points.values()], height)
    x = cost_axis([dear for _, dear in points.values()], right)
    heading = f"{family_label(measure)} at {k}"
    edge = "; 0 at the left edge" if any(dear <= 0 for _, dear in points.values()) else ""
    on_front = _front(points)
    # what is on the front gets its label first
    in_order = dict.fromkeys([*on_front, *points])
    marks = {place: (x.at(points[place][1]), y.at(points[place][0])) for place in in_order}
    body = grid(x, y, right, height, heading, f"{x_title} (log scale{edge})")
    if on_front:
        body += [_steps([marks[place] for place in on_front]), *_front_legend(height + _LEGEND / 2)]
    texts = {place: label_of(report.configurations[place].name) for place in points}
    label_places = placed_labels(marks, texts, (LEFT + 2, TOP - 6, WIDTH, height - BOTTOM - 1))
    told = []
    for place, (value, dear) in points.items():
        px, py = marks[place]
        also = ", on the Pareto front" if place in on_front else ""
        told.append(f"{printable(report.configurations[place].name)}: {value:.3f} {of_point.format(cost.text(dear))}{also}")
        body += [_series(place, told[-1]), marker(place, px, py)]
        if place in on_front:
            body += [ring(px, py)]
        if place in label_places:
            left, middle = label_places[place]
            if abs(middle - py) > 1 and not left < px < left + text_width(texts[place]):
                body += [leader(px, py, left - 2 if left > px else left + text_width(texts[place]) + 2, middle)]
            body += [beside(px, left, middle, texts[place])]
        body += [_SERIES_END]
    return svg(f"chart-{name}", f"{heading} against {what}", "; ".join(told), height + (_LEGEND if on_front else 0), body)


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


def _front_legend(y: float) -> list[Markup]:
    return [
        ring(LEFT + RING, y),
        path("step", f"M{LEFT + 2 * RING:.1f},{y:.1f}h24", dash="5 3"),
        text_at(LEFT + 2 * RING + 30, y, "Pareto front of the values measured", anchor="start"),
    ]


def stage_bar(stage_ms: Mapping[str, float], stages: Sequence[str]) -> Markup:
    """Return one stacked bar of the stages' shares of their sum, decorative beside the figures it shows.

    Args:
        stage_ms: milliseconds by stage.
        stages: all stages of the report; the place of a stage gives its colour.
    """
    times = [max(0.0, finite(stage_ms.get(stage)) or 0.0) for stage in stages]
    whole, left, rects = sum(times) or 1.0, 0.0, []
    for place, time in enumerate(times):
        share = 100 * time / whole
        rect = Markup('<rect class="{}" fill="currentColor" x="{:.2f}" width="{:.2f}" height="10"/>')
        rects.append(rect.format(series_class(place), left, share))
        left += share
    bar = Markup('<svg class="stage-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{}</svg>')
    return bar.format(Markup().join(rects))


def _series(place: int, title: str) -> Markup:
    """Begin what is drawn in one colour."""
    return Markup('<g class="series-{}"><title>{}</title>').format(place % _COLOURS, title)


def series_class(place: int) -> str:
    """Return the class that colours a series; where colours come round again they are paler."""
    return f"series-{place % _COLOURS}" + (" again" if place // _COLOURS % 2 else "")


def _series_text(points: list[tuple[int, float]]) -> str:
    return ", ".join(f"{value:.3f} at {k}" for k, value in points)


def interval_scale(compared: Sequence[Comparison]) -> tuple[float, float]:
    """Return the lowest and the highest difference that intervals to be drawn beneath one another reach, 0 among them."""
    ends = [bound for one in compared for bound in (0.0, *one.interval)]
    return min(ends, default=0.0), max(ends, default=0.0)


def interval_drawing(one: Comparison, scale: tuple[float, float], borne_out: bool) -> Markup:
    """Draw an interval with its difference; decorative beside the figures. The point is hollow where it may be chance."""
    low, high = scale
    width, height, margin = 280.0, 16.0, 6.0
    per = (width - 2 * margin) / (high - low) if high > low else 0.0
    zero, left, right, at = (margin + (value - low) * per for value in (0.0, *one.interval, one.difference))
    middle = height / 2
    drawn = Markup('<svg class="interval" viewBox="0 0 {:.0f} {:.0f}" aria-hidden="true">{}{}{}</svg>')
    circle = f"M{at - 3.5:.1f},{middle:.0f}a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z"
    return drawn.format(
        width,
        height,
        path("zero", f"M{zero:.1f},0V{height:.0f}", fill=""),
        path("span", f"M{left:.1f},{middle:.0f}H{right:.1f}", fill=""),
        path("point" if borne_out else "hollow point", circle, fill="currentColor"),
    )
