"""The report of a benchmark as one HTML page that needs no network, no account and no other file.

Everything that a user named is escaped, and a content security policy allows exactly one style sheet and one script,
by their hashes: should an escape ever be missed, the browser still runs nothing. The whole report stands in the HTML;
the script only hides, sorts and shows, so the page is complete without it, but for the lists of every query: these stand in
a block of data that the script opens. With them the page stays below :data:`LIMIT`; without them it is as large as its
tables are.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.benchmarks.runs.comparable import corpora_of
from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.output import write_output
from nlp_retrieval.evaluation.pool import Ranks
from nlp_retrieval.evaluation.rankings import RunLists
from nlp_retrieval.reports.columns import amount
from nlp_retrieval.reports.failures import failed_section
from nlp_retrieval.reports.marks import NOTHING_TO_FIND, TRIANGLES, by_chance, legend, out_of_reach
from nlp_retrieval.reports.notes import comparison_notes, latency_note
from nlp_retrieval.reports.page.charts import quality_latency, quality_price, recall_curves, series_class, stage_bar
from nlp_retrieval.reports.page.comparison import comparison_section
from nlp_retrieval.reports.page.explained import explained_section
from nlp_retrieval.reports.page.explorer import DATA, explorer_section
from nlp_retrieval.reports.page.pairwise import pairwise_section
from nlp_retrieval.reports.page.significance import significance_section
from nlp_retrieval.reports.page.text import counted, escaped, group_label, isolated, latency_cautions, listed, tags

LIMIT = 5_000_000
"""Bytes."""

_DATE_KEY = "finished"


def render_page(
    report: BenchmarkReport,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
    retrievers: Mapping[str, Ranks] | None = None,
) -> str:
    """Return the page.

    Args:
        report: a finished benchmark.
        lists: what its configurations found; without them the page has no lists of queries and no pool.
        per_query: ``[queries]`` by configuration and measure; None: measured from the lists, gold counted by items.
        retrievers: the ranks of gold documents in the lists of each retriever alone; see
            :func:`~nlp_retrieval.evaluation.pool.gold_ranks`.
    """
    before = [
        _header(report),
        "<main>",
        failed_section(report),
        comparison_section(report),
        significance_section(report),
        pairwise_section(report.pairwise),
        _charts(report),
        _stages(report),
    ]
    after = [explained_section(report), _configurations(report), _manifest(report), "</main>"]
    room = LIMIT - len(_framed(report, [*before, *after], explores=True).encode())
    why = explorer_section(report, lists, per_query, retrievers or {}, room)
    return _framed(report, [*before, why, *after], explores=f'id="{DATA}"' in why)


def write_page(
    report: BenchmarkReport,
    path: str | Path,
    lists: RunLists | None = None,
    per_query: Mapping[str, Mapping[str, Scores]] | None = None,
    retrievers: Mapping[str, Ranks] | None = None,
) -> None:
    """Write the page; whoever reads the path finds the old page or the whole new one, never a part.

    Args:
        report: a finished benchmark.
        path: the file to write. Its folder is made where it is missing.
        lists: as in :func:`render_page`, as are the other arguments.
        per_query: measures of every query.
        retrievers: ranks of gold documents by retriever.

    Raises:
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_page(report, lists, per_query, retrievers).encode())


def _framed(report: BenchmarkReport, sections: list[str], *, explores: bool) -> str:
    """The page around its sections; the explorer's style and script come only where it is."""
    style = _asset("report.css") + _asset("explorer.css")
    script = _asset("report.js") + (_asset("explorer.js") if explores else "")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    title = f"Retrieval benchmark: {counted(len(report.configurations), 'configuration')}"
    return "\n".join([
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{title}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        *sections,
        f"<script>{script}</script>",
        "</body>",
        "</html>",
        "",
    ])  # fmt: skip


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: object) -> str:
    lines = json.dumps(value, indent=2, ensure_ascii=False, default=str).split("\n")
    return f"<pre>{chr(10).join(map(escaped, lines))}</pre>"


def _header(report: BenchmarkReport) -> str:
    parts = [
        counted(len(report.configurations), "configuration"),
        counted(report.query_counts.get("", 0), "query", "queries"),
        _items(report),
        f"{'cutoff' if len(report.k_values) == 1 else 'cutoffs'} {listed([str(k) for k in report.k_values])}",
    ]
    if date := _date(report.manifest):
        parts.append(date)
    facts = "".join(f"<li>{part}</li>" for part in parts)
    said = f"{escaped(f'{legend(report, TRIANGLES)} {by_chance(report)}'.strip())} "
    tested = said if report.comparisons else f"<strong>{said}</strong>"
    return (
        f'<header><h1>Retrieval benchmark</h1>\n<ul class="facts">{facts}</ul>\n'
        f'<p class="tested">{tested}The figures are what was measured on these queries, on one machine.</p>'
        f"{_cautions(report)}{_out_of_reach(report)}</header>"
    )


