"""Results as tables in files: Markdown, LaTeX, Parquet."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from nlp_retrieval.benchmarks.results import BenchmarkReport
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.measures import OF_ANSWERS, Measure
from nlp_retrieval.reports.figures import (
    ANSWER_COLUMNS,
    BETTER,
    COST,
    COST_COLUMNS,
    LANGUAGE_MODEL_COLUMNS,
    MARK,
    NO_VERDICT,
    NOTHING_TO_FIND,
    WORSE,
    Column,
    family_label,
    mark_of,
)
from nlp_retrieval.reports.view import QueryGroup, ReportView, Row, view_of
from nlp_retrieval.text.printing import counted, printable, spreadsheet_cell

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "[": "{[}", "]": "{]}",
    "\N{MULTIPLICATION SIGN}": r"$\times$", "\N{EN DASH}": "--",
    BETTER: r"$^{\dagger}$", WORSE: r"$^{\ddagger}$", "\N{DAGGER}": r"$^{\dagger}$", "\N{DOUBLE DAGGER}": r"$^{\ddagger}$",
    MARK: r"$^{\diamond}$",
}  # fmt: skip
_DAGGERS = {BETTER: "\N{DAGGER}", WORSE: "\N{DOUBLE DAGGER}"}


def markdown_table(report: BenchmarkReport | ReportView) -> str:
    """Return the table in GitHub's Markdown."""
    view = view_of(report)
    heads = ["queries", "configuration", *(column.title for column in view.summary)]
    lines = [_markdown_row(map(_markdown, heads)), _markdown_row(["---", "---", *["---:"] * len(view.summary)])]
    for group in view.groups:
        for row in group.rows:
            figures = _figures(row, view, lambda text: f"**{text}**", lambda mark: mark)
            lines.append(_markdown_row([_markdown(_short(group)), _markdown(_named(row)), *figures]))
    return "\n".join([*lines, "", _markdown(" ".join(_notes(view))), ""])


def latex_table(report: BenchmarkReport | ReportView) -> str:
    r"""Return the table in LaTeX, for ``\usepackage{booktabs}``."""
    view = view_of(report)
    families = [(family, len([*columns])) for family, columns in groupby(view.summary, lambda column: column.family)]
    spans = [rf"\multicolumn{{{number}}}{{c}}{{{_latex(family_label(family))}}}" for family, number in families]
    meanings = {BETTER: "better", WORSE: "worse"}
    found = [mark for mark in meanings if mark in view.legend]
    marks = ", ".join(f"{_latex(mark)} {meanings[mark]}" for mark in found)
    said = f"; {marks} than {_latex(view.report.baseline)} by the corrected test" if found else ""
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
            figures = _figures(row, view, lambda text: rf"\textbf{{{text}}}", lambda mark: rf"\rlap{{{_latex(mark)}}}")
            lines.append(_latex_row([_latex(_short(group)), _latex(_named(row)), *figures]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def _figures(row: Row, view: ReportView, bold: Callable[[str], str], marked: Callable[[str], str]) -> list[str]:
    """The figures of a configuration, with their marks; cost is measured over all queries, and shown there."""
    figures = []
    for cell in (row.cells[column.key] for column in view.summary):
        mark = MARK if cell.on_front else _DAGGERS.get(mark_of(cell.comparison), "")
        text = bold(cell.text) if cell.best else cell.text
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


ALL = "all"


def chosen_columns(view: ReportView, names: Sequence[str]) -> list[Column]:
    """Return columns by key (``recall@5``), family (``recall``, ``cost``) or ``all``; by default those of the summary."""
    chosen: dict[str, Column] = {}
    for name in names:
        columns = [column for column in view.columns if name in (column.key, column.family, ALL)]
        if not columns:
            known = [ALL, *dict.fromkeys(name for column in view.columns for name in (column.family, column.key))]
            raise ConfigurationError(f"there is no column {name!r}; {nearest(name, known)}")
        chosen |= {column.key: column for column in columns}
    return list(chosen.values()) or list(view.summary)


def refuse_unknown_columns(names: Sequence[str], measures: Sequence[str]) -> None:
    """Raise an error for columns that no benchmark with these measures has."""
    costs = [column.key for column in (*COST_COLUMNS, *LANGUAGE_MODEL_COLUMNS, *ANSWER_COLUMNS)] + ["price_per_1000_queries"]
    families = [Measure.parse(measure).family for measure in measures]
    known = dict.fromkeys([ALL, COST, *families, *measures, *OF_ANSWERS, *costs])
    for name in names:
        if name not in known:
            raise ConfigurationError(f"there is no column {name!r}; {nearest(name, known)}")


def csv_table(view: ReportView, columns: Sequence[Column]) -> str:
    """Return the comparison as CSV, with a heading."""
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["queries", "configuration", "baseline", *(column.key for column in columns)])
    for row in _rows(view, columns):
        rows.writerow([_safe(value) for value in row.values()])
    return written.getvalue()


def json_table(view: ReportView, columns: Sequence[Column]) -> str:
    """Return the comparison as a list of objects in JSON; a figure that was not measured is null."""
    return json.dumps(list(_rows(view, columns)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _rows(view: ReportView, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    for group in view.groups:
        for row in group.rows:
            about = {"queries": printable(group.name or ALL), "configuration": printable(row.result.name)}
            cells = [row.cells[column.key] for column in columns]
            figures = {cell.column.key: None if cell.repeated else cell.value for cell in cells}
            yield about | {"baseline": row.is_baseline} | figures


def _safe(value: object) -> object:
    if isinstance(value, str):
        return spreadsheet_cell(value)
    return str(value).lower() if isinstance(value, bool) else value
