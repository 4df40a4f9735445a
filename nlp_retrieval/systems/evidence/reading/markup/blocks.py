"""Text of an HTML tree in reading order: paragraphs separated by blank lines, items of lists and rows of tables by lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Line", "block_text", "is_block", "lines_of", "text_of_lines"]

_PARAGRAPHS = frozenset(
    "p head h1 h2 h3 h4 h5 h6 div section article main aside header footer nav body figure figcaption quote blockquote pre "
    "address details summary fieldset form hr ul ol dl list table caption center dir menu td th cell noscript dialog "
    "search hgroup legend button option".split()
)
_LINES = frozenset("li item dt dd tr row lb br".split())
_ITEMS = frozenset("li item".split())
_CELLS = frozenset("td th cell".split())
_ROWS = frozenset("tr row".split())


@dataclass(frozen=True)
class Line:
    """A line of a tree's text.

    Args:
        text: of the line.
        element: in which it begins.
        ends_paragraph: whether the next line begins another paragraph.
    """

    text: str
    element: Any
    ends_paragraph: bool


def is_block(tag: str) -> bool:
    """Return whether an element of this name begins a line of its own."""
    return tag in _PARAGRAPHS or tag in _LINES or tag in _CELLS


def block_text(tree: Any) -> str:
    """Return the text of a tree.

    White space becomes one space within a paragraph and within a line; an item of a list begins with ``- `` and the cells of a
    row are separated by `` | ``. Nothing is recursive, so that a deep tree costs no more than a wide one.

    Args:
        tree: HTML, or trafilatura's output for it.
    """
    return text_of_lines(lines_of(tree))


def text_of_lines(lines: Iterable[Line]) -> str:
    """Return lines as text, with a blank line between paragraphs."""
    return "".join(f"{line.text}\n\n" if line.ends_paragraph else f"{line.text}\n" for line in lines).strip("\n")


def lines_of(tree: Any) -> list[Line]:
    """Return the lines of a tree's text, in reading order.

    Args:
        tree: HTML, or trafilatura's output for it.
    """
    lines = _Lines()
    pending: list[tuple[Any, bool]] = [(tree, True)]
    while pending:
        element, entering = pending.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if entering:
            lines.enter(tag)
            if tag and element.text:
                lines.add(element.text, element)
            pending.append((element, False))
            pending.extend((child, True) for child in reversed(element))
        else:
            lines.leave(tag)
            if element is not tree and element.tail:
                lines.add(element.tail, element.getparent())
    return lines.finish()


class _Lines:
    """Builder of lines and paragraphs."""

    def __init__(self) -> None:
        self._done: list[Line] = []
        self._lines: list[tuple[str, Any]] = []
        self._parts: list[str] = []
        self._begins: Any = None
        self._rows = 0
        self._mark = ""

    def add(self, text: str, element: Any) -> None:
        if self._begins is None and not text.isspace():
            self._begins = element
        self._parts.append(text)

    def enter(self, tag: str) -> None:
        if tag in _ROWS:
            self._end_line()
            self._rows += 1
        elif tag in _CELLS and self._rows:
            self._parts.append(" ")
        elif tag in _PARAGRAPHS and not self._rows:
            self._end_paragraph()
        elif tag in _PARAGRAPHS:
            self._parts.append(" ")
        elif tag in _LINES and not self._rows:
            self._end_line()
            self._mark = "- " if tag in _ITEMS else ""
        elif tag in _LINES:
            self._parts.append(" ")

    def leave(self, tag: str) -> None:
        if tag in _ROWS and self._rows:
            self._rows -= 1
            self._end_line()
        elif tag in _CELLS and self._rows:
            self._parts.append(_CELL)
        elif tag in _PARAGRAPHS and not self._rows:
            self._end_paragraph()
        elif tag in _LINES and not self._rows:
            self._end_line()
        elif tag in _PARAGRAPHS | _LINES:
            self._parts.append(" ")

    def _end_line(self) -> None:
        joined = "".join(self._parts)
        begins, self._parts, self._begins = self._begins, [], None
        cells = [" ".join(cell.split()) for cell in joined.split(_CELL)]
        if len(cells) > 1 and not cells[-1]:
            cells.pop()
        line = " | ".join(cells) if any(cells) else ""
        if line:
            self._lines.append((self._mark + line, begins))
            self._mark = ""

    def _end_paragraph(self) -> None:
        self._end_line()
        last = len(self._lines) - 1
        self._done += [Line(text, element, place == last) for place, (text, element) in enumerate(self._lines)]
        self._lines = []

    def finish(self) -> list[Line]:
        self._end_paragraph()
        return self._done


_CELL = "\x1f"
"""Separator of the cells of a row; the text around it has no control characters."""
