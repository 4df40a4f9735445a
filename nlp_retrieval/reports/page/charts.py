"""Charts as inline SVG, without a plotting library.

Colours come from the page's custom properties through classes (``series-0`` to ``series-7``), so that one SVG serves
light and dark; without the page's style sheet everything is drawn in the text's colour. Series also differ in
marker and dash, and a ring marks the Pareto front. Values not measured are left out. With many series,
the baseline, those on a front and the best five are labelled; the others are paler, and labelled on hover.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.reports.figures import (
    COST_COLUMNS,
    Column,
    family_label,
    fronts,
    latency_interval,
    not_dominated,
    price_columns,
)
from nlp_retrieval.text.printing import printable

WIDTH = 420.0
LEFT = 38.0
TOP = 30.0
BOTTOM = 44.0
LINE = 15.0
RING = 7.0

_APART = RING + 4
_DIGIT = 7.0
_WIDTHS = {**dict.fromkeys("ijl.,:;'|! ", 4.2), **dict.fromkeys("ftr-()[]/", 5.2), **dict.fromkeys("mwMW@%—…", 12.0)}
_SMALLEST_SPAN = 0.1

_MARKERS = (
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "M-3.6,-3.6H3.6V3.6H-3.6Z",
    "M0,-4.6L4.4,3.4H-4.4Z",
    "M0,-5L5,0L0,5L-5,0Z",
    "M0,4.6L4.4,-3.4H-4.4Z",
    "M-1.5,-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",
    "M0,-2.1L2.6,-4.7L4.7,-2.6L2.1,0L4.7,2.6L2.6,4.7L0,2.1L-2.6,4.7L-4.7,2.6L-2.1,0L-4.7,-2.6L-2.6,-4.7Z",
)

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class ChartAxis:
    """A scale from values to pixels.

    Args:
        low: the lowest value; positive for a logarithmic scale.
        high: the highest value, more than ``low``.
        start: position of ``low``, in pixels.
        end: position of ``high``.
        ticks: values with labels.
        logarithmic: whether equal steps are equal ratios.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[float]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value, in pixels."""
        low, high = self.low, self.high
        value = min(max(value, low), high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def finite(value: float | None) -> float | None:
    """Return a value that can be drawn; None if it is missing, infinite or not a number."""
    return value if value is not None and math.isfinite(value) else None


def quality_axis(values: list[float], height: float) -> ChartAxis:
    """Return a scale with round ticks that spans a tenth or more: a small difference must not fill the chart."""
    low, high = min(values), max(values)
    step = next((step for step in (0.02, 0.05, 0.1, 0.2) if (max(high - low, _SMALLEST_SPAN)) / step <= 6), 0.2)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    while (last - first) * step < _SMALLEST_SPAN - 1e-9:
        above, below = last * step - high, low - first * step
        grow_down = first > 0 and (below < above or (last + 1) * step > 1 + 1e-9)
        first, last = (first - 1, last) if grow_down else (first, last + 1)
    ticks = [round(number * step, 2) for number in range(first, last + 1)]
    return ChartAxis(ticks[0], ticks[-1], height - BOTTOM, TOP, ticks)


def cutoff_axis(k_values: list[int], right: float) -> ChartAxis:
    """Return a scale with the cutoffs as ticks, logarithmic if the largest is more than ten times the smallest."""
    low, high = min(k_values), max(k_values)
    if low == high:
        return ChartAxis(low - 1, high + 1, LEFT + 8, right, k_values)
    logarithmic = high / low > 10
    axis = ChartAxis(low, high, LEFT + 8, right, k_values, logarithmic)
    ticks: list[float] = []
    for k in sorted(k_values, reverse=True):  # if labels would touch, the largest cutoff keeps its own
        if not ticks or axis.at(ticks[-1]) - axis.at(k) > _DIGIT * (len(str(k)) + len(str(int(ticks[-1])))) / 2 + 6:
            ticks.append(k)
    return ChartAxis(low, high, LEFT + 8, right, ticks, logarithmic)


def cost_axis(values: list[float], right: float) -> ChartAxis:
    """Return a logarithmic scale of at least one decade; a cost of 0 is at the left end."""
    positive = [value for value in values if value > 0]
    low = min(positive, default=0.1) / (1.6 if len(positive) == len(values) else 10)
    high = max(positive, default=1.0) * 1.6
    if high / low < 10:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [digit * 10.0**decade for decade in decades for digit in (1, 2, 5)]
    ticks = [tick for tick in ticks if low <= tick <= high]
    if len(ticks) > 7:
        ticks = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    return ChartAxis(low, high, LEFT + 8, right, ticks, True)


def grid(x: ChartAxis, y: ChartAxis, right: float, height: float, y_title: str, x_title: str) -> list[Markup]:
    """Return lines, ticks and titles of two scales."""
    bottom = height - BOTTOM
    cut = " (axis does not start at 0)" if y.low > 0 else ""
    parts = [text_at(2, 10, y_title + cut, anchor="start", role="axis-title")]
    for tick in y.ticks:
        parts += [path("grid", f"M{LEFT:.1f},{y.at(tick):.1f}H{right:.1f}", fill="")]
        parts += [text_at(LEFT - 6, y.at(tick), f"{tick:.2f}" if y.ticks[1] - y.ticks[0] < 0.1 else f"{tick:.1f}")]
    for tick in x.ticks:
        parts += [path("tick", f"M{x.at(tick):.1f},{bottom:.1f}v5", fill="")]
        parts += [text_at(x.at(tick), bottom + 14, f"{tick:,.10g}", anchor="middle")]
    return [*parts, text_at((LEFT + right) / 2, height - 8, x_title, anchor="middle", role="axis-title")]


def spread(wanted: list[float], gap: float, top: float, bottom: float) -> list[float]:
    """Return ascending heights, moved apart to a distance of ``gap`` between two limits, in one pass down and one up."""
    places: list[float] = []
    for height in wanted:
        places.append(max(height, places[-1] + gap) if places else max(height, top + gap / 2))
    limit = bottom - gap / 2
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - gap
    return places


def placed_labels(marks: dict[int, Point], texts: dict[int, str], area: Box) -> dict[int, Point]:
    """Find a free place for each label near its point: left edge and middle. A label without one is shown only on hover."""
    occupied: list[Box] = [(x - RING, y - RING, x + RING, y + RING) for x, y in marks.values()]
    places = {}
    far = sorted((step * LINE / 2 for step in range(-80, 81)), key=abs)
    for position, (x, y) in marks.items():
        width = text_width(texts[position])
        right, left_of = x + _APART, x - _APART - width
        beside = [(right, 0.0), (left_of, 0.0), (x - width / 2, -LINE), (x - width / 2, LINE)]
        free = (
            (left, y + offset, box)
            for left, offset in [*beside, *((left, offset) for offset in far for left in (right, left_of))]
            if _inside(box := (left, y + offset - LINE / 2, left + width, y + offset + LINE / 2), area)
            and not any(_overlap(box, other) for other in occupied)
        )
        if found := next(free, None):
            places[position] = found[:2]
            occupied.append(found[2])
    return places


def _inside(box: Box, area: Box) -> bool:
    return box[0] >= area[0] and box[1] >= area[1] and box[2] <= area[2] and box[3] <= area[3]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def text_width(text: str) -> float:
    """Estimate pixels by the widest common font: overestimating a label is better than two that touch."""
    return sum(_WIDTHS.get(char, _character_width(char)) for char in text)


def _character_width(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 13.0
    return 7.6 if char.isascii() and not char.isupper() else 9.0


def path(role: str, course: str, fill: str = "none", dash: str = "") -> Markup:
    """Return a line in the colour of its series."""
    styles = {"fill": fill, "stroke": "currentColor", "stroke-dasharray": dash, "d": course}
    attributes = Markup(" ").join(Markup('{}="{}"').format(key, value) for key, value in styles.items() if value)
    return Markup('<path class="{}" {}/>').format(role, attributes)


def marker(position: int, x: float, y: float) -> Markup:
    """Return the marker of a series at a point."""
    shape = _MARKERS[position % len(_MARKERS)]
    return Markup('<path class="marker" fill="currentColor" transform="translate({:.1f} {:.1f})" d="{}"/>').format(x, y, shape)


def ring(x: float, y: float, role: str = "ring") -> Markup:
    """Return a ring around the marker at a point; ``role`` is its class."""
    round_ = f"a{RING:.0f},{RING:.0f} 0 1,0"
    return path(role, f"M{x - RING:.1f},{y:.1f}{round_} {2 * RING:.0f},0{round_} {-2 * RING:.0f},0Z")


def whisker(left: float, right: float, y: float) -> Markup:
    """Return an interval from left to right, with its ends marked."""
    return path("whisker", f"M{left:.1f},{y:.1f}H{right:.1f}M{left:.1f},{y - 3:.1f}v6M{right:.1f},{y - 3:.1f}v6")


def beside(px: float, left: float, middle: float, text: str) -> Markup:
    """Return a label whose edge towards the point is at the planned position, whatever the width of the font."""
    width = text_width(text)
    if left > px:
        return text_at(left, middle, text, anchor="start")
    if left + width < px:
        return text_at(left + width, middle, text, anchor="end")
    return text_at(left + width / 2, middle, text, anchor="middle")


def leader(x1: float, y1: float, x2: float, y2: float) -> Markup:
    """Return a thin line from a point to its label."""
    return path("leader", f"M{x1:.1f},{y1:.1f}L{x2:.1f},{y2:.1f}")


def text_at(x: float, y: float, text: str, anchor: str = "end", role: str = "label") -> Markup:
    """Return text at a point, vertically centred; ``anchor`` is the end of the text at that point."""
    drawn = Markup('<text class="{}" x="{:.1f}" y="{:.1f}" dy="0.35em" text-anchor="{}">{}</text>')
    return drawn.format(role, x, y, anchor, text)


def svg(name: str, title: str, description: str, height: float, body: list[Markup]) -> Markup:
    """Return a drawing."""
    drawn = Markup(
        '<svg class="chart" role="img" viewBox="0 0 {:.0f} {:.0f}" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{}</title><desc id="{name}-desc">{}</desc>{}</svg>'
    )
    return drawn.format(WIDTH, height, title, printable(description), Markup().join(body), name=name)


DOTS = "\N{MIDDLE DOT}" * 3
LONGEST = 24
"""Maximum characters."""

_PARTS = re.compile(r"\w+|\W+")


def labels_of_names(names: Sequence[str]) -> list[str]:
    """Return a label for each name, of at most 24 characters, or slightly more if only numbers distinguish labels."""
    names = list(map(printable, names))
    parts = [_PARTS.findall(name) for name in names]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    labels = [name if len(name) <= LONGEST else _without(own, shared) for name, own in zip(names, parts, strict=True)]
    for label, count in Counter(labels).items():
        if count > 1:
            alike = [position for position, own in enumerate(labels) if own == label]
            for position, text in zip(alike, _distinguished([names[position] for position in alike]), strict=True):
                labels[position] = text
    counts = Counter(labels)
    return [label if counts[label] == 1 else f"{label} {position + 1}" for position, label in enumerate(labels)]


def _without(parts: Sequence[str], shared: set[str]) -> str:
    """The name with runs of shared parts removed, longest first, until it is short enough; otherwise cut in its middle."""
    parts = list(parts)
    while sum(map(len, parts)) > LONGEST:
        runs = [run for run in _runs(parts, shared) if sum(map(len, parts[slice(*run)])) > len(DOTS)]
        if not runs:
            break
        begin, end = max(runs, key=lambda run: sum(map(len, parts[slice(*run)])))
        parts[begin:end] = [DOTS]
    return _cut("".join(parts))


def _runs(parts: Sequence[str], shared: set[str]) -> list[tuple[int, int]]:
    """Return the start and end of runs of shared parts."""
    edges = [
        position
        for position in range(len(parts) + 1)
        if _is_shared(parts, position, shared) != _is_shared(parts, position - 1, shared)
    ]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _is_shared(parts: Sequence[str], position: int, shared: set[str]) -> bool:
    return 0 <= position < len(parts) and parts[position] in shared


def _cut(text: str) -> str:
    half = (LONGEST - len(DOTS)) // 2
    return text if len(text) <= LONGEST else f"{text[: LONGEST - len(DOTS) - half]}{DOTS}{text[-half:]}"


def _distinguished(names: Sequence[str]) -> list[str]:
    """Return each name without the beginning and the end that all of them share."""
    begin = _shared_start(names)
    rests = [name[begin:] for name in names]
    end = _shared_start([rest[::-1] for rest in rests])
    room = LONGEST - 2 * len(DOTS)
    labels = []
    for name, rest in zip(names, rests, strict=True):
        differing = rest[: len(rest) - end] if end else rest
        differing = differing if len(differing) <= room else f"{differing[: room - len(DOTS)]}{DOTS}"
        lead = max(0, room - len(differing))
        labels.append(f"{name[:lead]}{DOTS}{differing}" if begin > lead else f"{name[:begin]}{differing}")
    return labels


def _shared_start(texts: Sequence[str]) -> int:
    """Return the length of the texts' common prefix."""
    differing = (position for position, characters in enumerate(zip(*texts, strict=False)) if len(set(characters)) > 1)
    return next(differing, min(map(len, texts)))


