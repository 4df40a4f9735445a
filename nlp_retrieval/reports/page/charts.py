"""Charts as inline SVG, without a plotting library.

Configurations are numbered; the page has a legend. Colours come from the page's custom properties through classes (``series-0``
to ``series-7``), so that one SVG serves light and dark; curves also differ in dash. Values not measured are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.evaluation.abstention import risk_coverage
from nlp_retrieval.evaluation.comparison import Comparison, verdict
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.figures import (
    COST_COLUMNS,
    Column,
    best_first,
    family_label,
    fronts,
    latency_interval,
    price_columns,
)
from nlp_retrieval.text.printing import printable

WIDTH, HEIGHT = 560.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 34.0, 28.0, 44.0
COLOURS, _GAP, _SMALLEST_SPAN = 8, 13.0, 0.1
_CURVES, _FEWEST = 4, 20
_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2")
_STEPS = (0.02, 0.05, 0.1, 0.2, *(digit * 10.0**power for power in range(-1, 16) for digit in (5, 10, 20)))

Point = tuple[float, float]


@dataclass(frozen=True)
class ChartAxis:
    """A scale from values to pixels, with equal steps for equal ratios if it is logarithmic."""

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[float]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value, in pixels."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def finite(value: float | None) -> float | None:
    """Return a value that can be drawn; None if it is missing, infinite or not a number."""
    return value if value is not None and math.isfinite(value) else None


def quality_axis(values: Sequence[float]) -> ChartAxis:
    """Return a vertical scale with round ticks that spans a tenth or more: a small difference must not fill the chart."""
    low, high = min(values), max(values)
    step = next(step for step in _STEPS if max(high - low, _SMALLEST_SPAN) / step <= 6 or step == _STEPS[-1])
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    while (last - first) * step < _SMALLEST_SPAN - 1e-9:
        at_top = (last + 1) * step > 1 + 1e-9
        first, last = (first - 1, last) if first > 0 and at_top else (first, last + 1)
    ticks = [round(number * step, 2) for number in range(first, last + 1)]
    return ChartAxis(ticks[0], ticks[-1], HEIGHT - BOTTOM, TOP, ticks)


def steps_axis(values: Sequence[float]) -> ChartAxis:
    """Return a horizontal scale of whole numbers, which are its ticks; logarithmic if the largest is ten times the smallest."""
    low, high = min(values), max(values)
    logarithmic = low > 0 and high / low > 10
    axis = ChartAxis(low, max(high, low + 1), LEFT + 8, WIDTH - RIGHT - 8, values, logarithmic)
    ticks: list[float] = []
    for value in sorted(values, reverse=True):  # if labels would touch, the largest keeps its own
        if not ticks or axis.at(ticks[-1]) - axis.at(value) > 28:
            ticks.append(value)
    return ChartAxis(axis.low, axis.high, axis.start, axis.end, ticks, logarithmic)


def cost_axis(values: Sequence[float]) -> ChartAxis:
    """Return a horizontal logarithmic scale of at least one decade; a cost of 0 is at the left end."""
    positive = [value for value in values if value > 0]
    low = min(positive, default=0.1) / (1.6 if len(positive) == len(values) else 10)
    high = max(positive, default=1.0) * 1.6
    if high / low < 10:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [tick for decade in decades for digit in (1, 2, 5) if low <= (tick := digit * 10.0**decade) <= high]
    if len(ticks) > 7:
        ticks = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    return ChartAxis(low, high, LEFT + 8, WIDTH - RIGHT, ticks, True)


def line_chart(name: str, title: str, axes: tuple[str, str], curves: Mapping[str, Sequence[Point]]) -> Markup:
    """Return a chart of one numbered curve for each name."""
    y = quality_axis([value for points in curves.values() for _, value in points])
    x = steps_axis(sorted({step for points in curves.values() for step, _ in points}))
    body = _frame(x, y, axes[0], axes[1] + (" (log scale)" if x.logarithmic else ""))
    drawn = [(place, label, points) for place, (label, points) in enumerate(curves.items()) if points]
    ends = sorted(((place, points) for place, _, points in drawn), key=lambda pair: y.at(pair[1][-1][1]))
    heights = dict(zip((place for place, _ in ends), _spread([y.at(points[-1][1]) for _, points in ends]), strict=True))
    said = []
    for place, label, points in drawn:
        marks = [(x.at(step), y.at(value)) for step, value in points]
        course = "M" + "L".join(f"{px:.1f},{py:.1f}" for px, py in marks)
        said.append(f"{printable(label)}: {', '.join(f'{value:.3f} at {step:g}' for step, value in points[:12])}")
        body += [series(place, said[-1]), path("curve", course, dash=_DASHES[place % len(_DASHES)])]
        body += [path("leader", f"M{marks[-1][0]:.1f},{marks[-1][1]:.1f}L{WIDTH - RIGHT + 2:.1f},{heights[place]:.1f}")]
        body += [text_at(WIDTH - RIGHT + 6, heights[place], str(place + 1), "start", "number"), Markup("</g>")]
    return svg(name, title, "; ".join(said), body)


def over_cutoffs(report: BenchmarkReport) -> Markup:
    """Return one curve per configuration over the cutoffs of the main measure, best first; empty if it has fewer than two."""
    family = Measure.parse(report.main_measure).family
    curves: dict[str, list[Point]] = {}
    for result in best_first(report):
        measures = {Measure.parse(key): finite(value) for key, value in result.measures.items()}
        points = [(measure.cutoff, value) for measure, value in measures.items() if measure.family == family and measure.cutoff]
        curves[result.name] = sorted((float(k), value) for k, value in points if value is not None)
    if max(map(len, curves.values()), default=0) < 2:
        return Markup()
    return line_chart("chart-cutoffs", f"{family_label(family)} over the cutoff k", (family_label(family), "cutoff k"), curves)


def over_coverage(report: BenchmarkReport, lists: RunLists, per_query: Mapping[str, Mapping[str, Scores]]) -> Markup:
    """Return the loss of the best over the share of queries answered, by the score of the first hit; empty for few queries."""
    measure, curves, said = report.main_measure, dict[str, list[Point]](), ""
    label = Measure.parse(measure).label
    for place, result in enumerate(best_first(report)):
        values, listing = per_query.get(result.name, {}).get(measure), lists.listings.get(result.name)
        curves[result.name] = []
        if values is None or listing is None or place >= _CURVES or len(values) < _FEWEST:
            continue
        found = np.diff(listing.offsets) > 0
        sure = np.full(len(values), listing.scores.min(initial=0.0) - 1)  # the least where nothing was found
        sure[found] = listing.scores[listing.offsets[:-1][found]]
        curve = risk_coverage(sure, values)
        curves[result.name] = [(float(share), curve.at(share / 100)) for share in range(10, 101, 10)]
        said = said or (
            f"{printable(result.name)}: {label} is {1 - curve.at(0.5):.3f} over the half of the queries whose first hit scores "
            f"highest, and {1 - curve.at(1.0):.3f} over all; the area under its curve is {curve.area:.3f}"
        )
    if not said:
        return Markup()
    title = f"Risk, 1 - {label}, over the share of queries answered"
    chart = line_chart("chart-coverage", title, (f"risk: 1 - {label}", "% of queries answered, surest first"), curves)
    return Markup("{}<figcaption>{}.</figcaption>").format(chart, said)


def quality_latency(report: BenchmarkReport) -> Markup:
    """Return the main measure against median latency, with the Pareto front; empty if nothing was measured."""
    (latency,) = (column for column in COST_COLUMNS if column.key == "latency_ms")
    return _quality_against(report, latency, "latency", ("median latency, ms", "in {} ms"))


def quality_price(report: BenchmarkReport) -> Markup:
    """Return the main measure against the price of 1,000 queries; empty if no price is known."""
    prices = price_columns(report)
    if not prices or report.prices is None:
        return Markup()
    currency = report.prices.currency
    texts = f"{currency} per 1,000 queries", f"for {{}} {currency} per 1,000 queries"
    return _quality_against(report, prices[0], "price", texts)


def _quality_against(report: BenchmarkReport, cost: Column, name: str, texts: tuple[str, str]) -> Markup:
    """A numbered point for each configuration, the best first; the Pareto front is a stepped line."""
    ranked = best_first(report)
    points = {
        place: (value, dear)
        for place, result in enumerate(ranked)
        if (value := finite(result.measures.get(report.main_measure))) is not None and (dear := cost.value(result)) is not None
    }
    if not points:
        return Markup()
    spans = {place: latency_interval(ranked[place]) if cost.key == "latency_ms" else None for place in points}
    y = quality_axis([value for value, _ in points.values()])
    x = cost_axis([dear for _, dear in points.values()] + [end for span in spans.values() if span for end in span])
    heading = Measure.parse(report.main_measure).label
    body = _frame(x, y, heading, f"{texts[0]} (log scale{'; 0 at the left edge' if min(points.values())[1] <= 0 else ''})")
    front = fronts(report).get(cost.key)
    on_front = [place for place in points if front is not None and ranked[place].name in front.names]
    steps = sorted((x.at(points[place][1]), y.at(points[place][0])) for place in on_front)
    if steps:
        body += [path("step", f"M{steps[0][0]:.1f},{steps[0][1]:.1f}" + "".join(f"H{px:.1f}V{py:.1f}" for px, py in steps[1:]))]
        body += [path("step", f"M{WIDTH - 120:.1f},9h24"), text_at(WIDTH - 90, 9, "Pareto front", "start")]
    said = {}
    for place, (value, dear) in sorted(points.items(), reverse=True):
        (px, py), span = (x.at(dear), y.at(value)), spans[place]
        also = ", on the Pareto front" if place in on_front else ""
        between = f" ({cost.text(span[0])} to {cost.text(span[1])})" if span else ""
        said[place] = f"{printable(ranked[place].name)}: {value:.3f} {texts[1].format(cost.text(dear) + between)}{also}"
        whisker = [path("whisker", f"M{x.at(span[0]):.1f},{py:.1f}H{x.at(span[1]):.1f}")] if span else []
        body += [series(place, said[place]), *whisker, numbered(place, px, py), Markup("</g>")]
    return svg(f"chart-{name}", f"{heading} against {texts[0]}", "; ".join(said[place] for place in points), body)


def _frame(x: ChartAxis, y: ChartAxis, y_title: str, x_title: str) -> list[Markup]:
    """Lines, ticks and titles of two scales."""
    cut = " (axis does not start at 0)" if y.low > 0 else ""
    parts = [text_at(2, 9, y_title + cut, "start", "axis-title")]
    step = y.ticks[1] - y.ticks[0]
    for tick in y.ticks:
        parts += [path("grid", f"M{LEFT:.1f},{y.at(tick):.1f}H{WIDTH - RIGHT:.1f}")]
        parts += [text_at(LEFT - 6, y.at(tick), f"{tick:,.{2 if step < 0.1 else 1 if step < 1 else 0}f}")]
    for tick in x.ticks:
        parts += [path("tick", f"M{x.at(tick):.1f},{HEIGHT - BOTTOM:.1f}v5")]
        parts += [text_at(x.at(tick), HEIGHT - BOTTOM + 14, f"{tick:,.10g}", "middle")]
    return [*parts, text_at(WIDTH / 2, HEIGHT - 8, x_title, "middle", "axis-title")]


def _spread(wanted: Sequence[float]) -> list[float]:
    """Ascending heights, moved apart in one pass down and one up."""
    gap = min(_GAP, (HEIGHT - TOP - BOTTOM) / max(1, len(wanted)))
    places: list[float] = []
    for height in wanted:
        places.append(max(height, places[-1] + gap) if places else height)
    limit = HEIGHT - BOTTOM
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - gap
    return places


def path(role: str, course: str, dash: str = "") -> Markup:
    """Return a line of a class, in the colour of its series."""
    drawn = Markup('<path class="{}" fill="none" stroke="currentColor"{} d="{}"/>')
    return drawn.format(role, Markup(' stroke-dasharray="{}"').format(dash) if dash else "", course)


def numbered(place: int, x: float, y: float) -> Markup:
    """Return the point of a series: its number, from 1, in a disc."""
    drawn = Markup('<circle fill="currentColor" cx="{:.1f}" cy="{:.1f}" r="9"/>{}')
    return drawn.format(x, y, text_at(x, y, str(place + 1), "middle", "inside"))


def text_at(x: float, y: float, text: str, anchor: str = "end", role: str = "label") -> Markup:
    """Return text at a point, vertically centred; ``anchor`` is the end of the text at that point."""
    drawn = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" dy="0.35em" text-anchor="{}">{}</text>')
    return drawn.format(role, x, y, anchor, text)


def series(place: int, title: str) -> Markup:
    """Begin a group of elements in one colour."""
    return Markup('<g class="series-{}" data-series="{}"><title>{}</title>').format(place % COLOURS, place, title)


def svg(name: str, title: str, description: str, body: Sequence[Markup]) -> Markup:
    """Return a drawing with its title and its content in words."""
    drawn = Markup(
        '<svg class="chart" role="img" viewBox="0 0 {:.0f} {:.0f}" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{}</title><desc id="{name}-desc">{}</desc>{}</svg>'
    )
    return drawn.format(WIDTH, HEIGHT, title, printable(description), Markup().join(body), name=name)


def stage_bar(stage_ms: Mapping[str, float], stages: Sequence[str], longest: float) -> Markup:
    """Return a stacked bar of the milliseconds of each stage; ``longest`` fills the width."""
    left, rects = 0.0, []
    for place, stage in enumerate(stages):
        share = 100 * max(0.0, finite(stage_ms.get(stage)) or 0.0) / (longest or 1.0)
        rect = Markup('<rect class="series-{}" fill="currentColor" x="{:.2f}" width="{:.2f}" height="10"/>')
        rects.append(rect.format(place % COLOURS, left, share))
        left += share
    bar = Markup('<svg class="stage-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{}</svg>')
    return bar.format(Markup().join(rects))


def interval_plot(comparison: Comparison, others: Sequence[Comparison]) -> Markup:
    """Return a difference with its interval on a scale for several; the point is hollow where it may be chance."""
    ends = [bound for other in (comparison, *others) for bound in (0.0, *other.interval)]
    low, high = min(ends), max(ends)

    def at(value: float) -> float:
        return 6 + (value - low) * (100 / (high - low) if high > low else 0.0)

    hollow = Markup(' class="hollow"') if verdict(comparison) == "not distinguishable" else ""
    drawn = Markup(
        '<svg class="interval" viewBox="0 0 112 16" aria-hidden="true"><path class="zero" d="M{:.1f},0V16"/>'
        '<path d="M{:.1f},8H{:.1f}"/><circle{} cx="{:.1f}" cy="8" r="3.5"/></svg>'
    )
    return drawn.format(at(0.0), *map(at, comparison.interval), hollow, at(comparison.difference))
