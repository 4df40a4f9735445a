"""The answers of a study as a table for a spreadsheet: a row for each question and subject, in CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from nlp_retrieval.systems.policy.answers import AnswerFile, QuestionAnswer, StudyReport
from nlp_retrieval.systems.policy.hop.ranking import change_asked
from nlp_retrieval.text import spreadsheet_cell, visible

Status = Literal["addressed", "not addressed", "only one edition"]


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


def _table(report: StudyReport, field: str) -> Iterator[list[str | int]]:
    """Yield the head and the rows."""
    yield [field, "number", "question", "answer", "value", "sentence", "page", "document", "passage"]
    for row in answer_rows(report.everything()):
        texts = (row.answer, "; ".join(row.values), row.sentence, row.page, row.document, row.passage)
        yield [_line(row.subject), row.number, _line(row.question), *map(_line, texts)]


def _line(text: str) -> str:
    """Return a text on one line, without characters that cannot be seen."""
    return " ".join(visible(text).split())