SERIES_END = Markup("</g>")

_COLOURS = 8
_FEW, _BEST = 12, 5


def most_important(report: BenchmarkReport, values: Mapping[int, float], first: Sequence[int] = ()) -> list[int]:
    """Return the positions of the configurations to label in a chart, the most important first.

    Args:
        report: a finished benchmark.
        values: the values drawn, by position; more is better.
        first: positions that come right after the baseline; by default those on a front of the report.
    """
    names = [result.name for result in report.configurations]
    on_fronts = {name for front in fronts(report).values() for name in front.names}
    baseline = [position for position in values if names[position] == report.baseline]
    best = sorted(values, key=lambda position: -values[position])
    others = [position for position in best if names[position] in on_fronts]
    order = [position for position in dict.fromkeys([*baseline, *(first or others), *best[:_BEST]]) if position in values]
    return list(dict.fromkeys([*order, *values])) if len(values) <= _FEW else order


def named_last(places: Iterable[int], named: Collection[int]) -> list[int]:
    """Return positions in drawing order: labelled series are drawn over the others."""
    return sorted(places, key=lambda position: (position in named, position))


def series(position: int, title: str, is_named: bool) -> Markup:
    """Begin a group of elements in one colour."""
    role = f"series-{position % _COLOURS}" + ("" if is_named else " rest")
    return Markup('<g class="{}" data-series="{}"><title>{}</title>').format(role, position, title)


