"""Reading the title and plain text of a source of any kind from its bytes."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import PurePath

from nlp_retrieval.errors import DependencyError, SourceError, install
from nlp_retrieval.systems.evidence.reading.child import read_in_child
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.reading.document import (
    CHILD_SECONDS,
    LARGEST_FILE,
    LARGEST_MARKUP,
    LARGEST_TEXT,
    READ_HERE,
    ReadText,
)
from nlp_retrieval.systems.evidence.reading.metadata import split_front_matter
from nlp_retrieval.text import printable

# Bytes to text: a byte order mark decides, then UTF-8 if it is valid, then what the source declares; nothing is guessed.

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks, UTF-32 before UTF-16, whose mark begins with the same two bytes."""

_ACCEPTED = frozenset(
    [f"iso8859-{part}" for part in range(1, 17)]
    + [f"cp{number}" for number in (437, 850, 852, 866, 874, 932, 949, 950, *range(1250, 1259))]
    + """utf-8 utf-8-sig utf-16 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be ascii koi8-r koi8-u koi8-t mac-roman mac-cyrillic
    tis-620 gb2312 gbk gb18030 hz big5 big5hkscs euc_jp euc_jis_2004 iso2022_jp iso2022_jp_1 iso2022_jp_2 shift_jis
    shift_jis_2004 euc_kr johab iso2022_kr ptcp154 viscii""".split()
)
"""Encodings that pages and files are written in. Python knows others (UTF-7, punycode, its own escapes) which would turn plain
bytes into text that nobody sees in them."""

_AS_BROWSERS_READ = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""Real encodings of pages that declare a narrower one (https://encoding.spec.whatwg.org/#names-and-labels)."""

_STATEFUL = ("iso2022", "hz")
"""Encodings whose bytes are valid UTF-8 as well, and mean something else."""


def decode_text(data: bytes, declared: str = "", where: str = "this source") -> str:
    """Return the text of some bytes, without a byte order mark.

    Args:
        data: the bytes.
        declared: the encoding that the source or its server names; may be empty. It counts only if the bytes are not UTF-8,
            since most pages that declare a wrong encoding are.
        where: the source's name, for messages.

    Raises:
        SourceError: no encoding fits; the message names the first byte that does not.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _decoded(data, name, where, f"its byte order mark is that of {name.upper()}").removeprefix("\ufeff")
    known = _known(declared)
    beginning = data[:_DECLARED_WITHIN]
    if not known.startswith(("utf-16", "utf-32")) and 4 * beginning.count(0) > len(beginning):
        raise SourceError(
            f"{where}: {beginning.count(0):,} of its first {len(beginning):,} bytes are zero, as in UTF-16 without a byte "
            "order mark, or in a file that is no text; save it as UTF-8"
        )
    if known.startswith(_STATEFUL):
        return _decoded(data, known, where, f"it declares {known}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if not known:
            declaration = f"it declares {declared[:40]!r}, which is not accepted" if declared else "it declares no encoding"
            raise SourceError(
                f"{where}: byte 0x{data[error.start]:02x} at {error.start:,} is not UTF-8, and {declaration}; "
                "save it as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8"
            ) from None
    return _decoded(data, known, where, f"it declares {known}")


def _known(declared: str) -> str:
    """Return Python's name of an accepted encoding, else an empty string."""
    try:
        name = codecs.lookup(declared.strip()).name if declared.strip() else ""
    except (LookupError, ValueError):
        return ""
    return _AS_BROWSERS_READ.get(name, name) if name in _ACCEPTED else ""


def _decoded(data: bytes, encoding: str, where: str, reason: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02x} at {error.start:,}" if error.start < len(data) else "its end"
        raise SourceError(f"{where}: {reason}, but {byte} does not fit ({error.reason}); save it as UTF-8") from None


SUFFIXES = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
    ".docm": "docx",
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
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
_SAYS_NOTHING = ("", "application/octet-stream", "binary/octet-stream")
_NEEDED = {
    "text": (),
    "html": ("lxml", "trafilatura", "w3lib", "cssselect2"),
    "markdown": ("lxml", "markdown_it", "mdit_py_plugins", "cssselect2"),
    "pdf": ("pypdf",),
    "docx": ("lxml",),
}
_INPUT_ENCODING = re.compile(rb"\\usepackage\s{0,9}\[\s{0,9}([a-z0-9]{1,20})\s{0,9}\]\s{0,9}\{inputenc\}")
_DECLARED_WITHIN = 4096
"""Bytes at the beginning of a page in which it may declare its encoding."""


def read_bytes(data: bytes, name: str = "", media_type: str = "", seconds: float = CHILD_SECONDS) -> ReadText:
    """Return the title and the plain text of a source.

    The media type decides the kind of the source, or else the suffix of its name; bytes that begin as a PDF are always one.
    Visible text is kept as it is; text that readers would not see is removed and counted, as described in
    :mod:`~nlp_retrieval.systems.evidence.reading.cleaning` and :mod:`~nlp_retrieval.systems.evidence.reading.hidden`.
    PDFs, DOCX and large pages are read in a child process with limits of time and memory.

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
    if kind in ("pdf", "docx"):
        read = read_in_child(kind, data, where, seconds)
    else:
        read = _read_text(kind, decode_text(data, _declared(kind, data, media_type), where), where, seconds)
    if not read.text:
        raise SourceError(f"{where}: it has no visible text")
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
    description = f"media type {printable(stated)[:80]!r}" if stated else f"name ending {printable(suffix)[:20]!r}"
    raise SourceError(f"{where}: {description} is not read; convert it to one of {', '.join(SUFFIXES)}")


def _declared(kind: str, data: bytes, media_type: str) -> str:
    """Return the encoding that the server, or else the page, declares."""
    for parameter in media_type.split(";")[1:]:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            return value.strip().strip("\"'")[:40]
    return declared_encoding(data, kind)


def declared_encoding(data: bytes, kind: str) -> str:
    """Return the encoding that a page in HTML, or a document in LaTeX, declares; empty if it declares none."""
    if kind == "latex":
        declared = _INPUT_ENCODING.search(data[:_DECLARED_WITHIN])
        name = declared[1].decode("ascii", "replace") if declared else ""
        return {"ansinew": "cp1252", "latin9": "iso8859-15", "applemac": "mac-roman", "utf8x": "utf-8"}.get(name, name)
    if kind != "html":
        return ""
    from w3lib.encoding import html_body_declared_encoding

    return html_body_declared_encoding(data[:_DECLARED_WITHIN]) or ""


def _read_text(kind: str, text: str, where: str, seconds: float) -> ReadText:
    if kind != "html":
        metadata, text = split_front_matter(text, where, strict=kind == "markdown")
        if metadata:
            read = _read_body(kind, text, where, seconds)
            title = clean_title(dict(metadata).get("title", ""))[0]
            return replace(read, title=title or read.title, metadata=metadata)
    return _read_body(kind, text, where, seconds)


def _read_body(kind: str, text: str, where: str, seconds: float) -> ReadText:
    if kind == "text":
        cleaned, removed = clean_text(text)
        return ReadText("", cleaned.strip(), removed)
    data = text.encode("utf-8", "replace")
    if len(data) > READ_HERE[kind]:
        return read_in_child(kind, data, where, seconds)
    from nlp_retrieval.systems.evidence.reading.page import read_html, read_markdown

    return (read_html if kind == "html" else read_markdown)(text, where)
