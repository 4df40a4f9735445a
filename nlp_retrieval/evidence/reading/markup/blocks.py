"""The text of an HTML tree in reading order: paragraphs divided by blank lines, items of lists and rows of tables by lines."""

from __future__ import annotations

from typing import Any

__all__ = ["block_text"]

_PARAGRAPHS = frozenset(
    "p head h1 h2 h3 h4 h5 h6 div section article main aside header footer nav body figure figcaption quote blockquote pre "
    "address details summary fieldset form hr ul ol dl list table caption center dir menu td th cell".split()
)
_LINES = frozenset("li item dt dd tr row lb br".split())
_ITEMS = frozenset("li item".split())
_CELLS = frozenset("td th cell".split())
_ROWS = frozenset("tr row".split())
_MAY_BE_RAISED = "0123456789+-\u2212()n"
_RAISED = str.maketrans(_MAY_BE_RAISED, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")


def raise_digits(tree: Any) -> None:
    """Write raised numbers as such, in place, so that ten to the fifth does not become 105.

    Args:
        tree: an lxml tree; changed are its ``sup`` elements that hold digits, signs, brackets and ``n`` alone.
    """
    for element in list(tree.iter("sup")):
        text = "".join((element.text_content() or "").split())
        if 0 < len(text) <= 8 and not text.strip(_MAY_BE_RAISED):
            for inner in list(element):
                element.remove(inner)
            element.text = text.translate(_RAISED)


def block_text(tree: Any) -> str:
    """Return the text of a tree.

    White space is one space, within a paragraph and within a line; an item of a list begins with ``- `` and the cells of a row
    are divided by `` | ``. Nothing is recursive, so that a deep tree costs no more than a wide one.

    Args:
        tree: HTML, or what trafilatura makes of it.
    """
    lines = _Lines()
    pending: list[tuple[Any, bool]] = [(tree, True)]
    while pending:
        element, entering = pending.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if entering:
            lines.enter(tag)
            if tag and element.text:
                lines.add(element.text)
            pending.append((element, False))
            pending.extend((child, True) for child in reversed(element))
        else:
            lines.leave(tag)
            if element is not tree and element.tail:
                lines.add(element.tail)
    return lines.finish()


class _Lines:
    """Text on its way into lines and paragraphs."""

    def __init__(self) -> None:
        self._paragraphs: list[str] = []
        self._lines: list[str] = []
        self._parts: list[str] = []
        self._rows = 0
        self._mark = ""

    def add(self, text: str) -> None:
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
        self._parts = []
        cells = [" ".join(cell.split()) for cell in joined.split(_CELL)]
        if len(cells) > 1 and not cells[-1]:
            cells.pop()
        line = " | ".join(cells) if any(cells) else ""
        if line:
            self._lines.append(self._mark + line)
            self._mark = ""

    def _end_paragraph(self) -> None:
        self._end_line()
        if self._lines:
            self._paragraphs.append("\n".join(self._lines))
            self._lines = []

    def finish(self) -> str:
        self._end_paragraph()
        return "\n\n".join(self._paragraphs)


_CELL = "\x1f"
"""Stands between the cells of a row; the text around it was cleaned of control characters before."""
