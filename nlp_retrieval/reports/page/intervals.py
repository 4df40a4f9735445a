"""Intervals of differences, drawn beneath one another on one scale."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.reports.page.drawing import path


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
