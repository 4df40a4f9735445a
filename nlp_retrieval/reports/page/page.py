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

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.evaluation.comparison import Pairwise
from nlp_retrieval.evaluation.pool import Ranks
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.figures import shared_reason
from nlp_retrieval.reports.page.charts import quality_latency, quality_price, recall_curves, stage_time
from nlp_retrieval.reports.page.explorer import DATA, explorer_section
from nlp_retrieval.reports.page.grids import heat_maps
from nlp_retrieval.reports.page.templating import asset, rendered
from nlp_retrieval.reports.view import ReportView, counted, listed, view_of

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
        for position, stage in enumerate(own):
            if stage not in merged:
                follower = next((later for later in own[position:] if later in merged), None)
                merged.insert(len(merged) if follower is None else merged.index(follower), stage)
    return merged


def pairwise_section(pairwise: Pairwise | None) -> Markup:
    """Return the section; empty for fewer than three configurations: two are already compared above it."""
    if pairwise is None or len(pairwise.systems) < 3:
        return Markup()
    return rendered(
        "pairwise.html",
        pairwise=pairwise,
        both=pairwise.both_ways(),
        first=pairwise.comparisons[0],
        hopeless=shared_reason(pairwise.comparisons),
    )
