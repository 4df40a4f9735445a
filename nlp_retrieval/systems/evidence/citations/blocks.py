"""The text of a report, whatever its format: headings, paragraphs, items, rows of tables, notes, and the links in them.

Each format has a reader that returns this; nothing else knows formats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Piece:
    """A stretch of a block.

    Args:
        kind: text, code within a line, a link, a mark of a footnote, or raised text.
        text: of a link, its text; of a footnote, its name.
        line: of the report, from 1 (see the unit of :class:`ReportText`); of a break, the line that begins.
        url: of a link, as written, or made from the name of a page; empty if it is not on the web.
        label: of a link, the definition that it refers to.
        title: of its target, by the link's definition.
    """

    kind: Literal["text", "code", "link", "note", "raised", "break"]
    text: str
    line: int
    url: str = ""
    label: str = ""
    title: str = ""


@dataclass(frozen=True)
class TextBlock:
    """A stretch of the report that holds whole sentences.

    Args:
        kind: what it is; a row of a table is one block.
        line: where it begins, from 1.
        pieces: of a row of a table, those of each cell; of anything else, all in one list.
        level: of a heading, 1 to 6; of an item, its depth; else 0.
        name: of a note; of an item its number, or "-", and empty for its further paragraphs.
        heads: of a row of a table, the names of its columns.
        quoted: whether it is in a block quote that is not a note with a label ("> **Note:** ...").
    """

    kind: Literal["heading", "paragraph", "item", "row", "note"]
    line: int
    pieces: list[list[Piece]]
    level: int = 0
    name: str = ""
    heads: list[str] = field(default_factory=list)
    quoted: bool = False


@dataclass(frozen=True)
class Definition:
    """A link's definition: ``[1]: https://example.org "Title"``."""

    label: str
    url: str
    title: str
    line: int


@dataclass(frozen=True)
class Reference:
    """An entry of the list of references, or a footnote.

    Args:
        mark: as written.
        title: the text of the entry without the URL.
        url: may be empty.
        line: of the report, or of the bibliography, from 1.
        other_urls: under which the same work may be stored.
    """

    mark: str
    title: str
    url: str
    line: int
    other_urls: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportText:
    """The text of a report in any format.

    Args:
        blocks: in order.
        definitions: of links.
        title: that the format gives apart from the text; may be empty.
        unit: what the ``line`` of a block counts: lines, paragraphs of a DOCX, or pages of a PDF.
        works: entries of a bibliography within the report.
        notes: what was left out or read in a certain way, for people.
    """

    blocks: list[TextBlock]
    definitions: list[Definition] = field(default_factory=list)
    title: str = ""
    unit: Literal["line", "paragraph", "page"] = "line"
    works: list[Reference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def as_head(piece: Piece) -> str:
    """Return a piece of the head of a column as text; a mark of a footnote stays a mark."""
    return f"[{piece.text}]" if piece.kind == "note" else piece.text
