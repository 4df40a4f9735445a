"""The answers of a study as a table for a spreadsheet: a row for each question and subject, in CSV or in XLSX."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nlp_retrieval.core import write_output
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.systems.policy.answers import AnswerFile, QuestionAnswer, StudyReport
from nlp_retrieval.systems.policy.hop.ranking import change_asked
from nlp_retrieval.text import spreadsheet_cell, visible

Status = Literal["addressed", "not addressed", "only one edition"]

_LONGEST_CELL = 32_000
_WIDTHS = {"question": 44, "value": 34, "sentence": 70, "document": 26, "passage": 22, "answer": 16}


@dataclass(frozen=True)
class AnswerRow:
    """A question to a subject, as an analyst reads it."""

    subject: str
    number: int
    question: str
    answer: Status
    values: tuple[str, ...]
    sentence: str
    page: str
    document: str
    passage: str
    score: float | None


def answer_rows(files: Iterable[AnswerFile]) -> Iterator[AnswerRow]:
    """Yield a row for each question of each file, in their order."""
    for file in files:
        for answer in file.questions.values():
            yield row_of(answer, file)


def row_of(answer: QuestionAnswer, file: AnswerFile) -> AnswerRow:
    """Return the row of one answer."""
    status = _status(answer, file)
    best = answer.best if status == "addressed" else None
    first = next((chunks[0] for chunks in answer.lists().values() if chunks), None)
    return AnswerRow(
        subject=file.metadata.subject,
        number=answer.question_number,
        question=answer.question,
        answer=status,
        values=() if best is None else tuple(value.text for value in best.values),
        sentence="" if best is None else best.sentence,
        page="" if best is None or best.page is None else str(best.page),
        document="" if best is None else best.document,
        passage="" if best is None else best.id,
        score=None if first is None else first.combined_score,
    )


def _status(answer: QuestionAnswer, file: AnswerFile) -> Status:
    if file.metadata.editions == 1 and change_asked(answer.question) is not None:
        return "only one edition"
    return "addressed" if answer.addressed else "not addressed"


def answers_csv(report: StudyReport, field: str) -> str:
    """Return the rows of a study as CSV; a cell that a spreadsheet would read as a formula begins with an apostrophe."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    for row in _table(report, field):
        table.writerow([spreadsheet_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return written.getvalue()


def write_answers_xlsx(report: StudyReport, field: str, path: str | Path) -> None:
    """Write the rows of a study as a workbook: a sheet of subjects by questions, and one with a row for each cell."""
    try:
        import xlsxwriter
    except ImportError as error:
        raise DependencyError(f"a workbook needs XlsxWriter: {install('policy')} ({error})") from None
    written = io.BytesIO()
    settings = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(written, settings) as book:
        head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        body = book.add_format({"text_wrap": True, "valign": "top"})
        quiet = book.add_format({"text_wrap": True, "valign": "top", "font_color": "#777777", "italic": True})
        _write_overview(book.add_worksheet("Overview"), report, field, head, body, quiet)
        sheet, rows = book.add_worksheet("Answers"), list(_table(report, field))
        for place, row in enumerate(rows):
            for column, cell in enumerate(row):
                _write(sheet, place, column, cell, head if place == 0 else body)
        for column, name in enumerate(rows[0]):
            sheet.set_column(column, column, _WIDTHS.get(str(name), 12))
        sheet.freeze_panes(1, 2)
        sheet.autofilter(0, 0, len(rows) - 1, len(rows[0]) - 1)
    write_output(Path(path), written.getvalue())


def _write_overview(sheet: Any, report: StudyReport, field: str, head: Any, body: Any, quiet: Any) -> None:
    rows = list(answer_rows(report.everything()))
    questions = {row.number: row.question.replace(row.subject, f"the {field}") for row in rows}
    subjects = {name: place for place, name in enumerate(dict.fromkeys(row.subject for row in rows), start=1)}
    columns = {number: place for place, number in enumerate(sorted(questions), start=1)}
    _write(sheet, 0, 0, field, head)
    for number, column in columns.items():
        _write(sheet, 0, column, f"{number}. {questions[number]}", head)
    for name, place in subjects.items():
        _write(sheet, place, 0, name, head)
    for row in rows:
        told = row.answer == "addressed" and bool(row.sentence)
        page = f" (page {row.page})" if row.page else ""
        text = f"{row.values[0]}: {row.sentence}{page}" if row.values else f"{row.sentence}{page}"
        _write(sheet, subjects[row.subject], columns[row.number], text if told else row.answer, body if told else quiet)
    sheet.set_column(0, 0, 22)
    sheet.set_column(1, max(columns.values(), default=1), 40)
    sheet.freeze_panes(1, 1)


def _write(sheet: Any, row: int, column: int, cell: str | int, style: Any) -> None:
    if isinstance(cell, int):
        sheet.write_number(row, column, cell, style)
    else:
        sheet.write_string(row, column, cell[:_LONGEST_CELL], style)


def _table(report: StudyReport, field: str) -> Iterator[list[str | int]]:
    """Yield the head and the rows."""
    yield [field, "number", "question", "answer", "value", "sentence", "page", "document", "passage"]
    for row in answer_rows(report.everything()):
        texts = (row.answer, "; ".join(row.values), row.sentence, row.page, row.document, row.passage)
        yield [_line(row.subject), row.number, _line(row.question), *map(_line, texts)]


def _line(text: str) -> str:
    """Return a text on one line, without characters that cannot be seen."""
    return " ".join(visible(text).split())
