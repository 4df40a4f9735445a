"""The part of the report that says which differences from the baseline are more than chance, and how sure each is."""

from __future__ import annotations

from collections.abc import Sequence

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.evaluation.by_group import LEVEL
from nlp_retrieval.evaluation.comparison import Comparison
from nlp_retrieval.evaluation.verdict import limits, sentence, verdict
from nlp_retrieval.reports.columns import family_label, query_groups, signed, split_measure, summary_columns
from nlp_retrieval.reports.marks import (
    ALPHA,
    NOTHING_TO_FIND,
    TRIANGLES,
    by_figure,
    out_of_reach,
    p_text,
    unit,
)
from nlp_retrieval.reports.page.text import escaped, group_label, isolated

CLASSES = {"better": "better", "worse": "worse", "not distinguishable": "chance"}
_HEADS = ("Verdict", "Difference", f"{LEVEL:.0%} interval", "", "p (Holm)", "d<sub>z</sub>", "won / tied / lost")
_WIDTH, _HEIGHT, _MARGIN = 280.0, 16.0, 6.0


def significance_section(report: BenchmarkReport) -> str:
    """Return the section; empty where nothing was compared.

    Args:
        report: a finished benchmark.
    """
    comparisons = by_figure(report)
    if not comparisons:
        return ""
    main = report.main_measure
    measures = [column.key for column in summary_columns(report) if not column.cost] or [main]
    groups = [group for group in query_groups(report) if report.comparisons.get(group)]
    hopeless = {group: reason for reason, named in out_of_reach(report).items() for group in named}
    bodies = "".join(
        _rows(report, group, measure, [one for one in report.comparisons[group] if one.measure == measure], hopeless.get(group))
        for group in groups
        for measure in measures
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    return f"""<section aria-labelledby="significance"><h2 id="significance">Differences to the baseline</h2>
{_controls(report, groups, measures, main)}
<div class="scroll" role="region" aria-labelledby="significance" tabindex="0">
<table id="verdicts"><thead><tr><th scope="col" class="name">Configuration</th>{heads}</tr></thead>
{bodies}</table></div>
<p class="note">Verdicts are those of a paired randomisation test (Fisher), corrected by Holm's method for the comparisons
with {isolated(report.baseline)} in one measure and one group, at level {ALPHA:g}; nothing else makes a difference real here.
Queries of one family keep together. The test takes it that, if nothing differs, a difference is as likely to have the other
sign; the interval takes no such thing, only that a query's value lies in the range of the measure, and is not corrected. So it
can hold 0 where the verdict is better or worse: then a few large differences of the other sign, not seen among these
queries, could turn it. d<sub>z</sub> is the difference in standard deviations of the families' differences. Won and lost are
queries.</p></section>"""


def _controls(report: BenchmarkReport, groups: Sequence[str], measures: Sequence[str], main: str) -> str:
    of_groups = "".join(
        f'<option value="{query_groups(report).index(group)}">{group_label(report, group)}</option>' for group in groups
    )
    of_measures = "".join(
        f'<option value="{escaped(measure)}"{" selected" if measure == main else ""}>{_title(measure)}</option>'
        for measure in measures
    )
    return (
        '<div class="controls" hidden>'
        f'<label class="groups">Measure <select id="tested-measure">{of_measures}</select></label>'
        f'<label class="groups">Queries <select id="tested-group">{of_groups}</select></label></div>'
    )


def _title(measure: str) -> str:
    family, cutoff = split_measure(measure)
    return escaped(f"{family_label(family)} @{cutoff}" if cutoff else family_label(family))


def _rows(report: BenchmarkReport, group: str, measure: str, compared: Sequence[Comparison], hopeless: str | None) -> str:
    ends = [bound for one in compared for bound in (0.0, *one.interval)]
    scale = (min(ends), max(ends))
    rows = "\n".join(_row(one, scale, hopeless) for one in compared)
    about = f"{_title(measure)}, {group_label(report, group)}"
    if compared and compared[0].families != compared[0].queries:
        about += f": {unit(compared[0])}"
    if hopeless:
        about += f'</span><small class="reason">{NOTHING_TO_FIND}: {escaped(hopeless)}</small><span>'
    said = "".join(f"<li>{escaped(sentence(one, ALPHA))}</li>" for one in compared)
    span = len(_HEADS) + 1
    return (
        f'<tbody data-group="{query_groups(report).index(group)}" data-measure="{escaped(measure)}">\n'
        f'<tr class="group"><th scope="rowgroup" colspan="{span}"><span>{about}</span></th></tr>\n{rows}\n'
        f'<tr class="sentences"><td colspan="{span}"><details><summary>In sentences</summary><ul>{said}</ul></details></td>'
        "</tr>\n</tbody>\n"
    )


def _row(one: Comparison, scale: tuple[float, float], hopeless: str | None) -> str:
    found = verdict(one, ALPHA)
    reason = limits(one, ALPHA) if found == "not distinguishable" else ""
    small = f'<small class="reason">{escaped(reason)}</small>' if reason and reason != hopeless else ""
    mark = TRIANGLES.of(one)
    glyph = f'<span aria-hidden="true">{mark}</span> ' if mark else ""
    effect = "" if one.effect_size is None else signed(one.effect_size, 2)
    cells = [
        f'<td class="verdict"><span class="{CLASSES[found]}">{glyph}{found}</span>{small}</td>',
        _figure(one.difference, signed(one.difference)),
        f"<td>{interval_text(one)}</td>",
        f'<td class="plot {CLASSES[found]}">{_plot(one, scale, found != "not distinguishable")}</td>',
        _figure(one.p_holm, escaped(p_text(one.p_holm))),
        f"<td>{effect}</td>",
        f"<td>{one.wins:,} / {one.ties:,} / {one.losses:,}</td>",
    ]
    return f'<tr><th scope="row" class="name">{isolated(one.system)}</th>{"".join(cells)}</tr>'


def _figure(value: float, shown: str) -> str:
    return f'<td><data value="{value!r}">{shown}</data></td>'


def interval_text(one: Comparison) -> str:
    """Return the interval of a difference: ``"+0.021 to +0.080"``."""
    low, high = one.interval
    return f"{signed(low)} to {signed(high)}" if low < high else signed(low)


def _plot(one: Comparison, scale: tuple[float, float], borne_out: bool) -> str:
    """Draw the interval with its difference; decorative beside the figures. The point is hollow where it may be chance."""
    low, high = scale
    per = (_WIDTH - 2 * _MARGIN) / (high - low) if high > low else 0.0
    zero, left, right, at = (_MARGIN + (value - low) * per for value in (0.0, *one.interval, one.difference))
    middle = _HEIGHT / 2
    return (
        f'<svg class="interval" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" aria-hidden="true">'
        f'<path class="zero" stroke="currentColor" d="M{zero:.1f},0V{_HEIGHT:.0f}"/>'
        f'<path class="span" stroke="currentColor" d="M{left:.1f},{middle:.0f}H{right:.1f}"/>'
        f'<path class="{"point" if borne_out else "hollow point"}" fill="currentColor" stroke="currentColor" '
        f'd="M{at - 3.5:.1f},{middle:.0f}a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z"/></svg>'
    )
