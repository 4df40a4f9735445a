"""Charts as inline SVG, without a plotting library.

Colours come from the page's custom properties through classes (``series-0`` to ``series-7``), so that one SVG serves
light and dark; without the page's style sheet everything is drawn in the text's colour. Series also differ in
marker and dash, and a ring marks the Pareto front. Values not measured are left out. With many series,
the baseline, the best five and those on a front are labelled; the others are pale, and labelled on hover.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.reports.figures import (
    COST_COLUMNS,
    Column,
    family_label,
    fronts,
    latency_interval,
    price_columns,
)
from nlp_retrieval.text.printing import printable

WIDTH, WIDER, WIDE = 420.0, 580.0, 800.0
LEFT = 38.0
TOP = 30.0
BOTTOM = 44.0
LINE = 15.0
RING = 7.0
SHORTEST, WIDE_HEIGHT = 272.0, 380.0

_APART = RING + 4
_DIGIT = 7.0
_BESIDE = 0.6
"""Share of a drawing's width that labels beside it may take."""

_WIDTHS = {**dict.fromkeys("ijl.,:;'|! ", 4.2), **dict.fromkeys("ftr-()[]/", 5.2), **dict.fromkeys("mwMW@%—…", 12.0)}
_SMALLEST_SPAN = 0.1
_STEPS = (0.02, 0.05, 0.1, 0.2, *(digit * 10.0**power for power in range(-1, 16) for digit in (5, 10, 20)))

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


def quality_axis(values: list[float], start: float, end: float) -> ChartAxis:
    """Return a scale with round ticks that spans a tenth or more: a small difference must not fill the chart."""
    low, high = min(values), max(values)
    step = next(step for step in _STEPS if max(high - low, _SMALLEST_SPAN) / step <= 6 or step == _STEPS[-1])
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    while (last - first) * step < _SMALLEST_SPAN - 1e-9:
        above, below = last * step - high, low - first * step
        grow_down = first > 0 and (below < above or (last + 1) * step > 1 + 1e-9)
        first, last = (first - 1, last) if grow_down else (first, last + 1)
    ticks = [round(number * step, 2) for number in range(first, last + 1)]
    return ChartAxis(ticks[0], ticks[-1], start, end, ticks)


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
        parts += [text_at(LEFT - 6, y.at(tick), _tick(y, tick))]
    for tick in x.ticks:
        parts += [path("tick", f"M{x.at(tick):.1f},{bottom:.1f}v5", fill="")]
        parts += [text_at(x.at(tick), bottom + 14, f"{tick:,.10g}", anchor="middle")]
    return [*parts, text_at((LEFT + right) / 2, height - 8, x_title, anchor="middle", role="axis-title")]


def _tick(axis: ChartAxis, tick: float) -> str:
    step = axis.ticks[1] - axis.ticks[0]
    return f"{tick:,.{2 if step < 0.1 else 1 if step < 1 else 0}f}"


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


def placed_labels(marks: Mapping[int, Point], texts: Mapping[int, str], area: Box) -> dict[int, Point]:
    """Find a free place for each text near its mark, left edge and middle, away from all marks; one without is left out."""
    occupied: list[Box] = [(x - RING, y - RING, x + RING, y + RING) for x, y in marks.values()]
    places = {}
    far = sorted((step * LINE / 2 for step in range(-80, 81)), key=abs)
    for position, text in texts.items():
        (x, y), width = marks[position], text_width(text)
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


def svg(name: str, title: str, description: str, size: Point, body: list[Markup]) -> Markup:
    """Return a drawing; a wide one is ``wide``, for screens that have room."""
    drawn = Markup(
        '<svg class="{}" role="img" viewBox="0 0 {:.0f} {:.0f}" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{}</title><desc id="{name}-desc">{}</desc>{}</svg>'
    )
    role, name = ("chart wide", f"{name}-wide") if size[0] > WIDTH else ("chart", name)
    return drawn.format(role, *size, title, printable(description), Markup().join(body), name=name)


DOTS = "\N{MIDDLE DOT}" * 3
LONGEST, SHORT = 40, 24
"""Maximum characters of a label, and of one where there is little room."""

_PARTS = re.compile(r"\w+|\W+")


