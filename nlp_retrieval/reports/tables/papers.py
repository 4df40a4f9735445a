"""The comparison as a table in Markdown and in LaTeX, with the marks of the corrected test.

Columns are those of the terminal where it is wide enough. A dagger is a configuration better than the baseline, a double
dagger one that is worse; a diamond stands after the cost of one on the Pareto front.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.columns import COST, Column, family_label, query_groups, summary_columns
from nlp_retrieval.reports.failures import failure_notes
from nlp_retrieval.reports.marks import DAGGERS, NO_VERDICT, NOTHING_TO_FIND, by_chance, by_figure, legend, out_of_reach
from nlp_retrieval.reports.notes import comparison_notes, prices_legend
from nlp_retrieval.reports.pareto import MARK, front_legend, fronts
from nlp_retrieval.text.printable import printable

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "]": "{]}",
    "\N{MULTIPLICATION SIGN}": r"$\times$", "\N{EN DASH}": "--",
}  # fmt: skip
_LATEX_MARKS = {DAGGERS.better: r"$^{\dagger}$", DAGGERS.worse: r"$^{\ddagger}$", MARK: r"$^{\diamond}$"}


def markdown_table(report: BenchmarkReport) -> str:
    """Return the table in GitHub's Markdown.

    Args:
        report: a finished benchmark.
    """
    columns = summary_columns(report)
    heads = ["queries", "configuration", *(_label(column) for column in columns)]
    lines = [_markdown_row(map(_markdown, heads)), _markdown_row(["---", "---", *["---:"] * len(columns)])]
    for group in query_groups(report):
        rows = _rows(report, columns, group, lambda text: f"**{text}**", lambda mark: mark)
        lines += [_markdown_row([_markdown(_group(group)), _markdown(name), *figures]) for name, figures in rows]
    return "\n".join([*lines, "", _markdown(" ".join(_notes(report))), ""])


def latex_table(report: BenchmarkReport) -> str:
    r"""Return the table in LaTeX, for ``\usepackage{booktabs}``.

    Args:
        report: a finished benchmark.
    """
    columns = summary_columns(report)
    families = Counter(column.family for column in columns)
    spans = [rf"\multicolumn{{{number}}}{{c}}{{{_latex(family_label(family))}}}" for family, number in families.items()]
    heads = ["Queries", "Configuration", *(_latex(column.label) for column in columns)]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex_notes(report)}}}",
        rf"\begin{{tabular}}{{ll{'r' * len(columns)}}}",
        r"\toprule",
        _latex_row(["", "", *spans]),
        _latex_row(heads),
    ]
    for group in query_groups(report):
        lines.append(r"\midrule")
        rows = _rows(report, columns, group, lambda text: rf"\textbf{{{text}}}", lambda mark: rf"\rlap{{{_LATEX_MARKS[mark]}}}")
        lines += [_latex_row([_latex(_group(group)), _latex(name), *figures]) for name, figures in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _rows(
    report: BenchmarkReport, columns: list[Column], group: str, bold: Callable[[str], str], marked: Callable[[str], str]
) -> list[tuple[str, list[str]]]:
    """Names and figures of one group of queries; cost is measured over all queries, and given there."""
    comparisons, on_fronts = by_figure(report), {} if group else fronts(report)
    rows: list[tuple[str, list[str]]] = [
        (result.name + (" (baseline)" if result.name == report.baseline else ""), []) for result in report.configurations
    ]
    for column in columns:
        values = [None if group and column.cost else column.value(result, group) for result in report.configurations]
        best = column.best(values)
        for place, (result, (_, figures)) in enumerate(zip(report.configurations, rows, strict=True)):
            text = "" if group and column.cost else column.text(values[place])
            on_front = column.key in on_fronts and result.name in on_fronts[column.key].names
            mark = MARK if on_front else DAGGERS.of(comparisons.get((group, column.key, result.name)))
            figures.append((bold(text) if place in best else text) + (marked(mark) if mark else ""))
    return rows


def _notes(report: BenchmarkReport) -> list[str]:
    hopeless = [
        f"{', '.join(map(_group, groups))}: {NOTHING_TO_FIND}: {reason}." for reason, groups in out_of_reach(report).items()
    ]
    notes = [
        legend(report, DAGGERS),
        by_chance(report),
        *hopeless,
        NO_VERDICT,
        front_legend(report, MARK),
        prices_legend(report),
    ]
    notes += [report.selection_note, *comparison_notes(report), *failure_notes(report)]
    return [note for note in notes if note]


def _label(column: Column) -> str:
    if column.family == COST:
        return column.label
    return family_label(column.family) + column.label if column.label.startswith("@") else column.label


def _group(group: str) -> str:
    return group or "all"


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", printable(text))


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in printable(text))


def _latex_notes(report: BenchmarkReport) -> str:
    text = _latex(" ".join(_notes(report)))
    for mark, written in _LATEX_MARKS.items():
        text = text.replace(mark, written)
    return text


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
