"""Reading the title and plain text of a DOCX; for a child process with limits.

The accepted text is read (see :mod:`~nlp_retrieval.systems.evidence.citations.docx`). Marks of footnotes are not part
of a sentence; the notes are at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.citations.blocks import Piece, TextBlock
from nlp_retrieval.systems.evidence.citations.docx import read_docx
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.reading.document import ReadText
from nlp_retrieval.systems.evidence.reading.page import as_raised


def read_word(data: bytes, where: str) -> ReadText:
    """Return the title and the text of a DOCX: paragraphs separated by blank lines, items and rows of tables by lines.

    Raises:
        SourceError: it is no DOCX, encrypted, damaged, unpacks to far more than a document, or has no text.
    """
    read = read_docx(data, where)
    text, removed = clean_text("".join(_lines(read.blocks)))
    if not text.strip():
        raise SourceError(f"{where}: the DOCX has no text; if it holds scans, recognise their text first")
    headings = (block for block in read.blocks if block.kind == "heading" and block.level == 1)
    title = read.title or next((_text(block.pieces[0]) for block in headings), "")
    title, removed_there = clean_title(title)
    return ReadText(title, text.strip(), removed + removed_there, notes=tuple(read.notes))


def _lines(blocks: Iterable[TextBlock]) -> Iterator[str]:
    before = ""
    heads: list[str] = []
    for block in blocks:
        cells = [_text(pieces) for pieces in block.pieces]
        if not any(cells):
            continue
        goes_on = block.kind == before and block.kind in ("item", "row") and (block.kind == "item" or block.heads is heads)
        yield "\n" if goes_on else "\n\n"
        if block.kind == "row" and not goes_on:
            yield " | ".join(" ".join(head.split()) for head in block.heads) + "\n"
        mark = f"{block.name}. " if block.name.isdecimal() else f"{block.name} "
        yield (mark if block.kind == "item" and block.name else "") + " | ".join(cells)
        before, heads = block.kind, block.heads


def _text(pieces: Iterable[Piece]) -> str:
    """Return pieces as one line, without marks of footnotes."""
    parts = []
    for piece in pieces:
        if piece.kind == "raised":
            parts.append(as_raised(piece.text))
        elif piece.kind == "link":
            parts.append(piece.text or piece.url)
        elif piece.kind != "note":
            parts.append(" " if piece.kind == "break" else piece.text)
    return " ".join("".join(parts).split())
