"""The report of a benchmark as one HTML page that needs no network, no account and no other file.

All user-supplied text is escaped, and a content security policy allows exactly one style sheet and one script,
by their hashes: even if an escape is missed, the browser runs nothing. The whole report is in the HTML;
the script only hides, sorts and shows, so the page is complete without it, except for the lists of every query: these are in
a block of data that the script opens, and that is as large as :data:`LIMIT` has room for.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.files.atomic import write_output
from nlp_retrieval.evaluation.comparison import Comparison, Pairwise, turned, verdict
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.figures import Column, best_first, grid_axes, p_phrase, shared_reason, signed
from nlp_retrieval.reports.findings import headline, tied_with_best
from nlp_retrieval.reports.page.charts import over_coverage, over_cutoffs, quality_latency, quality_price
from nlp_retrieval.reports.page.explorer import explorer_block
from nlp_retrieval.reports.page.templating import asset, interval_text, rendered
from nlp_retrieval.reports.view import ReportView, manifests_of, view_of
from nlp_retrieval.text.printing import counted, listed

LIMIT = 950_000
"""Size in bytes up to which lists of queries are included."""

_LEAST_ROOM = 200_000
_COSTS = {"latency_ms": ("", " ms"), "index_seconds": ("index ", " s"), "index_bytes": ("", " MB")}
_PAIRED = 10
"""Configurations in the table of pairs."""

_USUAL = ("cost", "perfect_recall", "recall", "ndcg", "answer_em", "answer_f1")


def render_page(
    report: BenchmarkReport | ReportView,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
) -> str:
    """Return the page."""
    view = view_of(report)
    report, ranked = view.report, best_first(view.report)
    explores = lists is not None and per_query is not None and len(lists.listings) > 1 and bool(lists.query_ids)
    stages = list(dict.fromkeys(stage for result in report.configurations if result.cost for stage in result.cost.stage_ms))
    times = [sum(filter(None, result.cost.stage_ms.values())) for result in report.configurations if result.cost is not None]
    abstaining = over_coverage(report, lists, per_query) if lists is not None and per_query is not None else Markup()
    values = {
        "view": view,
        "report": report,
        "ranked": ranked,
        "numbers": {result.name: place for place, result in enumerate(ranked)},
        "axes": grid_axes(report),
        "facts": _facts(view),
        "finding": headline(report),
        "answers": _answers(view),
        "charts": [chart for chart in (over_cutoffs(report), abstaining, quality_price(report)) if chart],
        "picture": quality_latency(report),
        "tested": _tested(view),
        "pairs": _pairs(report),
        "stages": stages,
        "longest": max(times, default=0.0),
        "n_queries": len(lists.query_ids) if lists is not None else 0,
        "explores": explores,
        "style": asset("report.css") + asset("parts.css"),
        "script": asset("page.js") + (asset("explorer.js") if explores else Markup()),
    } | _columns(view)
    if lists is None or per_query is None or not explores:
        return rendered("page.html", **values, block=None)
    room = max(_LEAST_ROOM, LIMIT - len(rendered("page.html", **values, block=None).encode()))
    block = explorer_block(lists, per_query, report.main_measure, room, report.relevant_from)
    return rendered("page.html", **values, block=block)


def write_page(
    report: BenchmarkReport | ReportView,
    path: str | Path,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
) -> None:
    """Write the page of :func:`render_page`; readers of the path see the old page or the whole new one."""
    write_output(Path(path), render_page(report, lists, per_query).encode())


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
    tied = [name for name in tied_with_best(report) if not (better and name == report.baseline)] if best is ranked[0] else []
    among = f"{counted(len(tied), 'other')} not distinguishable" if tied else ""
    answers = [("Which is best?", best.name, [f"{label}: {cells[main].text}", among])]
    test, over = tests.get(best.name), f"over {report.baseline}"
    if test is None and tests:
        test = turned(tests[next(result.name for result in ranked if result.name in tests)])
        over = f"over {test.baseline}, the next"
    if test is not None:
        answers += [("By how much?", f"{signed(test.difference)} {label}", [f"{interval_text(test)} {over}"])]
        answers += [("Is it real?", *_certainty(test))]
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
        answers += [("What does it cost?", f"{cells[latency.key].text} ms per query", [beside, ", ".join(more)])]
    return [(question, answer, [detail for detail in details if detail]) for question, answer, details in answers]


def _certainty(test: Comparison) -> tuple[str, list[str]]:
    if test.wins == test.losses == 0:
        return "there is no difference", ["the same in every query"]
    said = "it may be chance" if verdict(test) == "not distinguishable" else "yes"
    many = f"corrected for {counted(test.comparisons, 'comparison')}" if test.comparisons > 1 else ""
    outcome = f"{counted(test.wins, 'query', 'queries')} won, {test.ties:,} tied, {test.losses:,} lost"
    return f"{said}: {p_phrase(test.p_holm)}", [many, outcome]


def _facts(view: ReportView) -> list[str]:
    """Return the basis of the figures, in a few words each."""
    report, manifest = view.report, view.report.manifest
    sizes = sorted({corpus.items for corpus in view.corpora.values() if corpus is not None})
    items = counted(report.n_items, "item")
    items += " in the corpus" if sizes or "compared" not in manifest else " in the lists and judgements"
    facts = [
        counted(len(report.configurations), "configuration"),
        counted(report.query_counts.get("", 0), "query", "queries"),
        items if len(sizes) < 2 else f"{listed([f'{size:,}' for size in sizes])} items in different corpora",
        f"{'cutoff' if len(report.k_values) == 1 else 'cutoffs'} {listed([str(k) for k in report.k_values])}",
    ]
    depths = [each.get("depth") for each in manifests_of(report)]  # none of run files
    if depths and all(isinstance(depth, int) and depth == manifest.get("depth") for depth in depths):
        facts.append(f"the first {depths[0]:,} hits of each query")
    if isinstance(k := (manifest.get("latency") or {}).get("k"), int):
        facts.append(f"latency of searches for {k:,}")
    finished = str(manifest.get("finished", ""))
    try:
        return [*facts, datetime.fromisoformat(finished).date().isoformat()] if finished else facts
    except ValueError:
        return [*facts, finished]


def _columns(view: ReportView) -> dict[str, object]:
    """Return the columns of the table: the main measure, and the others by family, with the families shown at first."""
    main = next((column for column in view.columns if column.key == view.main_measure), None)
    others = sorted((column for column in view.columns if column is not main), key=lambda column: column.cost is None)
    families = {family: list(columns) for family, columns in groupby(others, key=lambda column: column.family)}
    few = len(others) <= 12
    return {"main": main, "families": families, "shown": [family for family in families if few or family in _USUAL]}


def _tested(view: ReportView) -> list[tuple[str, Column, list[Comparison], str]]:
    """Return the comparisons with the baseline: every measure of the summary over all queries, the main one in each group."""
    tables = []
    for group in view.groups:
        for column in view.summary:
            if column.cost is None and (not group.name or column.key == view.main_measure):
                compared = [test for test in group.comparisons if test.measure == column.key]
                compared.sort(key=lambda test: -test.difference)
                tables += [(str(group), column, compared, group.hopeless)] if compared else []
    return tables


def _pairs(report: BenchmarkReport) -> tuple[Pairwise, Mapping[tuple[str, str], Comparison], str] | None:
    """Return the pairs of the best configurations and the baseline, corrected for all, and why nothing could be significant."""
    if report.pairwise is None or len(report.pairwise.systems) < 3:
        return None
    best = [result.name for result in best_first(report)]
    systems = [name for name in best if name in {*best[: _PAIRED - (report.baseline not in best[:_PAIRED])], report.baseline}]
    chosen = [test for test in report.pairwise.comparisons if {test.system, test.baseline} <= set(systems)]
    pairwise = Pairwise(report.pairwise.measure, systems, chosen)
    return pairwise, pairwise.both_ways(), shared_reason(chosen)
