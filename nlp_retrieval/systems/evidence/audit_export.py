"""An audit for other programs: as a table in CSV, and as a Word document with a comment at each citation that does not pass."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from nlp_retrieval.core import write_output
from nlp_retrieval.errors import DependencyError, install
from nlp_retrieval.systems.evidence.audit import AuditRow
from nlp_retrieval.systems.evidence.audit_report import decisive, result_of, summary_sentence
from nlp_retrieval.systems.evidence.citations.report import CitedReport
from nlp_retrieval.text import spreadsheet_cell, visible

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph

_COLUMNS = (
    "number", "line", "mark", "status", "reason", "claim", "detail", "support", "url", "title", "passage", "decision", "review",
)  # fmt: skip
_STYLES = {"item": "List Bullet", "row": "List Bullet"}
_AUTHOR, _INITIALS = "Citation audit", "CA"
_NOT_IN_XML = str.maketrans(dict.fromkeys(("\ufffe", "\uffff"), "\ufffd"))


def audit_csv(rows: Sequence[AuditRow]) -> str:
    """Return the rows of an audit as CSV; a cell that a spreadsheet would read as a formula begins with an apostrophe."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(_COLUMNS)
    for row in rows:
        citation, review, passage = row.citation, row.review, row.passage
        values = {
            "number": citation.number,
            "line": citation.line,
            "mark": citation.mark,
            "status": row.status,
            "reason": row.reason,
            "claim": citation.sentence,
            "detail": row.detail,
            "support": f"{row.support_score:.2f}" if passage is not None else "",
            "url": citation.url,
            "title": (passage.title if passage is not None else "") or citation.title,
            "passage": decisive(row),
            "decision": "" if review is None else review.decision,
            "review": "" if review is None else review.said,
        }
        table.writerow([_cell(str(values[column])) for column in _COLUMNS])
    return written.getvalue()


def _cell(text: str) -> str:
    return spreadsheet_cell(" ".join(visible(text).split()))


def write_audit_docx(rows: Sequence[AuditRow], report: CitedReport, path: str | Path) -> None:
    """Write the text of a report as a Word document, with a comment at each citation that does not pass or was reviewed.

    Args:
        rows: of the audit.
        report: that was audited.
        path: of the document; a reader sees the old one or the complete new one.

    Raises:
        DependencyError: python-docx is not installed.
        OutputError: the file cannot be written.
    """
    try:
        import docx
    except ImportError as error:
        raise DependencyError(f"a Word document needs python-docx: {install('evidence')} ({error})") from None
    document = docx.Document()
    document.core_properties.title, document.core_properties.author = _text(report.title)[:255], _AUTHOR
    document.core_properties.comments = ""
    audited = {row.citation.number: row for row in rows}
    document.add_paragraph(summary_sentence(rows)).runs[0].italic = True
    for _, block in groupby(report.sentences, key=lambda sentence: sentence.block):
        sentences = list(block)
        kind = sentences[0].kind
        paragraph = document.add_heading(level=1) if kind == "heading" else document.add_paragraph(style=_STYLES.get(kind))
        for sentence in sentences:
            _add_sentence(
                document, paragraph, sentence.text, [audited[number] for number in sentence.citations if number in audited]
            )
    if report.references:
        document.add_heading("References", level=1)
    for entry in report.references:
        document.add_paragraph(_text(" ".join(filter(None, (f"[{entry.mark}]" if entry.mark else "", entry.title, entry.url)))))
    written = io.BytesIO()
    document.save(written)
    write_output(Path(path), written.getvalue())


def _add_sentence(document: Document, paragraph: Paragraph, text: str, rows: Sequence[AuditRow]) -> None:
    said = paragraph.add_run(_text(text))
    for row in rows:
        mark = paragraph.add_run(f" [{_text(row.citation.mark or 'link')}]")
        if not row.passes or (row.review is not None and row.review.said):
            document.add_comment([said, mark], _comment(row), _AUTHOR, _INITIALS)
    paragraph.add_run(" ")


def _comment(row: AuditRow) -> str:
    """Return what a comment says, a line for each part."""
    found = decisive(row)
    parts: Mapping[str, str] = {
        "": ": ".join(filter(None, (result_of(row).capitalize(), row.detail))),
        "The source says: ": found,
        "Source: ": row.citation.url,
        "See: ": row.other_source,
        "Review: ": "" if row.review is None else row.review.said,
    }
    return "\n".join(before + _text(text) for before, text in parts.items() if text)


def _text(text: str) -> str:
    """Return a text on one line that XML can hold."""
    return " ".join(visible(text).translate(_NOT_IN_XML).split())
