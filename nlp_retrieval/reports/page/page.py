"""The report of a benchmark as one HTML page that needs no network, no account and no other file.

All user-supplied text is escaped, and a content security policy allows exactly one style sheet and one script,
by their hashes: even if an escape is missed, the browser runs nothing. The whole report is in the HTML;
the script only hides, sorts and shows, so the page is complete without it, except for the lists of every query: these are in
a block of data that the script opens. With them the page stays below :data:`LIMIT`; without them its size depends on its
tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.evaluation.comparison import Comparison, Pairwise, compare_pairs, turned, verdict
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.figures import best_first, grid_axes, p_phrase, shared_reason, signed, summary_columns
from nlp_retrieval.reports.findings import headline, tied_with_best
from nlp_retrieval.reports.page.charts import (
    WIDE,
    WIDER,
    WIDTH,
    marginal_effects,
    over_cutoffs,
    quality_latency,
    quality_price,
    stage_time,
)
from nlp_retrieval.reports.page.explorer import DATA, explorer_section
from nlp_retrieval.reports.page.templating import asset, interval_text, rendered
from nlp_retrieval.reports.view import ReportView, counted, listed, view_of

LIMIT = 7_500_000
"""Maximum size in bytes."""

_DATE_KEY = "finished"
_STYLES = ("report.css", "parts.css", "explorer.css")
_SCRIPTS = ("explorer/elements.js", "report.js", "tables.js", "charts.js", "drawings.js")
_H2 = re.compile(r'<h2 id="([a-z-]+)">(.{0,300}?)</h2>')

_CONTENTS = 200
"""Bytes per entry in the list of contents."""

_EXPLORER = [f"explorer/{name}.js" for name in ("data", "passages", "queries", "lists", "per_query", "explorer")]

_COSTS = {
    "latency_ms": ("", " ms"),
    "index_seconds": ("index ", " s"),
    "index_bytes": ("", " MB"),
}
_PAIRED = 10
"""Configurations in the tables of pairs."""

_USUAL = ("perfect_recall", "recall", "ndcg", "answer_em", "answer_f1")
_ROOM, _LEAST = 9, 5
"""Columns of measures and axes that are shown at first, and of measures where there are many axes."""


def render_page(
    report: BenchmarkReport | ReportView,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
) -> str:
    """Return the page.

    Args:
        report: a finished benchmark, or a selection of it.
        lists: the results of its configurations; without them the page has no lists of queries.
        per_query: ``[queries]`` by configuration and measure; None to compute it from the lists, with gold counted by items.
    """
    view = view_of(report)
    style, script = Markup().join(map(asset, _STYLES)), Markup().join(map(asset, _SCRIPTS))
    report, stages, axes = view.report, _stages(view.report), grid_axes(view.report)
    ranked = best_first(report)
    parts = {
        "figures": rendered(
            "figures.html",
            view=view,
            report=report,
            axes=axes,
            numbers={result.name: number for number, result in enumerate(report.configurations)},
            ranked=ranked,
            **_columns(view, axes),
            pairs=pairwise_section(_pairs(report, lists, per_query)),
            charts=_charts(view, axes),
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
    if lists is not None and len(lists.listings) > 1 and lists.query_ids and report.k_values:
        without = rendered("page.html", **parts, header=_header(view, parts), why=why, script=with_explorer)
        room = LIMIT - len(without.encode()) - _CONTENTS
        best = next((result.name for result in ranked if result.name != report.baseline), report.baseline)
        first = (report.baseline, best, report.main_measure)
        why = explorer_section(lists, first, report.k_values, per_query, room)
    explores = f'id="{DATA}"' in why
    return rendered(
        "page.html", **parts, header=_header(view, parts, why), why=why, script=with_explorer if explores else script
    )


def write_page(
    report: BenchmarkReport | ReportView,
    path: str | Path,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
) -> None:
    """Write the page; readers of the path see the old page or the whole new one, never a part.

    Args:
        report: a finished benchmark, or a selection of it.
        path: the file to write. Its folder is created if it is missing.
        lists: as in :func:`render_page`, as are the other arguments.
        per_query: measures of every query.

    Raises:
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_page(report, lists, per_query).encode())


