"""The report of a benchmark as one HTML page that needs no network, no account and no other file.

All user-supplied text is escaped, and a content security policy allows exactly one style sheet and one script,
by their hashes: even if an escape is missed, the browser runs nothing. The whole report is in the HTML;
the script only hides, sorts and shows, so the page is complete without it, except for the lists of every query: these are in
a block of data that the script opens. With them the page stays below :data:`LIMIT`; without them its size depends on its
tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.files.output import write_output
from nlp_retrieval.evaluation.rankings import Ranks, RunLists
from nlp_retrieval.reports.columns import COST_COLUMNS, Column, family_label, price_columns
from nlp_retrieval.reports.notes import counted, listed
from nlp_retrieval.reports.page.charts import SHORTEST, recall_curves, stage_time
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
from nlp_retrieval.reports.page.explorer import DATA, explorer_section
from nlp_retrieval.reports.page.grids import heat_maps
from nlp_retrieval.reports.page.labels import labels_of_names
from nlp_retrieval.reports.page.pairwise import pairwise_section
from nlp_retrieval.reports.page.series import SERIES_END, foremost, named_last, series
from nlp_retrieval.reports.page.templating import asset, rendered
from nlp_retrieval.reports.pareto import fronts, latency_interval, not_dominated
from nlp_retrieval.reports.view import ReportView, view_of
from nlp_retrieval.text.printing import printable

# Charts of quality against a cost, with the Pareto front: one point for each configuration.
#
# A line through a point is the 95% interval of a median latency. Rings mark the front, broken rings points tied with it.

_LEGEND = 20.0


def quality_latency(report: BenchmarkReport) -> str:
    """Return recall at the largest cutoff against median latency, with the Pareto front; ``""`` if nothing was measured.

    Args:
        report: a finished benchmark.
    """
    (latency,) = (column for column in COST_COLUMNS if column.key == "latency_ms")
    return _quality_against(report, latency, "latency", ("median latency", "median latency, ms", "in {} ms"))


def quality_price(report: BenchmarkReport) -> str:
    """Return recall at the largest cutoff against the price of 1,000 queries; ``""`` if no price is known.

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
    """One labelled point per configuration; those on the front are ringed, and connected by a stepped line."""
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
    # labels are placed in order of importance
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
    """A name at its place, with a line to its point if it is apart; without a place, it is shown on hover."""
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
    """Return the points on the front, cheapest first; empty if there is nothing to compare."""
    if len(points) < 2:
        return []
    on_front = [place for place, on in zip(points, not_dominated(list(points.values())), strict=True) if on]
    return sorted(on_front, key=lambda place: points[place][1])


def _steps(marks: list[tuple[float, float]]) -> Markup:
    """Return the best quality available at each cost, as a step function."""
    (x, y), *others = marks
    return path("step", f"M{x:.1f},{y:.1f}" + "".join(f"H{px:.1f}V{py:.1f}" for px, py in others), dash="5 3")


def _front_legend(y: float, *, ties: bool) -> list[Markup]:
    said, x = "Pareto front of the values measured", LEFT + 2 * RING + 30
    tied = [ring(WIDTH - 100, y, "tie"), text_at(WIDTH - 88, y, "tied with it", anchor="start")] if ties else []
    steps = path("step", f"M{LEFT + 2 * RING:.1f},{y:.1f}h24", dash="5 3")
    return [ring(LEFT + RING, y), steps, text_at(x, y, said, anchor="start"), *tied]


LIMIT = 7_500_000
"""Maximum size in bytes."""

_DATE_KEY = "finished"
_STYLES = ("report.css", "parts.css", "explorer.css")
_SCRIPTS = ("explorer/elements.js", "report.js", "tables.js", "charts.js")
_H2 = re.compile(r'<h2 id="([a-z-]+)">(.{0,300}?)</h2>')

_CONTENTS = 200
"""Bytes per entry in the list of contents."""

_EXPLORER = [f"explorer/{name}.js" for name in ("data", "passages", "queries", "lists", "explorer")]


