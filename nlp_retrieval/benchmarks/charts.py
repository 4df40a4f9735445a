"""Charts as inline SVG, without a plotting library.

Colours come from the page's custom properties through classes (``series-0`` to ``series-7``), so that one SVG serves
light and dark; without the page's style sheet everything is drawn in the text's colour. A series is told apart by
marker and dash too. No coordinate is ever NaN: what was not measured is left out, and a scale always has an extent.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.table import amount, family_label, printable

_COLOURS = 8
_WIDTH = 420.0
_LEFT = 38.0
_TOP = 30.0
_BOTTOM = 44.0
_SHORTEST = 272.0
_LINE = 15.0
_DIGIT = 7.0
_WIDTHS = {**dict.fromkeys("ijl.,:;'|! ", 4.2), **dict.fromkeys("ftr-()[]/", 5.2), **dict.fromkeys("mwMW@%—…", 12.0)}
_LONGEST_LABEL = 20
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
_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2")


@dataclass(frozen=True)
class _Axis:
    """A scale from values to pixels.

    ``low < high`` are the ends in values (positive where it is logarithmic), ``start`` and ``end`` those in pixels.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: Sequence[float]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        value = min(max(value, low), high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def recall_curves(report: BenchmarkReport, measure: str = "recall") -> str:
    """Return one curve per configuration over the cutoffs, all queries; ``""`` where nothing was measured.

    Args:
        report: a finished benchmark.
        measure: a measure with values between 0 and 1, without its cutoff: ``"recall"``, ``"perfect_recall"``.
    """
    found = {
        place: [(k, _finite(result.measures.get(f"{measure}@{k}"))) for k in report.k_values]
        for place, result in enumerate(report.configurations)
    }
    curves = {place: kept for place, points in found.items() if (kept := [(k, v) for k, v in points if v is not None])}
    if not curves:
        return ""
    labels = {place: _label(report, place) for place in curves}
    right = _WIDTH - 26 - max(_text_width(label) for label in labels.values())
    height = max(_SHORTEST, _LINE * len(curves) + _TOP + _BOTTOM)
    y = _quality_axis([value for points in curves.values() for _, value in points], height)
    x = _cutoff_axis(report.k_values, right - 8)
    body = _grid(x, y, right, height, family_label(measure), "cutoff k" + (" (log scale)" if x.logarithmic else ""))
    order = sorted(curves, key=lambda place: y.at(curves[place][-1][1]))
    label_heights = _spread([y.at(curves[place][-1][1]) for place in order], _LINE, _TOP, height - _BOTTOM)
    for place, label_y in zip(order, label_heights, strict=True):
        marks = [(x.at(k), y.at(value)) for k, value in curves[place]]
        title = f"{printable(report.configurations[place].name)}: " + _series_text(curves[place])
        body += [f'<g class="series-{place % _COLOURS}"><title>{escape(title)}</title>']
        line = "L".join(f"{px:.1f},{py:.1f}" for px, py in marks)
        dash = _DASHES[place % len(_DASHES)]
        body += [f'<path class="curve" fill="none" stroke="currentColor" stroke-dasharray="{dash}" d="M{line}"/>']
        body += [_marker(place, px, py) for px, py in marks]
        body += [_leader(marks[-1][0] + 6, marks[-1][1], right + 18, label_y)]
        body += [_text(right + 22, label_y, labels[place], anchor="start"), "</g>"]
    said = "; ".join(f"{report.configurations[place].name}: {_series_text(points)}" for place, points in curves.items())
    return _svg(f"chart-{measure}", f"{family_label(measure)} over the cutoff k", said, height, body)


def quality_latency(report: BenchmarkReport, measure: str = "recall") -> str:
    """Return quality at the largest cutoff against median latency, one labelled point per configuration.

    Args:
        report: a finished benchmark.
        measure: a measure with values between 0 and 1, without its cutoff.
    """
    k = max(report.k_values, default=0)
    points = {
        place: (result.cost.latency_ms, value)
        for place, result in enumerate(report.configurations)
        if (value := _finite(result.measures.get(f"{measure}@{k}"))) is not None and _finite(result.cost.latency_ms) is not None
    }
    if not points:
        return ""
    height = max(_SHORTEST, _LINE * len(points) + _TOP + _BOTTOM)
    right = _WIDTH - 10
    y = _quality_axis([value for _, value in points.values()], height)
    x = _latency_axis([latency for latency, _ in points.values()], right)
    heading = f"{family_label(measure)} at {k}"
    edge = "; 0 at the left edge" if any(latency <= 0 for latency, _ in points.values()) else ""
    body = _grid(x, y, right, height, heading, f"median latency, ms (log scale{edge})")
    marks = {place: (x.at(latency), y.at(value)) for place, (latency, value) in points.items()}
    texts = {place: _label(report, place) for place in points}
    label_places = _place_labels(marks, texts, (_LEFT + 2, _TOP - 6, _WIDTH, height - _BOTTOM - 1))
    said = []
    for place, (px, py) in marks.items():
        latency, value = points[place]
        said.append(f"{printable(report.configurations[place].name)}: {value:.3f} in {amount(latency)} ms")
        body += [f'<g class="series-{place % _COLOURS}"><title>{escape(said[-1])}</title>', _marker(place, px, py)]
        if place in label_places:
            left, middle = label_places[place]
            if abs(middle - py) > 1 and not left < px < left + _text_width(texts[place]):
                body += [_leader(px, py, left - 2 if left > px else left + _text_width(texts[place]) + 2, middle)]
            body += [_beside(px, left, middle, texts[place])]
        body += ["</g>"]
    return _svg("chart-latency", f"{heading} against median latency", "; ".join(said), height, body)


def stage_bar(stage_ms: dict[str, float], stages: Sequence[str]) -> str:
    """Return one stacked bar of the stages' shares of their sum, decorative beside the figures it shows.

    Args:
        stage_ms: milliseconds by stage.
        stages: all stages of the report; the place of a stage gives its colour.
    """
    times = [max(0.0, _finite(stage_ms.get(stage)) or 0.0) for stage in stages]
    whole, left, rects = sum(times) or 1.0, 0.0, []
    for place, time in enumerate(times):
        share = 100 * time / whole
        extent = f'x="{left:.2f}" width="{share:.2f}" height="10"'
        rects.append(f'<rect class="{series_class(place)}" fill="currentColor" {extent}/>')
        left += share
    box = 'viewBox="0 0 100 10" preserveAspectRatio="none"'
    return f'<svg class="stage-bar" {box} aria-hidden="true">{"".join(rects)}</svg>'


def series_class(place: int) -> str:
    """Return the class that colours a series; where colours come round again they are paler."""
    return f"series-{place % _COLOURS}" + (" again" if place // _COLOURS % 2 else "")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _quality_axis(values: list[float], height: float) -> _Axis:
    """Cover the values with round ticks. Never less than a tenth, lest a small difference fill the chart."""
    low, high = min(values), max(values)
    step = next((step for step in (0.02, 0.05, 0.1, 0.2) if (max(high - low, _SMALLEST_SPAN)) / step <= 6), 0.2)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    while (last - first) * step < _SMALLEST_SPAN - 1e-9:
        above, below = last * step - high, low - first * step
        grow_down = first > 0 and (below < above or (last + 1) * step > 1 + 1e-9)
        first, last = (first - 1, last) if grow_down else (first, last + 1)
    ticks = [round(number * step, 2) for number in range(first, last + 1)]
    return _Axis(ticks[0], ticks[-1], height - _BOTTOM, _TOP, ticks)


def _cutoff_axis(k_values: list[int], right: float) -> _Axis:
    low, high = min(k_values), max(k_values)
    if low == high:
        return _Axis(low - 1, high + 1, _LEFT + 8, right, k_values)
    logarithmic = high / low > 10
    axis = _Axis(low, high, _LEFT + 8, right, k_values, logarithmic)
    ticks: list[float] = []
    for k in sorted(k_values, reverse=True):  # the largest cutoff keeps its label where labels would touch
        if not ticks or axis.at(ticks[-1]) - axis.at(k) > _DIGIT * (len(str(k)) + len(str(int(ticks[-1])))) / 2 + 6:
            ticks.append(k)
    return _Axis(low, high, _LEFT + 8, right, ticks, logarithmic)


def _latency_axis(values: list[float], right: float) -> _Axis:
    """Cover the latencies, at least one decade of them; what took no measurable time stands at the left end."""
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
    return _Axis(low, high, _LEFT + 8, right, ticks, True)


def _grid(x: _Axis, y: _Axis, right: float, height: float, y_title: str, x_title: str) -> list[str]:
    bottom = height - _BOTTOM
    cut = " (axis does not start at 0)" if y.low > 0 else ""
    parts = [_text(2, 10, y_title + cut, anchor="start", role="axis-title")]
    for tick in y.ticks:
        parts += [f'<path class="grid" stroke="currentColor" d="M{_LEFT:.1f},{y.at(tick):.1f}H{right:.1f}"/>']
        parts += [_text(_LEFT - 6, y.at(tick), f"{tick:.2f}" if y.ticks[1] - y.ticks[0] < 0.1 else f"{tick:.1f}")]
    for tick in x.ticks:
        parts += [f'<path class="tick" stroke="currentColor" d="M{x.at(tick):.1f},{bottom:.1f}v5"/>']
        parts += [_text(x.at(tick), bottom + 14, f"{tick:,.10g}", anchor="middle")]
    return [*parts, _text((_LEFT + right) / 2, height - 8, x_title, anchor="middle", role="axis-title")]


def _spread(wanted: list[float], gap: float, top: float, bottom: float) -> list[float]:
    """Move ascending heights as little as a pass down and a pass up need to be ``gap`` apart between two limits."""
    places: list[float] = []
    for height in wanted:
        places.append(max(height, places[-1] + gap) if places else max(height, top + gap / 2))
    limit = bottom - gap / 2
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - gap
    return places


_Point = tuple[float, float]
_Box = tuple[float, float, float, float]


def _place_labels(marks: dict[int, _Point], texts: dict[int, str], area: _Box) -> dict[int, _Point]:
    """Find each label a free place near its point: left edge and middle. One that finds none is left to the title."""
    taken: list[_Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in marks.values()]
    places = {}
    far = sorted((step * _LINE / 2 for step in range(-80, 81)), key=abs)
    for place, (x, y) in marks.items():
        width = _text_width(texts[place])
        beside = [(x + 9, 0.0), (x - 9 - width, 0.0), (x - width / 2, -_LINE), (x - width / 2, _LINE)]
        free = (
            (left, y + offset, box)
            for left, offset in [*beside, *((left, offset) for offset in far for left in (x + 9, x - 9 - width))]
            if _inside(box := (left, y + offset - _LINE / 2, left + width, y + offset + _LINE / 2), area)
            and not any(_overlap(box, other) for other in taken)
        )
        if found := next(free, None):
            places[place] = found[:2]
            taken.append(found[2])
    return places


def _inside(box: _Box, area: _Box) -> bool:
    return box[0] >= area[0] and box[1] >= area[1] and box[2] <= area[2] and box[3] <= area[3]


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _label(report: BenchmarkReport, place: int) -> str:
    """Return a configuration's name, shortened in the middle: sweeps vary the ends of names."""
    name = printable(report.configurations[place].name)
    if len(name) > _LONGEST_LABEL:
        name = f"{name[: _LONGEST_LABEL // 2]}…{name[1 - _LONGEST_LABEL // 2 :]}"
    return name


def _text_width(text: str) -> float:
    """Estimate pixels by the widest of the usual fonts: a label thought too wide is better than two that touch."""
    return sum(_WIDTHS.get(char, _character_width(char)) for char in text)


def _character_width(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 13.0
    return 7.6 if char.isascii() and not char.isupper() else 9.0


def _series_text(points: list[tuple[int, float]]) -> str:
    return ", ".join(f"{value:.3f} at {k}" for k, value in points)


def _marker(place: int, x: float, y: float) -> str:
    shape = _MARKERS[place % len(_MARKERS)]
    return f'<path class="marker" fill="currentColor" transform="translate({x:.1f} {y:.1f})" d="{shape}"/>'


def _beside(px: float, left: float, middle: float, text: str) -> str:
    """Set a label so that its edge towards the point is where it was planned, however wide the font turns out."""
    width = _text_width(text)
    if left > px:
        return _text(left, middle, text, anchor="start")
    if left + width < px:
        return _text(left + width, middle, text, anchor="end")
    return _text(left + width / 2, middle, text, anchor="middle")


def _leader(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="leader" fill="none" stroke="currentColor" d="M{x1:.1f},{y1:.1f}L{x2:.1f},{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str = "end", role: str = "label") -> str:
    return f'<text class="{role}" x="{x:.1f}" y="{y:.1f}" dy="0.35em" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(name: str, title: str, description: str, height: float, body: list[str]) -> str:
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" '
        f'aria-labelledby="{name}-title {name}-desc"><title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(printable(description))}</desc>{"".join(body)}</svg>'
    )
