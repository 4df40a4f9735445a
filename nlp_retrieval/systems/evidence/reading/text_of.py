"""Reading the title and plain text of a source of any kind from its bytes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import PurePath

from nlp_retrieval.errors import DependencyError, SourceError, install
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text
from nlp_retrieval.systems.evidence.reading.decoding import decode_text
from nlp_retrieval.systems.evidence.reading.isolation import read_in_child
from nlp_retrieval.systems.evidence.reading.limits import CHILD_SECONDS, LARGEST_FILE, LARGEST_MARKUP, LARGEST_TEXT, READ_HERE
from nlp_retrieval.systems.evidence.reading.read_text import ReadText
from nlp_retrieval.text import printable

__all__ = ["SUFFIXES", "read_bytes"]

SUFFIXES = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
}
"""Suffixes of file names, and the kinds of sources that they mean."""

_MEDIA_TYPES = {
    "text/plain": "text",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
}
_SAYS_NOTHING = ("", "application/octet-stream", "binary/octet-stream")
_NEEDED = {
    "text": (),
    "html": ("lxml", "trafilatura", "w3lib", "cssselect2"),
    "markdown": ("lxml", "markdown_it", "mdit_py_plugins", "cssselect2"),
    "pdf": ("pypdf",),
}
_DECLARED_WITHIN = 4096
"""Bytes at the beginning of a page in which it may declare its encoding."""


def read_bytes(data: bytes, name: str = "", media_type: str = "", seconds: float = CHILD_SECONDS) -> ReadText:
    """Return the title and the plain text of a source.

    The media type decides the kind of the source, or else the suffix of its name; bytes that begin as a PDF are always one.
    Visible text is kept as it is; text that readers would not see is removed and counted, as described in
    :mod:`~nlp_retrieval.systems.evidence.reading.cleaning` and :mod:`~nlp_retrieval.systems.evidence.reading.markup.hidden`.
    PDFs and large pages are read in a child process with limits of time and memory.

    Args:
        data: all bytes of the source.
        name: of the file, or the URL; used for messages too.
        media_type: from a server, with its charset if there is one.
        seconds: limit of time for a child process.

    Raises:
        SourceError: it is of an unsupported kind, empty, too large, damaged, encrypted, in a wrong encoding, nested too
            deeply, or holds no text.
        DependencyError: a package for this kind is not installed.
    """
    where = printable(name)[-200:] or "this source"
    kind = _kind(data, name, media_type, where)
    missing = [package for package in _NEEDED[kind] if find_spec(package) is None]
    if missing:
        raise DependencyError(f"reading {kind} needs {', '.join(missing)}: {install('evidence')}")
    if not data or data.isspace():
        raise SourceError(f"{where}: it is empty; there is nothing to read")
    most = LARGEST_MARKUP if kind in ("html", "markdown") else LARGEST_FILE
    if len(data) > most:
        raise SourceError(f"{where}: {len(data) >> 20} MiB; at most {most >> 20} MiB of {kind} are read, split it up")
    if kind == "pdf":
        read = read_in_child(kind, data, where, seconds)
    else:
        read = _read_text(kind, decode_text(data, _declared(kind, data, media_type), where), where, seconds)
    if not read.text:
        raise SourceError(f"{where}: it holds no text that a reader would see")
    if len(read.text) > LARGEST_TEXT:
        raise SourceError(f"{where}: it holds more than {LARGEST_TEXT:,} characters of text; split it up")
    return read


def _kind(data: bytes, name: str, media_type: str, where: str) -> str:
    if data.startswith(b"%PDF-"):
        return "pdf"
    stated = media_type.partition(";")[0].strip().lower()
    if stated in _MEDIA_TYPES:
        return _MEDIA_TYPES[stated]
    suffix = PurePath(name.partition("?")[0].partition("#")[0] if "://" in name else name).suffix.lower()
    if stated in _SAYS_NOTHING and suffix in SUFFIXES:
        return SUFFIXES[suffix]
    found = f"media type {printable(stated)[:80]!r}" if stated else f"name ending {printable(suffix)[:20]!r}"
    raise SourceError(f"{where}: {found} is not read; convert it to one of {', '.join(SUFFIXES)}")


def _declared(kind: str, data: bytes, media_type: str) -> str:
    """Return the encoding that the server, or else the page, declares."""
    for parameter in media_type.split(";")[1:]:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            return value.strip().strip("\"'")[:40]
    if kind != "html":
        return ""
    from w3lib.encoding import html_body_declared_encoding

    return html_body_declared_encoding(data[:_DECLARED_WITHIN]) or ""


def _read_text(kind: str, text: str, where: str, seconds: float) -> ReadText:
    if kind == "text":
        cleaned, removed = clean_text(text)
        return ReadText("", cleaned.strip(), removed)
    data = text.encode("utf-8", "replace")
    if len(data) > READ_HERE[kind]:
        return read_in_child(kind, data, where, seconds)
    from nlp_retrieval.systems.evidence.reading.markup.page import read_html, read_markdown

    return (read_html if kind == "html" else read_markdown)(text, where)