def _header(view: ReportView, parts: Mapping[str, object], why: str = "") -> Markup:
    """Return what was found and how it was tested, with a list of the page's contents."""
    sections = _H2.findall(f"{parts['figures']}{why}{parts['record']}")
    contents = [(target, Markup(title)) for target, title in sections]  # noqa: S704 - escaped as it was rendered
    return rendered(
        "header.html",
        view=view,
        report=view.report,
        facts=_facts(view),
        dataset=view.dataset,
        contents=contents,
        finding=headline(view.report),
        answers=_answers(view),
        pictures=[drawn for width in (WIDE, WIDTH) if (drawn := quality_latency(view.report, width))],
    )


def _answers(view: ReportView) -> list[tuple[str, str, list[str]]]:
    """Return which configuration is best, by how much, how sure that is, and what it costs: questions with their answers."""
    report, main = view.report, view.main_measure
    tests = {name: test for (group, measure, name), test in view.comparisons.items() if not group and measure == main}
    ranked = [result for result in best_first(report) if main in result.measures]
    if not ranked:
        return []
    better = [result for result in ranked if result.name in tests and verdict(tests[result.name]) == "better"]
    best, rows = (better or ranked)[0], {row.result.name: row for row in view.groups[0].rows}
    cells, label = rows[best.name].cells, Measure.parse(main).label
    tied = tied_with_best(report) if best is ranked[0] else []
    among = f"{counted(len(tied), 'other')} not distinguishable" if tied else ""
    found = [("Which is best?", best.name, [f"{label}: {cells[main].text}", among])]
    if test := tests.get(best.name):
        found += [("By how much?", f"{signed(test.difference)} {label}", [f"{interval_text(test)} over {report.baseline}"])]
        found += [("Is it real?", *_certainty(test))]
    elif tests:
        closest = turned(tests[next(result.name for result in ranked if result.name in tests)])
        next_best = f"{interval_text(closest)} over {closest.baseline}, the next"
        found += [("By how much?", f"{signed(closest.difference)} {label}", [next_best])]
        found += [("Is it real?", *_certainty(closest))]
    base = rows[report.baseline].cells if report.baseline in rows and report.baseline != best.name else {}
    latency, *others = [column for column in view.columns if column.key in (*_COSTS, "price_per_1000_queries")]
    if cells[latency.key].value is not None:
        beside = f"{report.baseline}: {base[latency.key].text} ms" if base and base[latency.key].value is not None else ""
        more = [
            f"{before}{cells[column.key].text}{after}"
            for column in others
            for before, after in [_COSTS.get(column.key, ("", f" {column.label}"))]
            if cells[column.key].value is not None
        ]
        found += [("What does it cost?", f"{cells[latency.key].text} ms per query", [beside, ", ".join(more)])]
    return [(question, answer, [detail for detail in details if detail]) for question, answer, details in found]


def _certainty(test: Comparison) -> tuple[str, list[str]]:
    said = {"better": "yes", "worse": "yes", "not distinguishable": "it may be chance"}[verdict(test)]
    many = f"corrected for {counted(test.comparisons, 'comparison')}" if test.comparisons > 1 else ""
    outcome = f"{counted(test.wins, 'query', 'queries')} won, {test.ties:,} tied, {test.losses:,} lost"
    return f"{said}: {p_phrase(test.p_holm)}", [many, outcome]


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
        *([f"the first {depth:,} hits of each query"] if isinstance(depth := report.manifest.get("depth"), int) else ()),
        *([f"latency of searches for {k:,}"] if isinstance(k := (report.manifest.get("latency") or {}).get("k"), int) else ()),
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