def render_page(
    report: BenchmarkReport | ReportView,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
    retrievers: Mapping[str, Ranks] | None = None,
) -> str:
    """Return the page.

    Args:
        report: a finished benchmark, or a selection of it.
        lists: the results of its configurations; without them the page has no lists of queries and no pool.
        per_query: ``[queries]`` by configuration and measure; None to compute it from the lists, with gold counted by items.
        retrievers: the ranks of gold documents in the lists of each retriever alone; see
            :func:`~nlp_retrieval.evaluation.pool.gold_ranks`.
    """
    view = view_of(report)
    style, script = Markup().join(map(asset, _STYLES)), Markup().join(map(asset, _SCRIPTS))
    report, stages = view.report, _stages(view.report)
    heat = heat_maps(report)
    parts = {
        "figures": rendered(
            "figures.html",
            view=view,
            report=report,
            families={family: list(columns) for family, columns in groupby(view.columns, key=lambda column: column.family)},
            pairs=pairwise_section(report.pairwise),
            charts=_charts(view),
            grids=rendered("grids.html", heat=heat) if heat is not None else Markup(),
            stages=stages,
            longest=_longest(report, stages),
        ),
        "record": rendered("record.html", view=view, report=report),
        "style": style,
        "n_configurations": len(report.configurations),
        "dataset": view.dataset,
    }
    with_explorer = script + Markup().join(map(asset, _EXPLORER))
    why = Markup()
    if lists is not None and lists.listings and lists.query_ids and report.k_values:
        without = rendered("page.html", **parts, header=_header(view, parts), why=why, script=with_explorer)
        room = LIMIT - len(without.encode()) - _CONTENTS
        why = explorer_section(lists, report.baseline, report.k_values, per_query, retrievers or {}, room)
    explores = f'id="{DATA}"' in why
    return rendered(
        "page.html", **parts, header=_header(view, parts, why), why=why, script=with_explorer if explores else script
    )


def write_page(
    report: BenchmarkReport | ReportView,
    path: str | Path,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
    retrievers: Mapping[str, Ranks] | None = None,
) -> None:
    """Write the page; readers of the path see the old page or the whole new one, never a part.

    Args:
        report: a finished benchmark, or a selection of it.
        path: the file to write. Its folder is created if it is missing.
        lists: as in :func:`render_page`, as are the other arguments.
        per_query: measures of every query.
        retrievers: ranks of gold documents by retriever.

    Raises:
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_page(report, lists, per_query, retrievers).encode())


def _header(view: ReportView, parts: Mapping[str, object], why: str = "") -> Markup:
    """Return the subject of the page, with a list of its contents."""
    sections = _H2.findall(f"{parts['figures']}{why}{parts['record']}")
    contents = [(target, Markup(title)) for target, title in sections]  # noqa: S704 - escaped as it was rendered
    return rendered("header.html", view=view, report=view.report, facts=_facts(view), dataset=view.dataset, contents=contents)


def _longest(report: BenchmarkReport, stages: list[str]) -> float:
    """Total milliseconds of the stages of the slowest configuration."""
    costs = [result.cost for result in report.configurations if result.cost is not None]
    return max((sum(stage_time(cost.stage_ms, stage) for stage in stages) for cost in costs), default=0.0)


def _facts(view: ReportView) -> list[str]:
    """Return the basis of the figures, in a few words each."""
    report = view.report
    facts = [
        counted(len(report.configurations), "configuration"),
        counted(report.query_counts.get("", 0), "query", "queries"),
        _items(view),
        f"{'cutoff' if len(report.k_values) == 1 else 'cutoffs'} {listed([str(k) for k in report.k_values])}",
    ]
    finished = str(report.manifest.get(_DATE_KEY, ""))
    try:
        day = datetime.fromisoformat(finished).date().isoformat() if finished else ""
    except ValueError:
        return [*facts, finished]
    return [*facts, Markup('<time datetime="{0}">{0}</time>').format(day)] if day else facts


def _items(view: ReportView) -> str:
    sizes = sorted({corpus.items for corpus in view.corpora.values() if corpus is not None})
    if len(sizes) > 1:
        return f"{listed([f'{size:,}' for size in sizes])} items in different corpora"
    return f"{counted(view.report.n_items, 'item')} in the corpus"


def _charts(view: ReportView) -> list[tuple[str, str, Mapping[str, str]]]:
    """Each drawing with its title, and the configurations whose language model answers came from disk."""
    report = view.report
    charts: list[tuple[str, str, Mapping[str, str]]] = [
        (recall_curves(report, "recall"), "Recall over the cutoff: the share of the gold items found.", {}),
        (recall_curves(report, "perfect_recall"), "Perfect recall: the share of queries with all their gold found.", {}),
        (quality_latency(report), "Recall at the largest cutoff against median latency. Up and left is better.", view.latency),
        (
            quality_price(report),
            "Recall at the largest cutoff against the price of language models. Up and left is better.",
            {},
        ),
    ]
    return [chart for chart in charts if chart[0]]


def _stages(report: BenchmarkReport) -> list[str]:
    """Merge the stages of all configurations: a stage of only some comes before the stage that follows it there."""
    merged: list[str] = []
    for result in report.configurations:
        own = list(result.cost.stage_ms) if result.cost is not None else []
        for place, stage in enumerate(own):
            if stage not in merged:
                follower = next((later for later in own[place:] if later in merged), None)
                merged.insert(len(merged) if follower is None else merged.index(follower), stage)
    return merged