def _items(report: BenchmarkReport) -> str:
    sizes = sorted({corpus.items for corpus in corpora_of(report).values() if corpus is not None})
    if len(sizes) > 1:
        return f"{listed([f'{size:,}' for size in sizes])} items in different corpora"
    return f"{counted(report.n_items, 'item')} in the corpus"


def _cautions(report: BenchmarkReport) -> str:
    notes = [note for note in (report.selection_note, *comparison_notes(report)) if note]
    return "".join(f'<p class="tested"><strong>{escaped(note)}</strong></p>' for note in notes)


def _out_of_reach(report: BenchmarkReport) -> str:
    said = "".join(
        f"<li>{listed([group_label(report, group) for group in groups])}: {NOTHING_TO_FIND}: {escaped(reason)}.</li>"
        for reason, groups in out_of_reach(report).items()
    )
    return f'<ul class="cautions">{said}</ul>' if said else ""


def _date(manifest: Config) -> str:
    found = str(manifest.get(_DATE_KEY, ""))
    try:
        day = datetime.fromisoformat(found).date().isoformat() if found else ""
    except ValueError:
        return escaped(found)
    return f'<time datetime="{day}">{day}</time>' if day else ""


def _charts(report: BenchmarkReport) -> str:
    with_kept = [isolated(result.name) for result in report.configurations if latency_note(result)]
    kept = f" Answers of the language model came from disk: {listed(with_kept)}." if with_kept else ""
    charts = [
        (recall_curves(report, "recall"), "Recall over the cutoff: the share of the gold items found."),
        (recall_curves(report, "perfect_recall"), "Perfect recall: the share of queries with all their gold found."),
        (quality_latency(report), f"Recall at the largest cutoff against median latency. Up and left is better.{kept}"),
        (quality_price(report), "Recall at the largest cutoff against the price of language models. Up and left is better."),
    ]
    figures = "\n".join(f"<figure>{svg}<figcaption>{said}</figcaption></figure>" for svg, said in charts if svg)
    head = '<section aria-labelledby="charts"><h2 id="charts">At a glance</h2>'
    return f'{head}<div class="charts">{figures}</div></section>' if figures else ""


def _stages(report: BenchmarkReport) -> str:
    stages = _stage_order(report)
    if not stages:
        return ""
    heads = "".join(
        f'<th scope="col"><span class="swatch {series_class(place)}"></span><bdi>{escaped(stage)}</bdi></th>'
        for place, stage in enumerate(stages)
    )
    rows = "\n".join(
        f'<tr><th scope="row" class="name">{isolated(result.name)}</th>'
        + f'<td class="bar">{stage_bar(cost.stage_ms, stages)}</td>'
        + _stage_cell(cost.latency_ms)
        + "".join(_stage_cell(cost.stage_ms.get(stage)) for stage in stages)
        + "</tr>"
        for result in report.configurations
        if (cost := result.cost) is not None
    )
    return f"""<section aria-labelledby="stages"><h2 id="stages">Where the time goes</h2>
<div class="scroll" role="region" aria-labelledby="stages" tabindex="0"><table class="stages">
<thead><tr><th scope="col" class="name">Configuration</th><th scope="col" class="bar">share of each stage</th>
<th scope="col">whole query</th>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="note">Median milliseconds for one query at a time. Medians of stages need not add up to that of the whole.
</p>{latency_cautions(report)}
</section>"""


def _stage_order(report: BenchmarkReport) -> list[str]:
    """Merge the stages of all configurations: one that only some have stands before what follows it there."""
    merged: list[str] = []
    for result in report.configurations:
        own = list(result.cost.stage_ms) if result.cost is not None else []
        for place, stage in enumerate(own):
            if stage not in merged:
                follower = next((later for later in own[place:] if later in merged), None)
                merged.insert(len(merged) if follower is None else merged.index(follower), stage)
    return merged


def _stage_cell(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "<td></td>"
    return f'<td><data value="{value!r}">{amount(value)}</data></td>'


def _configurations(report: BenchmarkReport) -> str:
    found = "\n".join(
        f"<details><summary>{isolated(result.name)}{tags(report, result)}</summary>"
        f"<p>Fingerprint <code>{escaped(result.fingerprint)}</code>; "
        f"{counted(result.empty_queries, 'query', 'queries')} found nothing.</p>{_json(result.config)}</details>"
        for result in report.configurations
    )
    return f'<section aria-labelledby="configurations"><h2 id="configurations">Configurations</h2>{found}</section>'


def _manifest(report: BenchmarkReport) -> str:
    files = "".join(f"<li>{escaped(what)}: <code>{escaped(where)}</code></li>" for what, where in report.files.items())
    listed = f'<ul class="files">{files}</ul>' if files else ""
    return f"""<section aria-labelledby="run"><h2 id="run">The run</h2>{listed}
<details><summary>Manifest: what is needed to run it again</summary>{_json(report.manifest)}</details></section>"""
