"""Reading a report of any format, and a bibliography beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePath
from typing import Literal

from nlp_retrieval.documents import (
    Document,
    Reference,
    bibliography_of,
    decode_text,
    read_document,
    read_file,
    read_markdown,
)
from nlp_retrieval.errors import SourceError
from nlp_retrieval.text import printable

ReportFormat = Literal["markdown", "html", "latex"]
"""Formats of a report that are text."""

_SUFFIXES = {".html": "html", ".htm": "html", ".xhtml": "html", ".tex": "latex", ".latex": "latex", ".pdf": "pdf"}


def read_report_file(path: Path) -> Document:
    """Return the text of a report, by its first bytes and its suffix; text under an unknown suffix is Markdown."""
    where = printable(str(path))
    if path.is_dir():
        raise SourceError(f"{where} cannot be read: Is a directory")
    data = read_file(path, follow_link=True)
    kind = _SUFFIXES.get(PurePath(path).suffix.lower(), "markdown")
    if data.startswith(b"PK\x03\x04") or PurePath(path).suffix.lower() in (".docx", ".docm", ".dotx"):
        kind = "docx"
    if data.startswith((b"%PDF-", b"\xd0\xcf\x11\xe0", b"{\\rtf")) or kind != "markdown":
        return _headed(read_document(data, where, kind="pdf" if data.startswith(b"%PDF-") else kind), kind)
    return read_text(decode_text(data, where=where), where=where)


def read_text(text: str, kind: str = "markdown", where: str = "the report") -> Document:
    """Return the text of a report that is given as text."""
    if kind == "markdown":
        return read_markdown(text, where)
    return _headed(read_document(text.encode("utf-8", "replace"), where, kind=kind), kind)


def _headed(report: Document, kind: str) -> Document:
    """Return a page that is called by its first heading, rather than by what a browser shows above its window."""
    if kind != "html":
        return report
    has_heading = any(block.kind == "heading" and not block.outside for block in report.blocks)
    hidden = [f"{n:,} hidden elements with text were left out"] if (n := report.removed["hidden"]) else []
    return replace(report, title="" if has_heading else report.title, notes=[*report.notes, *hidden])


def read_bibliography_file(path: Path) -> list[Reference]:
    """Return the entries of a bibliography that the user named."""
    where = printable(str(path))
    return bibliography_of(decode_text(read_file(path, follow_link=True), where=where), where)
