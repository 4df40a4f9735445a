"""What every form of a report shows is computed once, so that all of them say the same of a figure."""

from __future__ import annotations

import re

from nlp_retrieval.reports.figures import BETTER, WORSE, best_first
from nlp_retrieval.reports.page.page import render_page
from nlp_retrieval.reports.tables import markdown_table
from nlp_retrieval.reports.view import view_of

from .report_data import compared_report, printed


def test_the_terminal_the_page_and_the_tables_mark_the_same_figures() -> None:
    report = compared_report()
    view = view_of(report)
    rows = view.groups[0].rows
    wanted = [[row.cells[column.key].verdict for column in view.summary] for row in rows]
    main_first = sorted(range(len(view.summary)), key=lambda place: view.summary[place].key != view.main_measure)
    order = [[row.result.name for row in rows].index(result.name) for result in best_first(report)]

    def marks(lines: list[list[str]], better: str, worse: str) -> list[list[str]]:
        return [["better" if better in cell else "worse" if worse in cell else "" for cell in line] for line in lines]

    table = [line.split(" | ")[2:] for line in markdown_table(report).splitlines() if line.startswith("| all |")]
    assert marks(table, "†", "‡") == wanted
    lines = [line.split() for line in printed(report, 300).partition("configuration")[2].splitlines()]
    groups = len(view.groups) - 1  # beside all queries, of the main measure
    figures = [
        line[-len(view.summary) - groups :] for line in lines if line[:1] and line[0] in {row.result.name for row in rows}
    ]
    terminal = [[line[0], *line[1 + groups :]] for line in figures]
    printed_marks = [[wanted[row][place] for place in main_first] for row in order]
    assert marks(terminal[: len(rows)], BETTER, WORSE) == printed_marks
    body = re.findall(r"<tbody data-group.*?</tbody>", render_page(report), re.S)[0]
    found = {re.findall("<bdi>(.*?)</bdi>", row)[0]: row for row in re.findall(r'<tr><th scope="row".*?</tr>', body, re.S)}
    assert list(found) == [result.name for result in best_first(report)]
    cells = [re.findall(r"<td(?! class=.forest|.class=.axis).*?</td>", found[row.result.name], re.S) for row in rows]
    others = sorted(view.columns, key=lambda column: (column.key != view.main_measure, column.cost is None))
    keys = [column.key for column in others]
    shown = [[row[keys.index(column.key)] for column in view.summary] for row in cells]
    assert marks(shown, BETTER, WORSE) == wanted
    assert {said for row in wanted for said in row} == {"better", "worse", ""}
