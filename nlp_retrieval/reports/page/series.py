"""Shared properties of the series of a chart: colours by position, and the choice of labelled series.

With more than a dozen series, only the baseline, those on a Pareto front and the best five are labelled next to
them. The others are paler, and labelled on hover.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.page.drawing import marker
from nlp_retrieval.reports.pareto import fronts

SERIES_END = Markup("</g>")

_COLOURS = 8
_FEW, _BEST = 12, 5


def foremost(report: BenchmarkReport, values: Mapping[int, float], first: Sequence[int] = ()) -> list[int]:
    """Return the positions of the configurations to label in a chart, the most important first.

    Args:
        report: a finished benchmark.
        values: the values drawn, by position; more is better.
        first: positions that come right after the baseline; by default those on a front of the report.
    """
    names = [result.name for result in report.configurations]
    on_fronts = {name for front in fronts(report).values() for name in front.names}
    baseline = [place for place in values if names[place] == report.baseline]
    best = sorted(values, key=lambda place: -values[place])
    others = [place for place in best if names[place] in on_fronts]
    order = [place for place in dict.fromkeys([*baseline, *(first or others), *best[:_BEST]]) if place in values]
    return list(dict.fromkeys([*order, *values])) if len(values) <= _FEW else order


def named_last(places: Iterable[int], named: Collection[int]) -> list[int]:
    """Return positions in drawing order: labelled series are drawn over the others."""
    return sorted(places, key=lambda place: (place in named, place))


def series(place: int, title: str, is_named: bool) -> Markup:
    """Begin a group of elements in one colour.

    Args:
        place: position of the configuration in the report.
        title: its name and figures.
        is_named: whether to draw it in full strength.
    """
    role = f"series-{place % _COLOURS}" + ("" if is_named else " rest")
    return Markup('<g class="{}" data-series="{}"><title>{}</title>').format(role, place, title)


def series_class(place: int) -> str:
    """Return the colour class of a series; repeated colours are paler."""
    return f"series-{place % _COLOURS}" + (" again" if place // _COLOURS % 2 else "")


def series_key(place: int) -> Markup:
    """Return the marker of a series, for a list of names."""
    drawn = Markup('<svg class="key series-{}" viewBox="-6 -6 12 12" aria-hidden="true">{}</svg>')
    return drawn.format(place % _COLOURS, marker(place, 0, 0))
