"""The report of a benchmark as one HTML page that needs no network, no account and no other file.

Everything that a user named is escaped, and a content security policy allows exactly one style sheet and one script,
by their hashes: should an escape ever be missed, the browser still runs nothing. The whole report stands in the HTML;
the script only hides, sorts and shows, so the page is complete without it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path

from nlp_retrieval.benchmarks.charts import quality_latency, recall_curves, series_class, stage_bar
from nlp_retrieval.benchmarks.explained_page import explained_section
from nlp_retrieval.benchmarks.output import write_output
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.benchmarks.table import (
    COST,
    COST_COLUMNS,
    UNTESTED,
    Column,
    amount,
    family_label,
    measure_columns,
    printable,
    query_groups,
)
from nlp_retrieval.core.component import Config

_SHOWN_FIRST = ("perfect_recall", "recall", "ndcg", "mrr", COST)
_DATE_KEY = "finished"


def render_page(report: BenchmarkReport) -> str:
    """Return the page.

    Args:
        report: a finished benchmark.
    """
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    title = f"Retrieval benchmark: {_count(len(report.configurations), 'configuration')}"
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
        _header(report),
        "<main>",
        _results(report),
        _charts(report),
        _stages(report),
        explained_section(report),
        _configurations(report),
        _manifest(report),
        "</main>",
        f"<script>{script}</script>",
        "</body>",
        "</html>",
        "",
    ])  # fmt: skip


def write_page(report: BenchmarkReport, path: str | Path) -> None:
    """Write the page; whoever reads the path finds the old page or the whole new one, never a part.

    Args:
        report: a finished benchmark.
        path: the file to write. Its folder is made where it is missing.

    Raises:
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_page(report).encode())


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(text: object) -> str:
    return escape(printable(str(text)))


def _name(result: ConfigurationResult) -> str:
    # bdi: a name with right-to-left marks must not turn the figures beside it around
    return f"<bdi>{_text(result.name)}</bdi>"


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _json(value: object) -> str:
    lines = json.dumps(value, indent=2, ensure_ascii=False, default=str).split("\n")
    return f"<pre>{chr(10).join(map(_text, lines))}</pre>"


def _header(report: BenchmarkReport) -> str:
    parts = [
        _count(len(report.configurations), "configuration"),
        _count(report.query_counts.get("", 0), "query", "queries"),
        f"{_count(report.n_items, 'item')} in the corpus",
        f"{'cutoff' if len(report.k_values) == 1 else 'cutoffs'} {_listed([str(k) for k in report.k_values])}",
    ]
    if date := _date(report.manifest):
        parts.append(date)
    facts = "".join(f"<li>{part}</li>" for part in parts)
    return (
        f'<header><h1>Retrieval benchmark</h1>\n<ul class="facts">{facts}</ul>\n'
        f'<p class="untested"><strong>{UNTESTED}</strong> The figures are what was measured on these queries, on one '
        f"machine.</p></header>"
    )


def _date(manifest: Config) -> str:
    found = str(manifest.get(_DATE_KEY, ""))
    try:
        day = datetime.fromisoformat(found).date().isoformat() if found else ""
    except ValueError:
        return _text(found)
    return f'<time datetime="{day}">{day}</time>' if day else ""


def _results(report: BenchmarkReport) -> str:
    columns = [*measure_columns(report), *COST_COLUMNS]
    families = list(dict.fromkeys(column.family for column in columns))
    spans = "".join(
        f'<th scope="colgroup" class="family" data-family="{_text(family)}" colspan="{count}">'
        f"<span>{_text(family_label(family))}</span></th>"
        for family, count in Counter(column.family for column in columns).items()
    )
    heads = "".join(_column_head(column, first) for column, first in _with_first(columns))
    bodies = "".join(_group_rows(report, columns, group, place) for place, group in enumerate(query_groups(report)))
    return f"""<section aria-labelledby="results"><h2 id="results">Quality and cost</h2>
{_controls(report, families)}
<div class="scroll" role="region" aria-labelledby="results" tabindex="0">
<table id="comparison">
<thead><tr><th scope="col" rowspan="2" class="name" data-sort="name">Configuration</th>{spans}</tr>
<tr>{heads}</tr></thead>
{bodies}</table>
</div>
<p class="note"><b class="best">Bold on a tint</b> is the best value measured in its column and group of queries, with
every value that prints the same. Differences to the baseline, <bdi>{_text(report.baseline)}</bdi>, are subtracted
for measures and divided for costs. Latency is of one query at a time, throughput of one call with all queries; cost is
over all queries, whatever the group. 1 MB is 10<sup>6</sup> bytes; an index is counted without its items. Peak memory
is that of the whole process. Queries that found nothing score 0 and count.</p>
</section>"""


def _controls(report: BenchmarkReport, families: list[str]) -> str:
    groups = query_groups(report)
    labels = [_group_label(report, group) for group in groups]
    options = "".join(f'<option value="{place}">{label}</option>' for place, label in enumerate(labels))
    every = '<option value="">every group</option>' if len(groups) > 1 else ""
    boxes = "".join(
        f'<label><input type="checkbox" name="family" value="{_text(family)}"'
        f"{' checked' if family in _SHOWN_FIRST else ''}> {_text(family_label(family))}</label>"
        for family in families
    )
    return (
        '<div class="controls" hidden>'
        f'<label class="groups">Queries <select id="group">{options}{every}</select></label>'
        f'<fieldset><legend>Columns</legend>{boxes}</fieldset><label><input type="checkbox" id="differences"> '
        f"Differences to <bdi>{_text(report.baseline)}</bdi></label></div>"
    )


