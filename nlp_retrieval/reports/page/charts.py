"""Charts as inline SVG, without a plotting library.

Colours come from the page's custom properties through classes (``series-0`` to ``series-7``), so that one SVG serves
light and dark; without the page's style sheet everything is drawn in the text's colour. Series also differ in
marker and dash, and a ring marks the Pareto front. Values not measured are left out. With many series,
the baseline, those on a front and the best five are labelled; the others are paler, and labelled on hover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.reports.columns import family_label
from nlp_retrieval.reports.page.drawing import (
    BOTTOM,
    LINE,
    TOP,
    WIDTH,
    cutoff_axis,
    finite,
    grid,
    leader,
    marker,
    path,
    quality_axis,
    spread,
    svg,
    text_at,
    text_width,
)
from nlp_retrieval.reports.page.labels import labels_of_names
from nlp_retrieval.reports.page.series import SERIES_END, foremost, named_last, series, series_class
from nlp_retrieval.text.printing import printable

SHORTEST = 272.0

_DASHES = ("none", "7 3", "2 3", "9 3 2 3", "4 2")


def recall_curves(report: BenchmarkReport, measure: str = "recall") -> str:
    """Return one curve per configuration over the cutoffs, all queries; ``""`` if nothing was measured.

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
    labels = labels_of_names([result.name for result in report.configurations])
    named = foremost(report, {place: points[-1][1] for place, points in curves.items()})
    right = WIDTH - 26 - max(text_width(labels[place]) for place in curves)
    height = max(SHORTEST, LINE * len(named) + TOP + BOTTOM)
    y = quality_axis([value for points in curves.values() for _, value in points], height)
    x = cutoff_axis(report.k_values, right - 8)
    body = grid(x, y, right, height, family_label(measure), "cutoff k" + (" (log scale)" if x.logarithmic else ""))
    order = sorted(named, key=lambda place: y.at(curves[place][-1][1]))
    heights = spread([y.at(curves[place][-1][1]) for place in order], LINE, TOP, height - BOTTOM)
    label_heights = dict(zip(order, heights, strict=True))
    for place in named_last(curves, named):
        marks = [(x.at(k), y.at(value)) for k, value in curves[place]]
        title = f"{printable(report.configurations[place].name)}: " + _series_text(curves[place])
        body += [series(place, title, place in named)]
        line = "L".join(f"{px:.1f},{py:.1f}" for px, py in marks)
        dash = _DASHES[place % len(_DASHES)]
        body += [path("curve", f"M{line}", dash=dash)]
        body += [marker(place, px, py) for px, py in marks]
        if place in named:
            body += [leader(marks[-1][0] + 6, marks[-1][1], right + 18, label_heights[place])]
        role = "label" if place in named else "label extra"
        label_y = label_heights.get(place, marks[-1][1])
        body += [text_at(right + 22, label_y, labels[place], anchor="start", role=role), SERIES_END]
    said = "; ".join(f"{report.configurations[place].name}: {_series_text(points)}" for place, points in curves.items())
    return svg(f"chart-{measure}", f"{family_label(measure)} over the cutoff k", said, height, body)


def stage_bar(stage_ms: Mapping[str, float], stages: Sequence[str], longest: float) -> Markup:
    """Return one stacked bar of the stages, which illustrates the figures next to it.

    Args:
        stage_ms: milliseconds by stage.
        stages: all stages of the report; a stage's position determines its colour.
        longest: milliseconds for the full width; shared by the bars of one report.
    """
    left, rects = 0.0, []
    for place, stage in enumerate(stages):
        share = 100 * stage_time(stage_ms, stage) / (longest or 1.0)
        rect = Markup('<rect class="{}" fill="currentColor" x="{:.2f}" width="{:.2f}" height="10"/>')
        rects.append(rect.format(series_class(place), left, share))
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
    """Return the drawing positions of 0, the ends of an interval and its difference, for a width of 280.

    Args:
        comparison: with its interval.
        scale: from :func:`interval_scale`.
    """
    low, high = scale
    per = 268 / (high - low) if high > low else 0.0
    places = {"zero": 0.0, "left": comparison.interval[0], "right": comparison.interval[1], "point": comparison.difference}
    return {name: f"{6 + (value - low) * per:.1f}" for name, value in places.items()}
