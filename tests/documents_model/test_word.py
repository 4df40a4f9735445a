"""Text of a DOCX as a source."""

from __future__ import annotations

import docx
import pytest
from systems.evidence.citations.test_formats import docx_of

from nlp_retrieval.documents import read_document
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.systems.evidence.source_files import read_sources


def test_a_docx_that_a_word_processor_wrote_is_a_source(tmp_path):
    document = docx.Document()
    document.add_heading("On Bees", 0)
    paragraph = document.add_paragraph("Bees fly 3 km")
    paragraph.add_run("2").font.superscript = True
    paragraph.add_run(" around the hive.")
    for text in ("They dance.", "They sleep."):
        document.add_paragraph(text, style="List Bullet")
    table = document.add_table(3, 2)
    for row, texts in zip(table.rows, (("Year", "Hives"), ("2020", "12"), ("2021", "15")), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    document.add_paragraph("The end.")
    document.save(tmp_path / "bees.docx")
    (source,) = read_sources(tmp_path / "bees.docx")
    assert source.title == "On Bees"
    assert source.content == (
        "On Bees\n\nBees fly 3 km\u00b2 around the hive.\n\n- They dance.\n- They sleep.\n\n"
        "Year | Hives\n2020 | 12\n2021 | 15\n\nThe end."
    )


def test_the_accepted_text_is_read_and_that_is_said(tmp_path):
    body = (
        "<w:p><w:r><w:t>The bridge is </w:t></w:r><w:del><w:r><w:delText>not </w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>very </w:t></w:r></w:ins><w:r><w:t>safe.</w:t></w:r></w:p>"
    )
    (tmp_path / "a.docx").write_bytes(docx_of(body, vbaProject=""))
    with pytest.warns(RetrievalWarning, match=r"notes on how files were read: .*tracked insertions"):
        (source,) = read_sources(tmp_path / "a.docx")
    assert source.content == "The bridge is very safe."


@pytest.mark.parametrize("data", [b"PK\x03\x04 no zip", b"text", docx_of("<w:p/>")], ids=["damaged", "text", "empty"])
def test_what_is_no_docx_or_has_no_text_is_refused(data):
    with pytest.raises(SourceError, match="DOCX"):
        read_document(data, "a.docx")
