"""Text of a DOCX as a source."""

from __future__ import annotations

import pytest
from systems.evidence.citations.test_formats import docx_of, run

from nlp_retrieval.documents import read_document
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.systems.evidence.source_files import read_sources


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
    with pytest.raises(SourceError, match=r"DOCX|no visible text"):
        read_document(data, "a.docx")


def test_a_docx_that_unpacks_to_far_more_than_a_document_is_refused():
    with pytest.raises(SourceError, match=r"a\.docx: word/document\.xml unpacks from .*, far more than a document"):
        read_document(docx_of(f"<w:p>{run('a' * 30_000_000)}</w:p>"), "a.docx")
