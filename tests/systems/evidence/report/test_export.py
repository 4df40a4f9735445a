"""An audit in CSV and as a Word document."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import docx
import pytest

from nlp_retrieval.systems.evidence.audit_export import audit_csv, write_audit_docx
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit


def test_every_row_is_in_the_table():
    rows, _ = tram_audit()
    written = list(csv.DictReader(io.StringIO(audit_csv(rows))))
    assert [(row["status"], row["reason"], row["claim"]) for row in written] == [
        (row.status, row.reason, row.citation.sentence) for row in rows
    ]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\u200b=1", "\r-1", *ATTACKS.values()])
def test_no_cell_is_a_formula(text):
    rows, _ = attacked_audit(text)
    for row in csv.reader(io.StringIO(audit_csv(rows))):
        assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row)


def test_a_document_has_the_text_of_the_report_and_a_comment_for_each_citation_that_does_not_pass(tmp_path):
    rows, report = tram_audit()
    write_audit_docx(rows, report, tmp_path / "report.docx")
    document = docx.Document(tmp_path / "report.docx")
    text = "\n".join(paragraph.text for paragraph in document.paragraphs)
    assert all(sentence.text in text for sentence in report.sentences)
    assert all(entry.url in text for entry in report.references)
    comments = [comment.text for comment in document.comments]
    failing = [row for row in rows if not row.passes]
    assert len(comments) == len(failing)
    for row, comment in zip(failing, comments, strict=True):
        assert comment.startswith((row.reason or "not indexed").capitalize())
        assert row.detail in comment
    body = document.element.xml
    assert body.count("<w:commentRangeStart ") == body.count("<w:commentRangeEnd ") == len(failing)


@pytest.mark.parametrize("attack", [*ATTACKS.values(), "\ufffe\uffff\x00\x0b"])
def test_any_text_can_be_in_a_document(tmp_path, attack):
    rows, report = attacked_audit(attack)
    write_audit_docx([replace(row, review=row.review) for row in rows], report, tmp_path / "report.docx")
    assert len(list(docx.Document(tmp_path / "report.docx").comments)) == 0 + len(rows)
