"""Elements of charts: scales, markers, text, and labels that do not overlap.

A drawing is 420 wide, in the units of an SVG; elements in a series' colour use ``currentColor``. No coordinate is
ever NaN: a scale always has an extent, and values outside it are drawn at its end.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

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
    """Return a scale with round ticks that spans a tenth or more: a small difference must not fill the chart.

    Args:
        values: between 0 and 1.
        height: height of the drawing.
    """
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
    """Return a scale with the cutoffs as ticks, logarithmic if the largest is more than ten times the smallest.

    Args:
        k_values: the cutoffs.
        right: position of the largest, in pixels.
    """
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
    """Return a logarithmic scale of at least one decade; a cost of 0 is at the left end.

    Args:
        values: 0 or more.
        right: end of the scale, in pixels.
    """
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
    """Return lines, ticks and titles of two scales.

    Args:
        x: from left to right.
        y: from bottom to top.
        right: end of the lines, in pixels.
        height: height of the drawing.
        y_title: title of the vertical axis.
        x_title: title of the horizontal axis.
    """
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
    """Find a free place for each label near its point: left edge and middle. A label without one is shown only on hover.

    Args:
        marks: the points.
        texts: the labels.
        area: left, top, right and bottom of the area for labels.
    """
    taken: list[Box] = [(x - RING, y - RING, x + RING, y + RING) for x, y in marks.values()]
    places = {}
    far = sorted((step * LINE / 2 for step in range(-80, 81)), key=abs)
    for place, (x, y) in marks.items():
        width = text_width(texts[place])
        right, left_of = x + _APART, x - _APART - width
        beside = [(right, 0.0), (left_of, 0.0), (x - width / 2, -LINE), (x - width / 2, LINE)]
        free = (
            (left, y + offset, box)
            for left, offset in [*beside, *((left, offset) for offset in far for left in (right, left_of))]
            if _inside(box := (left, y + offset - LINE / 2, left + width, y + offset + LINE / 2), area)
            and not any(_overlap(box, other) for other in taken)
        )
        if found := next(free, None):
            places[place] = found[:2]
            taken.append(found[2])
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
    """Return a line in the colour of its series.

    Args:
        role: its class.
        course: its path, in SVG syntax.
        fill: colour of the enclosed area; empty for an open line.
        dash: lengths of dashes and gaps.
    """
    styles = {"fill": fill, "stroke": "currentColor", "stroke-dasharray": dash, "d": course}
    given = Markup(" ").join(Markup('{}="{}"').format(key, value) for key, value in styles.items() if value)
    return Markup('<path class="{}" {}/>').format(role, given)


def marker(place: int, x: float, y: float) -> Markup:
    """Return the marker of a series at a point."""
    shape = _MARKERS[place % len(_MARKERS)]
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
    """Return a drawing.

    Args:
        name: prefix of its ids.
        title: read first by screen readers.
        description: description of the content, in words.
        height: height of the drawing.
        body: the elements.
    """
    drawn = Markup(
        '<svg class="chart" role="img" viewBox="0 0 {:.0f} {:.0f}" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{}</title><desc id="{name}-desc">{}</desc>{}</svg>'
    )
    return drawn.format(WIDTH, height, title, printable(description), Markup().join(body), name=name)
