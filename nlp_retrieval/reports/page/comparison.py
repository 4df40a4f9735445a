"""The part of the report with the table of quality and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.evaluation.by_group import LEVEL
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.evaluation.verdict import verdict
from nlp_retrieval.reports.columns import COST, Column, cost_columns, family_label, measure_columns, query_groups
from nlp_retrieval.reports.marks import ALPHA, TRIANGLES, by_figure, p_text
from nlp_retrieval.reports.notes import CALLS_AND_TOKENS, degraded_note, price_note, prices_legend
from nlp_retrieval.reports.page.significance import CLASSES, interval_text
from nlp_retrieval.reports.page.text import cautions, escaped, group_label, isolated, latency_cautions, tags
from nlp_retrieval.reports.pareto import MARK, Front, front_legend, fronts

_TESTED = f"""; under that of a measure stand its {LEVEL:.0%} interval, p corrected by
Holm's method, and how many queries were won, tied and lost. A triangle is the test's verdict, bold is not"""
_COSTS = {"latency_ms": "latency", "price_per_1000_queries": "price"}
_SHOWN_FIRST = ("perfect_recall", "recall", "ndcg", "mrr", COST)
_ASKED = f"""
{CALLS_AND_TOKENS} Tokens are as the server counts them. What failed requests took is not known.
Degraded are questions without a usable answer in the search that quality is judged on. That search, which throughput is
measured on, finds the answers of the latency sample on disk."""


def comparison_section(report: BenchmarkReport) -> str:
    """Return the section.

    Args:
        report: a finished benchmark.
    """
    comparisons = by_figure(report)
    costs = cost_columns(report)
    columns = [*measure_columns(report), *costs]
    on_fronts = fronts(report)
    degraded = cautions([(result, degraded_note(report, result)) for result in report.configurations])
    unpriced = cautions([(result, price_note(report, result)) for result in report.configurations])
    legends = filter(None, [front_legend(report, MARK), prices_legend(report)])
    notes = "".join(f'\n<p class="note">{escaped(said)}</p>' for said in legends)
    below = notes + latency_cautions(report) + unpriced
    tested = _TESTED if comparisons else ""
    asked = _ASKED if any(column.count for column in costs) else ""
    families = list(dict.fromkeys(column.family for column in columns))
    spans = "".join(
        f'<th scope="colgroup" class="family" data-family="{escaped(family)}" colspan="{count}">'
        f"<span>{escaped(family_label(family))}</span></th>"
        for family, count in Counter(column.family for column in columns).items()
    )
    heads = "".join(_column_head(column, first) for column, first in _with_first(columns))
    bodies = "".join(
        _group_rows(report, columns, group, place, comparisons, on_fronts) for place, group in enumerate(query_groups(report))
    )
    return f"""<section aria-labelledby="results"><h2 id="results">Quality and cost</h2>
{_controls(report, families)}{degraded}
<div class="scroll" role="region" aria-labelledby="results" tabindex="0">
<table id="comparison">
<thead><tr><th scope="col" rowspan="2" class="name" data-sort="name">Configuration</th>{spans}</tr>
<tr>{heads}</tr></thead>
{bodies}</table>
</div>
<p class="note"><b class="best">Bold on a tint</b> is the best value measured in its column and group of queries, with
every value that prints the same. Differences to the baseline, <bdi>{escaped(report.baseline)}</bdi>, are subtracted
for measures and divided for costs{tested}. Latency is of one query at a time, throughput of one call with all queries; cost is
over all queries, whatever the group. 1 MB is 10<sup>6</sup> bytes; an index is counted without its items. Peak memory
is that of the whole process. Queries that found nothing score 0 and count.{asked}</p>{below}
</section>"""


def _controls(report: BenchmarkReport, families: list[str]) -> str:
    groups = query_groups(report)
    labels = [group_label(report, group) for group in groups]
    options = "".join(f'<option value="{place}">{label}</option>' for place, label in enumerate(labels))
    every = '<option value="">every group</option>' if len(groups) > 1 else ""
    boxes = "".join(
        f'<label><input type="checkbox" name="family" value="{escaped(family)}"'
        f"{' checked' if family in _SHOWN_FIRST else ''}> {escaped(family_label(family))}</label>"
        for family in families
    )
    return (
        '<div class="controls" hidden>'
        f'<label class="groups">Queries <select id="group">{options}{every}</select></label>'
        f'<fieldset><legend>Columns</legend>{boxes}</fieldset><label><input type="checkbox" id="differences"> '
        f"Differences to <bdi>{escaped(report.baseline)}</bdi></label></div>"
    )


def _with_first(columns: list[Column]) -> list[tuple[Column, bool]]:
    """Pair each column with whether it begins its family: there stands the rule that parts the families."""
    return [(column, not place or columns[place - 1].family != column.family) for place, column in enumerate(columns)]


def _column_head(column: Column, first: bool) -> str:
    full = column.label if column.cost else f"{family_label(column.family)} {column.label}"
    shown = "<br>".join(escaped(column.label).rsplit(" ", 1))
    return (
        f'<th scope="col" data-family="{escaped(column.family)}" data-label="{escaped(full)}"'
        f' data-sort="{"low" if column.lower_is_better else "high"}"{_first(first)}>{shown}</th>'
    )


def _first(first: bool) -> str:
    return ' class="first"' if first else ""


def _group_rows(
    report: BenchmarkReport,
    columns: list[Column],
    group: str,
    place: int,
    comparisons: Mapping[tuple[str, str, str], Comparison],
    on_fronts: Mapping[str, Front],
) -> str:
    cells: list[list[str]] = [[] for _ in report.configurations]
    is_baseline = [result.name == report.baseline for result in report.configurations]
    for column, first in _with_first(columns):
        values = [column.value(result, group) for result in report.configurations]
        best = column.best(values)
        baseline = values[is_baseline.index(True)] if any(is_baseline) else None
        on_front = on_fronts[column.key].names if column.key in on_fronts and not group else ()
        for row, value in enumerate(values):
            difference = "" if is_baseline[row] else column.difference(value, baseline)
            name = report.configurations[row].name
            compared = comparisons.get((group, column.key, name))
            cells[row].append(_cell(column, value, row in best, difference, first, compared, name in on_front))
    rows = "\n".join(
        f'<tr><th scope="row" class="name">{isolated(result.name)}{tags(report, result, group)}'
        f"{_front_tag(result, {} if group else on_fronts)}</th>{''.join(row)}</tr>"
        for result, row in zip(report.configurations, cells, strict=True)
    )
    head = f'<th scope="rowgroup" colspan="{len(columns) + 1}"><span>{group_label(report, group)}</span></th>'
    return f'<tbody data-group="{place}">\n<tr class="group">{head}</tr>\n{rows}\n</tbody>\n'


def _front_tag(result: ConfigurationResult, on_fronts: Mapping[str, Front]) -> str:
    """Say beside a name which fronts the configuration is on; with one front there is no need to say which."""
    costs = [_COSTS[key] for key, front in on_fronts.items() if result.name in front.names]
    which = f": {', '.join(costs)}" if len(on_fronts) > 1 else " front"
    return f'<small class="tag">{MARK} Pareto{which}</small>' if costs else ""


def _cell(
    column: Column,
    value: float | None,
    best: bool,
    difference: str,
    first: bool,
    compared: Comparison | None,
    on_front: bool,
) -> str:
    shown = escaped(column.text(value))
    if value is not None:
        shown = f'<data value="{value!r}"{" class=best" if best else ""}>{shown}</data>'
    spoken = '<span class="spoken"> best</span>' if best else ""
    small = f'<small class="difference">{escaped(difference)}</small>' if difference else ""
    if compared is not None and value is not None:
        shown += _mark(compared)
        small += _certainty(compared)
    if on_front:
        shown += f'<span class="mark front" aria-hidden="true" title="on the Pareto front">{MARK}</span>'
        spoken += '<span class="spoken"> on the Pareto front</span>'
    return f'<td data-family="{escaped(column.family)}"{_first(first)}>{shown}{spoken}{small}</td>'


def _mark(compared: Comparison) -> str:
    """Mark a verdict, for the eye and for the ear."""
    found = verdict(compared, ALPHA)
    if found == "not distinguishable":
        return ""
    said = f"{found} than the baseline, p {p_text(compared.p_holm)}"
    glyph = f'<span class="mark {CLASSES[found]}" aria-hidden="true" title="{escaped(said)}">{TRIANGLES.of(compared)}</span>'
    return f'{glyph}<span class="spoken"> {escaped(said)}</span>'


def _certainty(compared: Comparison) -> str:
    """Say under a difference how sure it is."""
    parts = [
        interval_text(compared),
        f"p {p_text(compared.p_holm)}",
        f"{compared.wins:,} / {compared.ties:,} / {compared.losses:,}",
    ]
    return "".join(f'<small class="difference">{escaped(part)}</small>' for part in parts)
