"""Putting blocks together from the parts of a document: text in any number of stretches, links, marks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from nlp_retrieval.systems.evidence.citations.addresses import plain_pieces, visible_text, web_address
from nlp_retrieval.systems.evidence.citations.blocks import Piece, TextBlock, as_head

__all__ = ["Draft", "row_blocks"]

_IS_NUMBER = re.compile(r"\[[0-9]{1,4}\]|[0-9]{1,3}\.")


class Draft:
    """Pieces of a block in the making; what is inside a link is its text."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []

    def __bool__(self) -> bool:
        return any(piece.kind != "break" and (piece.text.strip() or piece.url) for piece in self._pieces)

    def text(self, text: str, line: int) -> None:
        """Add a stretch of text."""
        if text:
            self._pieces.append(Piece("text", visible_text(text), line))

    def code(self, text: str, line: int) -> None:
        """Add code within a line."""
        self._pieces.append(Piece("code", visible_text(text), line))

    def raised(self, text: str, line: int) -> None:
        """Add raised text, which may be the number of a reference."""
        self._pieces.append(Piece("raised", visible_text(text), line))

    def note(self, name: str, line: int) -> None:
        """Add the mark of a footnote, or the key of a work."""
        self._pieces.append(Piece("note", name, line))

    def drop_last(self) -> None:
        """Remove the piece that was added last."""
        del self._pieces[-1:]

    def link(self, url: str, text: str, line: int) -> None:
        """Add a link; one that leads to no page is only its text."""
        address = web_address(url.strip())
        if not address:
            self.text(text, line)
            return
        text = " ".join(visible_text(text).split())
        self._pieces.append(Piece("link", "" if web_address(text) == address else text, line, address))

    def line_break(self, line: int) -> None:
        """Add the beginning of a line."""
        self._pieces.append(Piece("break", " ", line))

    def take(self) -> list[Piece]:
        """Return the pieces so far, stretches of text joined, and begin anew."""
        pieces, self._pieces = self._pieces, []
        return list(_joined(pieces))


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for kind, alike in groupby(pieces, key=lambda piece: piece.kind):
        several = list(alike)
        if kind == "text":
            yield from plain_pieces("".join(piece.text for piece in several), several[0].line)
        elif kind == "raised":
            yield Piece("raised", "".join(piece.text for piece in several), several[0].line)
        else:
            yield from several


def row_blocks(rows: Sequence[tuple[int, list[list[Piece]]]]) -> Iterator[TextBlock]:
    """Yield the rows of a table, each with its line, below the first one, which names the columns."""
    if rows and rows[0][1] and _IS_NUMBER.fullmatch("".join(piece.text for piece in rows[0][1][0]).strip()):
        for line, cells in rows:  # a list of references without names of columns
            yield TextBlock("row", line, cells)
        return
    heads = ["".join(as_head(piece) for piece in cell).strip() or " " for cell in rows[0][1]] if rows else []
    if len(heads) == 1 or len(rows) == 1:
        for line, cells in rows:  # a frame around text, not a table
            for cell in cells:
                yield TextBlock("paragraph", line, [cell])
        return
    for line, cells in rows[1:]:
        yield TextBlock("row", line, cells, heads=heads)
