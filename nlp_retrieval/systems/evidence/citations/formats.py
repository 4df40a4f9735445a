"""Reading a report of any format, and the list of references of a PDF, whose lines a list does not tell apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Literal

from nlp_retrieval.documents import (
    Bibliography,
    Document,
    Piece,
    TextBlock,
    bibliography_of,
    decode_text,
    read_document,
    read_file,
    read_markdown,
)
from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.citations.references import is_list_name, lines_of
from nlp_retrieval.text import printable

ReportFormat = Literal["markdown", "html", "latex"]
"""Formats of a report that are text."""

_SUFFIXES = {".html": "html", ".htm": "html", ".xhtml": "html", ".tex": "latex", ".latex": "latex", ".pdf": "pdf"}


def read_report_file(path: Path) -> Document:
    """Return the text of a report.

    Its first bytes decide between PDF, DOCX and text, its suffix between LaTeX, HTML and Markdown; text under any other suffix
    is Markdown.
    """
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
    hidden = [f"{report.removed.hidden:,} hidden elements with text were left out"] if report.removed.hidden else []
    return replace(report, title="" if has_heading else report.title, notes=[*report.notes, *hidden])


def read_bibliography_file(path: Path) -> Bibliography:
    """Return the entries of a bibliography that the user named."""
    where = printable(str(path))
    return bibliography_of(decode_text(read_file(path, follow_link=True), where=where), where)


def report_blocks(report: Document) -> list[TextBlock]:
    """Return the prose of a report; of a PDF with each entry of its list of references as a paragraph."""
    blocks = [block for block in report.blocks if block.kind != "other"]
    return list(_with_entries(blocks)) if report.unit == "page" else blocks


# The list of references of a PDF: entries begin by their numbers, or else by authors at the beginning of a line.

_NUMBERED = tuple(map(re.compile, (r"\s*\[\s?[0-9]{1,4}\s?\]", r"\s*\([0-9]{1,3}\)", r"\s*[0-9]{1,3}\.(?=\s)")))
"""Numbers of entries, in brackets or with a full stop; a list has one kind."""

_NAMED = re.compile(
    r"(?:[A-ZÀ-Þ][^\W\d_]*|(?:van|von|de|der|den|del|da|di|la|le)\b)[^.,;:/]{0,60}"
    r"(?:, (?:[A-ZÀ-Þ]\.|[A-ZÀ-Þ][^\W\d_]+\b)|[.,]? \((?:1[5-9]|20)[0-9]{2}|\. )"
)
_DATED = re.compile(r"[^()]{2,200}\((?:1[5-9]|20)[0-9]{2}[a-z]?[,)]")
_YEAR = re.compile(r"\((?:1[5-9]|20)[0-9]{2}[a-z]?[,)]")
_BARE = re.compile(r"\s*([0-9]{1,3})\s(?=[^\W\d_]|[\"\u201c])")
_ENDED = re.compile(r"(?:[.)\]]|[0-9]|://\S{1,2000})\Z")

_Line = list[Piece]


def _with_entries(blocks: Sequence[TextBlock]) -> Iterator[TextBlock]:
    found = next((at for at in range(len(blocks) - 1, -1, -1) if _heads_list(blocks, at) is not None), None)
    if found is None:
        yield from blocks
        return
    lines = _lines_of(blocks[found])
    begin = _heads_list(blocks, found) or 0
    yield from blocks[:found]
    if begin:
        before = [piece for line in lines[:begin] for piece in (*line, Piece("break", " ", line[0].line))]
        yield TextBlock("paragraph", blocks[found].line, [before])
    yield TextBlock("heading", lines[begin][0].line, [lines[begin]], level=1)
    yield from _entries([*lines[begin + 1 :], *(line for block in blocks[found + 1 :] for line in _lines_of(block))])


def _lines_of(block: TextBlock) -> list[_Line]:
    return [line for _, line in lines_of(block) if line]


def _text(line: _Line) -> str:
    return "".join(piece.text or piece.url for piece in line)


def _heads_list(blocks: Sequence[TextBlock], at: int) -> int | None:
    """Return the line of a block that is the heading of a list of references; None if there is none."""
    lines = [] if blocks[at].kind == "note" else _lines_of(blocks[at])
    below = [*lines, *(_lines_of(blocks[at + 1])[:1] if at + 1 < len(blocks) else [])]
    for number in range(len(lines) - 1, -1, -1):
        if is_list_name(_text(lines[number])) and number + 1 < len(below):
            following = _text(below[number + 1])
            if any(start.match(following) for start in (*_NUMBERED, _NAMED, _BARE)) or "://" in following:
                return number
    return None


def _entries(lines: Sequence[_Line]) -> Iterator[TextBlock]:
    lines = list(_with_points(lines))
    starts = {pattern: sum(1 for line in lines if pattern.match(_text(line))) for pattern in (*_NUMBERED, _NAMED)}
    most = max(_NUMBERED, key=starts.__getitem__)
    start = most if starts[most] and 2 * starts[most] >= starts[_NAMED] else _NAMED
    entry: _Line = []
    for line in lines:
        text, so_far = _text(line), _text(entry)
        is_new = start is not _NAMED or not entry or _ENDED.search(so_far) or (_DATED.match(text) and _YEAR.search(so_far))
        if start.match(text) and is_new and entry:
            yield TextBlock("paragraph", entry[0].line, [entry])
            entry = []
        entry = [*entry, *([Piece("text", " ", line[0].line)] if entry else []), *line]
    if entry:
        yield TextBlock("paragraph", entry[0].line, [entry])


def _with_points(lines: Sequence[_Line]) -> Iterator[_Line]:
    """Yield the lines of a list; if numbers alone count its entries ("3 Frisch, K."), with a full stop after each."""
    last, begins = 0, set[int]()
    for at, line in enumerate(lines):
        if (number := _BARE.match(_text(line))) and int(number[1]) == last + 1:
            begins.add(at)
            last += 1
    for at, line in enumerate(lines):
        bare = _BARE.match(_text(line)) if last > 1 and at in begins else None
        first = line[0]
        yield line if bare is None else [Piece(first.kind, f"{bare[1]}.{first.text[bare.end(1) :]}", first.line), *line[1:]]