def _columns(view: ReportView, axes: Collection[str]) -> dict[str, object]:
    """Return the columns of the table: the main measure, and the others by family, with the families shown at first."""
    main = next((column for column in view.columns if column.key == view.main_measure), None)
    others = sorted((column for column in view.columns if column is not main), key=lambda column: column.cost is None)
    families = {family: list(columns) for family, columns in groupby(others, key=lambda column: column.family)}
    shown, room = ["cost"], max(_LEAST, _ROOM - len(axes))
    has_room = sum(column.cost is None for column in others) <= room
    for family, columns in families.items():
        if family != "cost" and (has_room or (family in _USUAL and len(columns) <= room)):
            shown, room = [*shown, family], room - len(columns)
    return {"main": main, "families": families, "shown": shown}


def _charts(view: ReportView, axes: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str, Mapping[str, str]]]:
    """Each drawing with its title, and the configurations whose language model answers came from disk."""
    report, label = view.report, Measure.parse(view.main_measure).label
    effects = Markup().join(marginal_effects(report, axes, width) for width in (WIDER, WIDTH))
    curves = Markup().join(over_cutoffs(report, width) for width in (WIDER, WIDTH))
    charts: list[tuple[str, str, Mapping[str, str]]] = [
        (curves, f"{label}, and the same at other cutoffs.", {}),
        (quality_price(report), f"{label} against the price of language models. Up and left is better.", {}),
        (effects, "Each line is a configuration with this value, each diamond their mean.", {}),
    ]
    return [chart for chart in charts if chart[0]]


def _stages(report: BenchmarkReport) -> list[str]:
    """Merge the stages of all configurations: a stage of only some comes before the stage that follows it there."""
    merged: list[str] = []
    for result in report.configurations:
        own = list(result.cost.stage_ms) if result.cost is not None else []
        for position, stage in enumerate(own):
            if stage not in merged:
                follower = next((later for later in own[position:] if later in merged), None)
                merged.insert(len(merged) if follower is None else merged.index(follower), stage)
    return merged


def _pairs(
    report: BenchmarkReport, lists: RunLists | None, per_query: Mapping[str, Mapping[str, Scores]] | None
) -> list[Pairwise]:
    """Return the pairs of the best configurations and the baseline, in the main measure and in the usual others.

    They are corrected for all pairs of the report, because the best of many were chosen by what is tested.
    """
    if report.pairwise is None or len(report.pairwise.systems) < 3:
        return []
    best = [result.name for result in best_first(report)]
    systems = [name for name in best if name in {*best[: _PAIRED - (report.baseline not in best[:_PAIRED])], report.baseline}]
    chosen = [
        comparison if best.index(comparison.system) < best.index(comparison.baseline) else turned(comparison)
        for comparison in report.pairwise.comparisons
        if {comparison.system, comparison.baseline} <= set(systems)
    ]
    found = [Pairwise(report.pairwise.measure, systems, chosen)]
    if lists is None or per_query is None:
        return found
    seed, resamples = (report.manifest.get("significance") or {}).get("seed"), report.manifest.get("resamples")
    how = (lists.families, seed if isinstance(seed, int) else 0, resamples if isinstance(resamples, int) else None)
    shared = [key for key in report.configurations[0].measures if all(key in per_query.get(name, {}) for name in best)]
    for column in summary_columns(report):
        if column.key in shared and column.key != report.pairwise.measure:
            found += filter(None, [compare_pairs(per_query, column.key, *how, among=systems)])
    return found


def pairwise_section(pairs: Sequence[Pairwise]) -> Markup:
    """Return the section: a table for each measure, of the same configurations; empty without pairs."""
    if not pairs:
        return Markup()
    return rendered(
        "pairwise.html",
        pairs=[(pairwise, pairwise.both_ways(), shared_reason(pairwise.comparisons)) for pairwise in pairs],
        first=pairs[0].comparisons[0],
    )
