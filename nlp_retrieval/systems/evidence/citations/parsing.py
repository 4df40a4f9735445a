"""Reading a report in HTML, LaTeX, DOCX or PDF from its bytes, within the child process that has limits for it."""

from __future__ import annotations

from collections.abc import Callable

from nlp_retrieval.systems.evidence.citations.blocks import ReportText
from nlp_retrieval.systems.evidence.citations.docx import read_docx
from nlp_retrieval.systems.evidence.citations.html import read_html
from nlp_retrieval.systems.evidence.citations.latex import read_latex
from nlp_retrieval.systems.evidence.citations.pdf import read_pdf_report


def parse_report(kind: str, data: bytes, where: str) -> ReportText:
    """Return the text of a report, in this process: HTML, LaTeX, DOCX or PDF.

    Raises:
        SourceError: it cannot be read.
    """
    if kind in ("docx", "pdf"):
        return (read_docx if kind == "docx" else read_pdf_report)(data, where)
    readers: dict[str, Callable[[str, str], ReportText]] = {"html": read_html, "latex": read_latex}
    return readers[kind](data.decode(), where)