def labels_of_names(names: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Return a label for each name, of at most ``longest`` characters, or slightly more if only numbers distinguish labels."""
    names = list(map(printable, names))
    parts = [_PARTS.findall(name) for name in names]
    shared = set.intersection(*map(set, parts)) if len(parts) > 1 else set()
    labels = [name if len(name) <= longest else _without(own, shared, longest) for name, own in zip(names, parts, strict=True)]
    for label, count in Counter(labels).items():
        if count > 1:
            alike = [position for position, own in enumerate(labels) if own == label]
            for position, text in zip(alike, _distinguished([names[position] for position in alike], longest), strict=True):
                labels[position] = text
    counts = Counter(labels)
    return [label if counts[label] == 1 else f"{label} {position + 1}" for position, label in enumerate(labels)]


def _without(parts: Sequence[str], shared: set[str], longest: int) -> str:
    """The name with runs of shared parts removed, longest first, until it is short enough; otherwise cut in its middle."""
    parts = list(parts)
    while sum(map(len, parts)) > longest:
        runs = [run for run in _runs(parts, shared) if sum(map(len, parts[slice(*run)])) > len(DOTS)]
        if not runs:
            break
        begin, end = max(runs, key=lambda run: sum(map(len, parts[slice(*run)])))
        parts[begin:end] = [DOTS]
    return _cut("".join(parts), longest)


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


def _cut(text: str, longest: int) -> str:
    half = (longest - len(DOTS)) // 2
    return text if len(text) <= longest else f"{text[: longest - len(DOTS) - half]}{DOTS}{text[-half:]}"


def _distinguished(names: Sequence[str], longest: int) -> list[str]:
    """Return each name without the beginning and the end that all of them share."""
    begin = _shared_start(names)
    rests = [name[begin:] for name in names]
    end = _shared_start([rest[::-1] for rest in rests])
    room = longest - 2 * len(DOTS)
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


def most_important(report: BenchmarkReport, values: Mapping[int, float], front: Sequence[int] = ()) -> list[int]:
    """Return the positions of the configurations to label in a chart, the most important first.

    Args:
        report: a finished benchmark.
        values: the values drawn, by position; more is better.
        front: positions that come after the baseline and the best five.
    """
    names = [result.name for result in report.configurations]
    best = sorted(values, key=lambda position: -values[position])
    order = [*(position for position in values if names[position] == report.baseline), *best[:_BEST], *front]
    return list(dict.fromkeys([*order, *(best if len(values) <= _FEW else ())]))


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


_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2")


def over_cutoffs(report: BenchmarkReport, width: float = WIDTH, family: str = "") -> str:
    """Return one curve per configuration over the cutoffs of a measure, all queries; ``""`` if it has fewer than two.

    Args:
        report: a finished benchmark.
        width: in pixels.
        family: a measure without its cutoff: ``"recall"``; by default the main measure's.
    """
    family = family or (Measure.parse(report.main_measure).family if report.main_measure else "")
    keys = dict.fromkeys(key for result in report.configurations for key in result.measures)
    parsed = {key: measure for key in keys if (measure := Measure.parse(key)).family == family and measure.cutoff is not None}
    cutoffs = {measure.cutoff: key for key, measure in sorted(parsed.items(), key=lambda pair: pair[1].cutoff or 0)}
    measured = {
        position: [(k, finite(result.measures.get(key))) for k, key in cutoffs.items() if k is not None]
        for position, result in enumerate(report.configurations)
    }
    curves = {position: kept for position, points in measured.items() if (kept := [(k, v) for k, v in points if v is not None])}
    k_values = sorted({k for points in curves.values() for k, _ in points})
    if len(k_values) < 2:
        return ""
    labels = labels_of_names([result.name for result in report.configurations])
    named = most_important(report, {position: points[-1][1] for position, points in curves.items()})
    if max(text_width(labels[position]) for position in named) > _BESIDE * width:
        labels = labels_of_names([result.name for result in report.configurations], SHORT)
    right = width - 26 - max(text_width(labels[position]) for position in named)
    height = max(SHORTEST, LINE * len(named) + TOP + BOTTOM)
    y = quality_axis([value for points in curves.values() for _, value in points], height - BOTTOM, TOP)
    x = cutoff_axis(k_values, right - 8)
    body = grid(x, y, right, height, family_label(family), "cutoff k" + (" (log scale)" if x.logarithmic else ""))
    order = sorted(named, key=lambda position: y.at(curves[position][-1][1]))
    heights = spread([y.at(curves[position][-1][1]) for position in order], LINE, TOP, height - BOTTOM)
    label_heights = dict(zip(order, heights, strict=True))
    titles = {}
    for position, points in curves.items():
        figures = ", ".join(f"{value:.3f} at {k}" for k, value in points)
        titles[position] = f"{printable(report.configurations[position].name)}: {figures}"
    for position in named_last(curves, named):
        marks = [(x.at(k), y.at(value)) for k, value in curves[position]]
        line = "L".join(f"{px:.1f},{py:.1f}" for px, py in marks)
        body += [series(position, titles[position], position in named)]
        body += [path("curve", f"M{line}", dash=_DASHES[position % len(_DASHES)])]
        body += [marker(position, px, py) for px, py in marks]
        if position in named:
            body += [leader(marks[-1][0] + 6, marks[-1][1], right + 18, label_heights[position])]
            body += [text_at(right + 22, label_heights[position], labels[position], anchor="start"), SERIES_END]
        else:  # beside the curve, where there is room for it alone
            body += [text_at(marks[-1][0] - 8, marks[-1][1] - 11, labels[position], role="label extra"), SERIES_END]
    title = f"{family_label(family)} over the cutoff k"
    return svg("chart-cutoffs", title, "; ".join(titles.values()), (width, height), body)


def marginal_effects(report: BenchmarkReport, axes: Mapping[str, Mapping[str, str]], width: float = WIDTH) -> str:
    """Return the main measure by each value of each axis of a grid: all configurations with it, and their mean.

    Args:
        report: a finished benchmark.
        axes: the value of each configuration of the grid, by axis; ``""`` is returned for no axes.
        width: in pixels.
    """
    numbers = {result.name: position for position, result in enumerate(report.configurations)}
    values = {
        result.name: value
        for result in report.configurations
        if (value := finite(result.measures.get(report.main_measure))) is not None
    }
    drawn = [value for name, value in values.items() if any(name in of_axis for of_axis in axes.values())]
    if not drawn:
        return ""
    rows: list[tuple[str, list[str] | None]] = []
    for axis, of_axis in axes.items():
        rows += [(axis, None)]
        for label in dict.fromkeys(of_axis.values()):
            rows += [(label, [name for name, own in of_axis.items() if own == label and name in values])]
    labels = dict(zip(rows_labels := [label for label, _ in rows], labels_of_names(rows_labels), strict=True))
    left = max(text_width(label) for label in labels.values()) + 22
    right, line = width - 48, LINE + 3
    height = line * len(rows) + TOP + BOTTOM
    x = quality_axis(drawn, left, right)
    body = [
        part
        for tick in x.ticks
        for part in (
            path("grid", f"M{x.at(tick):.1f},{TOP - 8:.1f}V{height - BOTTOM:.1f}", fill=""),
            text_at(x.at(tick), height - BOTTOM + 14, _tick(x, tick), anchor="middle"),
        )
    ]
    said = []
    for number, (label, names) in enumerate(rows):
        y = TOP + line * number
        if names is None:
            body += [text_at(2, y + 2, label, anchor="start", role="axis-title strong")]
            continue
        body += [text_at(left - 10, y, labels[label])]
        for name in names:
            body += [series(numbers[name], f"{printable(name)}: {values[name]:.3f}", True)]
            body += [path("dot", f"M{x.at(values[name]):.1f},{y - 5:.1f}v10", fill=""), SERIES_END]
        if names:
            mean = fmean(values[name] for name in names)
            body += [marker(3, x.at(mean), y), text_at(right + 8, y, f"{mean:.3f}", anchor="start", role="label strong")]
            said += [f"{label}: {mean:.3f}"]
    title = Measure.parse(report.main_measure).label
    body += [text_at((left + right) / 2, height - 8, title, anchor="middle", role="axis-title")]
    return svg("chart-effects", f"{title} by each value of the grid", "; ".join(said), (width, height), body)


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


def stage_time(stage_ms: Mapping[str, float], stage: str) -> float:
    """Return the milliseconds of a stage; 0 if it was not measured."""
    return max(0.0, finite(stage_ms.get(stage)) or 0.0)


def interval_scale(compared: Sequence[Comparison]) -> tuple[float, float]:
    """Return the lowest and the highest difference in a column of intervals, including 0."""
    ends = [bound for comparison in compared for bound in (0.0, *comparison.interval)]
    return min(ends, default=0.0), max(ends, default=0.0)


def interval_course(comparison: Comparison, scale: tuple[float, float], width: float) -> dict[str, str]:
    """Return the drawing positions of 0, the ends of an interval and its difference, in pixels."""
    low, high = scale
    per = (width - 12) / (high - low) if high > low else 0.0
    places = {"zero": 0.0, "left": comparison.interval[0], "right": comparison.interval[1], "point": comparison.difference}
    return {name: f"{6 + (value - low) * per:.1f}" for name, value in places.items()}


# Charts of quality against a cost, with the Pareto front: one point for each configuration.
#
# A line through a point is the 95% interval of a median latency. Rings mark the front, broken rings points tied with it.

_LEGEND = 20.0


def quality_latency(report: BenchmarkReport, width: float = WIDTH) -> str:
    """Return the main measure against median latency, with the Pareto front; ``""`` if nothing was measured."""
    (latency,) = (column for column in COST_COLUMNS if column.key == "latency_ms")
    return _quality_against(report, latency, width, "latency", ("median latency", "median latency, ms", "in {} ms"))


def quality_price(report: BenchmarkReport, width: float = WIDTH) -> str:
    """Return the main measure against the price of 1,000 queries; ``""`` if no price is known."""
    prices = price_columns(report)
    if not prices or report.prices is None:
        return ""
    currency = report.prices.currency
    texts = ("price", f"{currency} per 1,000 queries", f"for {{}} {currency} per 1,000 queries")
    return _quality_against(report, prices[0], width, "price", texts)


def _quality_against(report: BenchmarkReport, cost: Column, width: float, name: str, texts: tuple[str, str, str]) -> str:
    """One labelled point per configuration; those on the front are ringed, and connected by a stepped line."""
    points = {
        position: (value, dear)
        for position, result in enumerate(report.configurations)
        if (value := finite(result.measures.get(report.main_measure))) is not None and (dear := cost.value(result)) is not None
    }
    if not points:
        return ""
    names, (what, x_title, of_point) = [result.name for result in report.configurations], texts
    latencies = cost.key == "latency_ms"
    spans = {position: latency_interval(report.configurations[position]) if latencies else None for position in points}
    front = fronts(report).get(cost.key)
    on_front = sorted((n for n in points if front and names[n] in front.names), key=lambda position: points[position][1])
    ties = {position for position in points if front and names[position] in front.tied}
    named = most_important(report, {position: value for position, (value, _) in points.items()}, on_front)
    height, right = max(WIDE_HEIGHT if width > WIDTH else SHORTEST, LINE * len(named) + TOP + BOTTOM), width - 10
    y = quality_axis([value for value, _ in points.values()], height - BOTTOM, TOP)
    x = cost_axis([dear for _, dear in points.values()] + [end for span in spans.values() if span for end in span], right)
    heading = Measure.parse(report.main_measure).label
    edge = "; 0 at the left edge" if any(dear <= 0 for _, dear in points.values()) else ""
    body = grid(x, y, right, height, heading, f"{x_title} (log scale{edge})")
    marks = {position: (x.at(dear), y.at(value)) for position, (value, dear) in points.items()}
    if on_front:
        body += [
            _steps([marks[position] for position in on_front]),
            *_front_legend(height + _LEGEND / 2, ties=bool(ties)),
        ]
    labels = labels_of_names(names)
    # labels are placed in order of importance
    area = (LEFT + 2, TOP - 6, width, height - BOTTOM - 1)
    label_places = placed_labels(marks, {position: labels[position] for position in named}, area)
    titles = {}
    for position in named_last(points, named):
        value, dear = points[position]
        also = ", on the Pareto front" if position in on_front else ", tied with the Pareto front" if position in ties else ""
        span = spans[position]
        between = f" ({cost.text(span[0])} to {cost.text(span[1])})" if span else ""
        figures = f"{value:.3f} {of_point.format(cost.text(dear) + between)}"
        titles[position] = f"{printable(names[position])}: {figures}{also}"
        px, py = marks[position]
        body += [series(position, titles[position], position in named)]
        body += [whisker(x.at(span[0]), x.at(span[1]), py)] if span else []
        body += [marker(position, px, py)]
        if also:
            body += [ring(px, py, "ring" if position in on_front else "tie")]
        body += [*_label((px, py), labels[position], label_places.get(position), width), SERIES_END]
    description = "; ".join(titles[position] for position in points)
    size = (width, height + (_LEGEND if on_front else 0))
    return svg(f"chart-{name}", f"{heading} against {what}", description, size, body)


def _label(mark: Point, text: str, position: Point | None, right: float) -> list[Markup]:
    """A name at its place, with a line to its point if it is apart; without a place, it is shown on hover."""
    (px, py), width = mark, text_width(text)
    if position is None:
        is_left = px + RING + 4 + width > right
        at = px - RING - 4 if is_left else px + RING + 4
        return [text_at(at, py, text, anchor="end" if is_left else "start", role="label extra")]
    left, middle = position
    apart = abs(middle - py) > 1 and not left < px < left + width
    line = [leader(px, py, left - 2 if left > px else left + width + 2, middle)] if apart else []
    return [*line, beside(px, left, middle, text)]


def _steps(marks: list[tuple[float, float]]) -> Markup:
    """Return the best quality available at each cost, as a step function."""
    (x, y), *others = marks
    return path("step", f"M{x:.1f},{y:.1f}" + "".join(f"H{px:.1f}V{py:.1f}" for px, py in others), dash="5 3")


def _front_legend(y: float, *, ties: bool) -> list[Markup]:
    text, x = "Pareto front of the values measured", LEFT + 2 * RING + 30
    tied = [ring(LEFT + 280, y, "tie"), text_at(LEFT + 292, y, "tied with it", anchor="start")] if ties else []
    steps = path("step", f"M{LEFT + 2 * RING:.1f},{y:.1f}h24", dash="5 3")
    return [ring(LEFT + RING, y), steps, text_at(x, y, text, anchor="start"), *tied]