def series_class(position: int) -> str:
    """Return the colour class of a series; repeated colours are paler."""
    return f"series-{position % _COLOURS}" + (" again" if position // _COLOURS % 2 else "")


def series_key(position: int) -> Markup:
    """Return the marker of a series, for a list of names."""
    drawn = Markup('<svg class="key series-{}" viewBox="-6 -6 12 12" aria-hidden="true">{}</svg>')
    return drawn.format(position % _COLOURS, marker(position, 0, 0))


SHORTEST = 272.0

_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2")


def recall_curves(report: BenchmarkReport, measure: str = "recall") -> str:
    """Return one curve per configuration over the cutoffs, all queries; ``""`` if nothing was measured.

    Args:
        report: a finished benchmark.
        measure: a measure with values between 0 and 1, without its cutoff: ``"recall"``, ``"perfect_recall"``.
    """
    measured = {
        position: [(k, finite(result.measures.get(f"{measure}@{k}"))) for k in report.k_values]
        for position, result in enumerate(report.configurations)
    }
    curves = {position: kept for position, points in measured.items() if (kept := [(k, v) for k, v in points if v is not None])}
    if not curves:
        return ""
    labels = labels_of_names([result.name for result in report.configurations])
    named = most_important(report, {position: points[-1][1] for position, points in curves.items()})
    right = WIDTH - 26 - max(text_width(labels[position]) for position in curves)
    height = max(SHORTEST, LINE * len(named) + TOP + BOTTOM)
    y = quality_axis([value for points in curves.values() for _, value in points], height)
    x = cutoff_axis(report.k_values, right - 8)
    body = grid(x, y, right, height, family_label(measure), "cutoff k" + (" (log scale)" if x.logarithmic else ""))
    order = sorted(named, key=lambda position: y.at(curves[position][-1][1]))
    heights = spread([y.at(curves[position][-1][1]) for position in order], LINE, TOP, height - BOTTOM)
    label_heights = dict(zip(order, heights, strict=True))
    for position in named_last(curves, named):
        marks = [(x.at(k), y.at(value)) for k, value in curves[position]]
        title = f"{printable(report.configurations[position].name)}: " + _series_text(curves[position])
        body += [series(position, title, position in named)]
        line = "L".join(f"{px:.1f},{py:.1f}" for px, py in marks)
        dash = _DASHES[position % len(_DASHES)]
        body += [path("curve", f"M{line}", dash=dash)]
        body += [marker(position, px, py) for px, py in marks]
        if position in named:
            body += [leader(marks[-1][0] + 6, marks[-1][1], right + 18, label_heights[position])]
        role = "label" if position in named else "label extra"
        label_y = label_heights.get(position, marks[-1][1])
        body += [text_at(right + 22, label_y, labels[position], anchor="start", role=role), SERIES_END]
    description = "; ".join(
        f"{report.configurations[position].name}: {_series_text(points)}" for position, points in curves.items()
    )
    return svg(f"chart-{measure}", f"{family_label(measure)} over the cutoff k", description, height, body)


def stage_bar(stage_ms: Mapping[str, float], stages: Sequence[str], longest: float) -> Markup:
    """Return one stacked bar of the stages, which illustrates the figures next to it.

    Args:
        stage_ms: milliseconds by stage.
        stages: all stages of the report; a stage's position determines its colour.
        longest: milliseconds for the full width; shared by the bars of one report.
    """
    left, rects = 0.0, []
    for position, stage in enumerate(stages):
        share = 100 * stage_time(stage_ms, stage) / (longest or 1.0)
        rect = Markup('<rect class="{}" fill="currentColor" x="{:.2f}" width="{:.2f}" height="10"/>')
        rects.append(rect.format(series_class(position), left, share))
        left += share
    bar = Markup('<svg class="stage-bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{}</svg>')
    return bar.format(Markup().join(rects))


def _series_text(points: list[tuple[int, float]]) -> str:
    return ", ".join(f"{value:.3f} at {k}" for k, value in points)


def stage_time(stage_ms: Mapping[str, float], stage: str) -> float:
    """Return the milliseconds of a stage; 0 if it was not measured."""
    return max(0.0, finite(stage_ms.get(stage)) or 0.0)


def interval_scale(compared: Sequence[Comparison]) -> tuple[float, float]:
    """Return the lowest and the highest difference in a column of intervals, including 0."""
    ends = [bound for comparison in compared for bound in (0.0, *comparison.interval)]
    return min(ends, default=0.0), max(ends, default=0.0)


def interval_course(comparison: Comparison, scale: tuple[float, float]) -> dict[str, str]:
    """Return the drawing positions of 0, the ends of an interval and its difference, for a width of 280."""
    low, high = scale
    per = 268 / (high - low) if high > low else 0.0
    places = {"zero": 0.0, "left": comparison.interval[0], "right": comparison.interval[1], "point": comparison.difference}
    return {name: f"{6 + (value - low) * per:.1f}" for name, value in places.items()}


# Charts of quality against a cost, with the Pareto front: one point for each configuration.
#
# A line through a point is the 95% interval of a median latency. Rings mark the front, broken rings points tied with it.

_LEGEND = 20.0


def quality_latency(report: BenchmarkReport) -> str:
    """Return recall at the largest cutoff against median latency, with the Pareto front; ``""`` if nothing was measured."""
    (latency,) = (column for column in COST_COLUMNS if column.key == "latency_ms")
    return _quality_against(report, latency, "latency", ("median latency", "median latency, ms", "in {} ms"))


def quality_price(report: BenchmarkReport) -> str:
    """Return recall at the largest cutoff against the price of 1,000 queries; ``""`` if no price is known."""
    prices = price_columns(report)
    if not prices or report.prices is None:
        return ""
    currency = report.prices.currency
    texts = ("price", f"{currency} per 1,000 queries", f"for {{}} {currency} per 1,000 queries")
    return _quality_against(report, prices[0], "price", texts)


def _quality_against(report: BenchmarkReport, cost: Column, name: str, texts: tuple[str, str, str]) -> str:
    """One labelled point per configuration; those on the front are ringed, and connected by a stepped line."""
    k = max(report.k_values, default=0)
    points = {
        position: (value, dear)
        for position, result in enumerate(report.configurations)
        if (value := finite(result.measures.get(f"recall@{k}"))) is not None and (dear := cost.value(result)) is not None
    }
    if not points:
        return ""
    what, x_title, of_point = texts
    spans = {position: _interval(report.configurations[position], cost) for position in points}
    on_front, ties = _front(points), _ties(report, cost)
    named = most_important(report, {position: value for position, (value, _) in points.items()}, on_front)
    height, right = max(SHORTEST, LINE * len(named) + TOP + BOTTOM), WIDTH - 10
    y = quality_axis([value for value, _ in points.values()], height)
    x = cost_axis([dear for _, dear in points.values()] + [end for span in spans.values() if span for end in span], right)
    heading = f"{family_label('recall')} at {k}"
    edge = "; 0 at the left edge" if any(dear <= 0 for _, dear in points.values()) else ""
    body = grid(x, y, right, height, heading, f"{x_title} (log scale{edge})")
    marks = {position: (x.at(dear), y.at(value)) for position, (value, dear) in points.items()}
    if on_front:
        body += [
            _steps([marks[position] for position in on_front]),
            *_front_legend(height + _LEGEND / 2, ties=bool(ties & set(points))),
        ]
    labels = labels_of_names([result.name for result in report.configurations])
    # labels are placed in order of importance
    area = (LEFT + 2, TOP - 6, WIDTH, height - BOTTOM - 1)
    label_places = placed_labels({position: marks[position] for position in named}, dict(enumerate(labels)), area)
    titles = {}
    for position in named_last(points, named):
        value, dear = points[position]
        also = ", on the Pareto front" if position in on_front else ", tied with the Pareto front" if position in ties else ""
        span = spans[position]
        between = f" ({cost.text(span[0])} to {cost.text(span[1])})" if span else ""
        figures = f"{value:.3f} {of_point.format(cost.text(dear) + between)}"
        titles[position] = f"{printable(report.configurations[position].name)}: {figures}{also}"
        px, py = marks[position]
        body += [series(position, titles[position], position in named), marker(position, px, py)]
        body += [whisker(x.at(span[0]), x.at(span[1]), py)] if span else []
        if also:
            body += [ring(px, py, "ring" if position in on_front else "tie")]
        body += [*_label((px, py), labels[position], label_places.get(position)), SERIES_END]
    description = "; ".join(titles[position] for position in points)
    return svg(f"chart-{name}", f"{heading} against {what}", description, height + (_LEGEND if on_front else 0), body)


def _interval(result: ConfigurationResult, cost: Column) -> tuple[float, float] | None:
    return latency_interval(result) if cost.key == "latency_ms" else None


def _ties(report: BenchmarkReport, cost: Column) -> set[int]:
    front = fronts(report).get(cost.key)
    return {
        position for position, result in enumerate(report.configurations) if front is not None and result.name in front.tied
    }


def _label(mark: Point, text: str, position: Point | None) -> list[Markup]:
    """A name at its place, with a line to its point if it is apart; without a place, it is shown on hover."""
    (px, py), width = mark, text_width(text)
    if position is None:
        is_left = px + RING + 4 + width > WIDTH
        at = px - RING - 4 if is_left else px + RING + 4
        return [text_at(at, py, text, anchor="end" if is_left else "start", role="label extra")]
    left, middle = position
    apart = abs(middle - py) > 1 and not left < px < left + width
    line = [leader(px, py, left - 2 if left > px else left + width + 2, middle)] if apart else []
    return [*line, beside(px, left, middle, text)]


def _front(points: dict[int, tuple[float, float]]) -> list[int]:
    """Return the points on the front, cheapest first; empty if there is nothing to compare."""
    if len(points) < 2:
        return []
    on_front = [position for position, on in zip(points, not_dominated(list(points.values())), strict=True) if on]
    return sorted(on_front, key=lambda position: points[position][1])


def _steps(marks: list[tuple[float, float]]) -> Markup:
    """Return the best quality available at each cost, as a step function."""
    (x, y), *others = marks
    return path("step", f"M{x:.1f},{y:.1f}" + "".join(f"H{px:.1f}V{py:.1f}" for px, py in others), dash="5 3")


def _front_legend(y: float, *, ties: bool) -> list[Markup]:
    text, x = "Pareto front of the values measured", LEFT + 2 * RING + 30
    tied = [ring(WIDTH - 100, y, "tie"), text_at(WIDTH - 88, y, "tied with it", anchor="start")] if ties else []
    steps = path("step", f"M{LEFT + 2 * RING:.1f},{y:.1f}h24", dash="5 3")
    return [ring(LEFT + RING, y), steps, text_at(x, y, text, anchor="start"), *tied]