def _group_label(report: BenchmarkReport, group: str) -> str:
    count = report.query_counts.get(group)
    return _text(group or "all queries") + (f" ({count:,})" if count is not None else "")


def _with_first(columns: list[Column]) -> list[tuple[Column, bool]]:
    """Pair each column with whether it begins its family: there stands the rule that parts the families."""
    return [(column, not place or columns[place - 1].family != column.family) for place, column in enumerate(columns)]


def _column_head(column: Column, first: bool) -> str:
    full = column.label if column.cost else f"{family_label(column.family)} {column.label}"
    shown = "<br>".join(_text(column.label).rsplit(" ", 1))
    return (
        f'<th scope="col" data-family="{_text(column.family)}" data-label="{_text(full)}"'
        f' data-sort="{"low" if column.lower_is_better else "high"}"{_first(first)}>{shown}</th>'
    )


def _first(first: bool) -> str:
    return ' class="first"' if first else ""


def _group_rows(report: BenchmarkReport, columns: list[Column], group: str, place: int) -> str:
    cells: list[list[str]] = [[] for _ in report.configurations]
    is_baseline = [result.name == report.baseline for result in report.configurations]
    for column, first in _with_first(columns):
        values = [column.value(result, group) for result in report.configurations]
        best = column.best(values)
        baseline = values[is_baseline.index(True)] if any(is_baseline) else None
        for row, value in enumerate(values):
            difference = "" if is_baseline[row] else column.difference(value, baseline)
            cells[row].append(_cell(column, value, row in best, difference, first))
    rows = "\n".join(
        f'<tr><th scope="row" class="name">{_name(result)}{_tags(report, result, group)}</th>{"".join(row)}</tr>'
        for result, row in zip(report.configurations, cells, strict=True)
    )
    head = f'<th scope="rowgroup" colspan="{len(columns) + 1}"><span>{_group_label(report, group)}</span></th>'
    return f'<tbody data-group="{place}">\n<tr class="group">{head}</tr>\n{rows}\n</tbody>\n'


def _cell(column: Column, value: float | None, best: bool, difference: str, first: bool) -> str:
    shown = _text(column.text(value))
    if value is not None:
        shown = f'<data value="{value!r}"{" class=best" if best else ""}>{shown}</data>'
    spoken = '<span class="spoken"> best</span>' if best else ""
    small = f'<small class="difference">{_text(difference)}</small>' if difference else ""
    return f'<td data-family="{_text(column.family)}"{_first(first)}>{shown}{spoken}{small}</td>'


def _tags(report: BenchmarkReport, result: ConfigurationResult, group: str = "") -> str:
    tags = '<small class="tag">baseline</small>' if result.name == report.baseline else ""
    if result.empty_queries and not group:  # they are counted over all queries only
        tags += f'<small class="tag">{_count(result.empty_queries, "query", "queries")} found nothing</small>'
    return tags


def _charts(report: BenchmarkReport) -> str:
    charts = [
        (recall_curves(report, "recall"), "Recall over the cutoff: the share of the gold items found."),
        (recall_curves(report, "perfect_recall"), "Perfect recall: the share of queries with all their gold found."),
        (quality_latency(report), "Recall at the largest cutoff against median latency. Up and left is better."),
    ]
    figures = "\n".join(f"<figure>{svg}<figcaption>{said}</figcaption></figure>" for svg, said in charts if svg)
    head = '<section aria-labelledby="charts"><h2 id="charts">At a glance</h2>'
    return f'{head}<div class="charts">{figures}</div></section>' if figures else ""


def _stages(report: BenchmarkReport) -> str:
    stages = _stage_order(report)
    if not stages:
        return ""
    heads = "".join(
        f'<th scope="col"><span class="swatch {series_class(place)}"></span><bdi>{_text(stage)}</bdi></th>'
        for place, stage in enumerate(stages)
    )
    rows = "\n".join(
        f'<tr><th scope="row" class="name">{_name(result)}</th>'
        + f'<td class="bar">{stage_bar(result.cost.stage_ms, stages)}</td>'
        + _stage_cell(result.cost.latency_ms)
        + "".join(_stage_cell(result.cost.stage_ms.get(stage)) for stage in stages)
        + "</tr>"
        for result in report.configurations
    )
    return f"""<section aria-labelledby="stages"><h2 id="stages">Where the time goes</h2>
<div class="scroll" role="region" aria-labelledby="stages" tabindex="0"><table class="stages">
<thead><tr><th scope="col" class="name">Configuration</th><th scope="col" class="bar">share of each stage</th>
<th scope="col">whole query</th>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="note">Median milliseconds for one query at a time. Medians of stages need not add up to that of the whole.</p>
</section>"""


def _stage_order(report: BenchmarkReport) -> list[str]:
    """Merge the stages of all configurations: one that only some have stands before what follows it there."""
    merged: list[str] = []
    for result in report.configurations:
        own = list(result.cost.stage_ms)
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
        f"<details><summary>{_name(result)}{_tags(report, result)}</summary>"
        f"<p>Fingerprint <code>{_text(result.fingerprint)}</code>; "
        f"{_count(result.empty_queries, 'query', 'queries')} found nothing.</p>{_json(result.config)}</details>"
        for result in report.configurations
    )
    return f'<section aria-labelledby="configurations"><h2 id="configurations">Configurations</h2>{found}</section>'


def _manifest(report: BenchmarkReport) -> str:
    files = "".join(f"<li>{_text(what)}: <code>{_text(where)}</code></li>" for what, where in report.files.items())
    listed = f'<ul class="files">{files}</ul>' if files else ""
    return f"""<section aria-labelledby="run"><h2 id="run">The run</h2>{listed}
<details><summary>Manifest: what is needed to run it again</summary>{_json(report.manifest)}</details></section>"""
