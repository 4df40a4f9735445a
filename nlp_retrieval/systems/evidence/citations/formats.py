"""Reading a report of any format, and a bibliography beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
from nlp_retrieval.text import printable

ReportFormat = Literal["markdown", "html", "latex"]
"""Formats of a report that are text."""

_SUFFIXES = {".html": "html", ".htm": "html", ".xhtml": "html", ".tex": "latex", ".latex": "latex", ".pdf": "pdf"}


def read_report_file(path: Path) -> Document:
    """Return the text of a report, by its first bytes and its suffix; text under an unknown suffix is Markdown."""
    data, suffix = read_file(path, follow_link=True), path.suffix.lower()
    if data.startswith(b"PK\x03\x04") or suffix in (".docx", ".docm", ".dotx"):
        kind = "docx"
    elif data.startswith((b"%PDF-", b"\xd0\xcf\x11\xe0", b"{\\rtf")):  # only the first of these is read
        kind = "pdf"
    else:
        kind = _SUFFIXES.get(suffix, "markdown")
    return _read(data, kind, printable(str(path)))


def read_text(text: str, kind: ReportFormat = "markdown") -> Document:
    """Return the text of a report that is given as text."""
    if kind == "markdown":
        return read_markdown(text.removeprefix("\ufeff"), "the report")
    return _read(text.encode("utf-8", "replace"), kind, "the report")


def _read(data: bytes, kind: str, where: str) -> Document:
    """Read a report; a page is called by its first heading, rather than by what a browser shows above its window."""
    if kind == "markdown":
        return read_markdown(decode_text(data, where=where), where)
    report = read_document(data, where, kind=kind)
    if kind != "html":
        return report
    has_heading = any(block.kind == "heading" and not block.outside for block in report.blocks)
    hidden = [f"{n:,} hidden elements with text were left out"] if (n := report.removed["hidden"]) else []
    return replace(report, title="" if has_heading else report.title, notes=[*report.notes, *hidden])


def read_bibliography_file(path: Path) -> list[Reference]:
    """Return the entries of a bibliography that the user named."""
    where = printable(str(path))
    return bibliography_of(decode_text(read_file(path, follow_link=True), where=where), where)
