"""Reading a report in the format that it is written in: Markdown, HTML, LaTeX, DOCX or PDF.

Only Markdown is read in this process. The others are read in a child process with limits of time and memory, as sources are,
since a report may come from anyone.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Literal

from nlp_retrieval.errors import DependencyError, SourceError, install
from nlp_retrieval.systems.evidence.citations.bibliography import Bibliography, read_bibliography
from nlp_retrieval.systems.evidence.citations.blocks import ReportText
from nlp_retrieval.systems.evidence.citations.markdown import blocks_of
from nlp_retrieval.systems.evidence.reading.child import call_in_child
from nlp_retrieval.text import printable

__all__ = ["ReportFormat", "read_bibliography_file", "read_report_file", "read_text"]

ReportFormat = Literal["markdown", "html", "latex"]
"""Formats of a report that are text."""

_SUFFIXES = {".html": "html", ".htm": "html", ".xhtml": "html", ".tex": "latex", ".latex": "latex"}
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old Word file, or a DOCX with a password; save it as DOCX without one",
    b"{\\rtf": "RTF; save it as DOCX",
}
_NEEDED = {
    "html": ("lxml", "cssselect2", "tinycss2"),
    "latex": ("pylatexenc",),
    "docx": ("lxml",),
    "pdf": ("pypdf",),
    "bibliography": ("pybtex", "pylatexenc"),
}
_LARGEST = 50 * 2**20
"""Bytes of a report."""

_CHILD_FROM = 100_000
"""Characters from which a bibliography is read in a child process."""


def read_report_file(path: Path) -> ReportText:
    """Return the text of a report.

    Its first bytes decide between PDF, DOCX and text, its suffix between LaTeX, HTML and Markdown; text under any other suffix
    is Markdown.

    Raises:
        SourceError: it cannot be read; the message says what was found, where, and what to do.
        DependencyError: a package that its format needs is not installed.
    """
    from nlp_retrieval.systems.evidence.reading.sources import read_file
    from nlp_retrieval.systems.evidence.reading.text_of import declared_encoding, decode_text

    where = printable(str(path))
    if path.is_dir():
        raise SourceError(f"{where} cannot be read: Is a directory")
    data = read_file(path, follow_link=True)
    suffix = PurePath(path).suffix.lower()
    for start, what in _OTHERS.items():
        if data.startswith(start):
            raise SourceError(f"{where}: {what}")
    if data.startswith(b"%PDF-"):
        return _in_child("pdf", data, where)
    if data.startswith(b"PK\x03\x04") or suffix in (".docx", ".docm", ".dotx"):
        return _in_child("docx", data, where)
    if suffix == ".pdf":
        raise SourceError(f"{where}: it does not begin as a PDF does; fetch it again")
    kind = _SUFFIXES.get(suffix, "markdown")
    return read_text(decode_text(data, declared_encoding(data, kind), where), kind, where)


def read_text(text: str, kind: str = "markdown", where: str = "the report") -> ReportText:
    """Return the text of a report that is given as text.

    Args:
        text: of the report.
        kind: "markdown", "html" or "latex".
        where: its name, for messages.

    Raises:
        SourceError: it cannot be read.
        DependencyError: a package that its format needs is not installed.
    """
    return blocks_of(text) if kind == "markdown" else _in_child(kind, text.encode("utf-8", "replace"), where)


def read_bibliography_file(path: Path) -> Bibliography:
    """Return the entries of a bibliography that the user named.

    Raises:
        InputError: it cannot be read.
    """
    from nlp_retrieval.systems.evidence.reading.sources import read_file
    from nlp_retrieval.systems.evidence.reading.text_of import decode_text

    where = printable(str(path))
    return bibliography_of(decode_text(read_file(path, follow_link=True), where=where), where)


def bibliography_of(text: str, where: str = "the bibliography") -> Bibliography:
    """Return the entries of a bibliography; a large one is read in a child process with limits.

    Raises:
        InputError: it cannot be read.
    """
    if len(text) < _CHILD_FROM:
        return read_bibliography(text, where)
    _check_installed("bibliography")
    return call_in_child("bibliography", text.encode("utf-8", "replace"), where, Bibliography)


def _in_child(kind: str, data: bytes, where: str) -> ReportText:
    _check_installed(kind)
    if not data.strip():
        raise SourceError(f"{where}: it is empty; there is nothing to read")
    if len(data) > _LARGEST:
        raise SourceError(f"{where}: {len(data) >> 20} MiB; at most {_LARGEST >> 20} MiB are read, split it up")
    return call_in_child(f"report {kind}", data, where, ReportText)


def _check_installed(kind: str) -> None:
    missing = [package for package in _NEEDED[kind] if find_spec(package) is None]
    if missing:
        raise DependencyError(f"reading {kind} needs {', '.join(missing)}: {install('evidence')}")
