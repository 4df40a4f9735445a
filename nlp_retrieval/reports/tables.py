"""Results as tables in files: Markdown, LaTeX, Parquet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.reports.figures import BETTER, MARK, NO_VERDICT, NOTHING_TO_FIND, WORSE, family_label, mark_of
from nlp_retrieval.reports.view import QueryGroup, ReportView, Row, view_of
from nlp_retrieval.text.printing import counted, printable

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "]": "{]}",
    "\N{MULTIPLICATION SIGN}": r"$\times$", "\N{EN DASH}": "--",
    BETTER: r"$^{\dagger}$", WORSE: r"$^{\ddagger}$", "\N{DAGGER}": r"$^{\dagger}$", "\N{DOUBLE DAGGER}": r"$^{\ddagger}$",
    MARK: r"$^{\diamond}$",
}  # fmt: skip
Writer = Callable[[str], str]
_DAGGERS = {BETTER: "\N{DAGGER}", WORSE: "\N{DOUBLE DAGGER}"}


def markdown_table(report: BenchmarkReport | ReportView) -> str:
    """Return the table in GitHub's Markdown."""
    view = view_of(report)
    heads = ["queries", "configuration", *(column.title for column in view.summary)]
    lines = [_markdown_row(map(_markdown, heads)), _markdown_row(["---", "---", *["---:"] * len(view.summary)])]
    for group in view.groups:
        for row in group.rows:
            figures = _figures(row, view, str, lambda text: f"**{text}**", lambda mark: mark)
            lines.append(_markdown_row([_markdown(_short(group)), _markdown(_named(row)), *figures]))
    return "\n".join([*lines, "", _markdown(" ".join(_notes(view))), ""])


def latex_table(report: BenchmarkReport | ReportView) -> str:
    r"""Return the table in LaTeX, for ``\usepackage{booktabs}``."""
    view = view_of(report)
    families = [(family, len([*columns])) for family, columns in groupby(view.summary, lambda column: column.family)]
    spans = [rf"\multicolumn{{{number}}}{{c}}{{{_latex(family_label(family))}}}" for family, number in families]
    meanings = {BETTER: "better", WORSE: "worse"}
    marks = ", ".join(f"{_latex(mark)} {meaning}" for mark, meaning in meanings.items() if mark in view.legend)
    said = f"; {marks} than {_latex(view.report.baseline)} by the corrected test" if marks else ""
    queries = counted(view.report.query_counts.get("", 0), "query", "queries")
    lines = [
        r"% needs \usepackage{booktabs}",
        *(f"% {note}" for note in map(_latex, _notes(view))),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(view.dataset or 'Retrieval')}, {queries}{said}.}}",
        r"\label{tab:retrieval}",
        rf"\begin{{tabular}}{{ll{'r' * len(view.summary)}}}",
        r"\toprule",
        _latex_row(["", "", *spans]),
        _latex_row(["Queries", "Configuration", *(_latex(column.label) for column in view.summary)]),
    ]
    for group in view.groups:
        lines.append(r"\midrule")
        for row in group.rows:
            figures = _figures(row, view, _latex, lambda text: rf"\textbf{{{text}}}", lambda mark: rf"\rlap{{{_latex(mark)}}}")
            lines.append(_latex_row([_latex(_short(group)), _latex(_named(row)), *figures]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _figures(row: Row, view: ReportView, plain: Writer, bold: Writer, marked: Writer) -> list[str]:
    """The figures of a configuration, with their marks; cost is measured over all queries, and shown there."""
    figures = []
    for cell in (row.cells[column.key] for column in view.summary):
        mark = MARK if cell.on_front else _DAGGERS.get(mark_of(cell.comparison), "")
        text = bold(plain(cell.text)) if cell.best else plain(cell.text)
        figures.append("" if cell.repeated else text + (marked(mark) if mark else ""))
    return figures


def _named(row: Row) -> str:
    return row.result.name + (" (baseline)" if row.is_baseline else "")


def _notes(view: ReportView) -> list[str]:
    hopeless = [
        f"{', '.join(map(_short, groups))}: {NOTHING_TO_FIND}: {reason}." for reason, groups in view.out_of_reach.items()
    ]
    legend = view.legend.replace(BETTER, _DAGGERS[BETTER]).replace(WORSE, _DAGGERS[WORSE])
    notes = [legend, view.chance, *hopeless, NO_VERDICT, view.front_legend, view.prices]
    return [note for note in [view.counted, *notes, *view.cautions, *view.failures] if note]


def _short(group: QueryGroup) -> str:
    return group.name or "all"


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", printable(text))


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in printable(text))


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
