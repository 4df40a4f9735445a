"""Reading a report in HTML: what a browser shows of it, with links, lists, tables, and footnotes that links lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.citations.blocks import Piece, ReportText, TextBlock
from nlp_retrieval.systems.evidence.citations.building import Draft, row_blocks

_BLOCKS = frozenset(
    """address article aside blockquote body center dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3
    h4 h5 h6 header hr html legend li main ol p pre section summary table ul""".split()
)
_BLOCKS_OF_LISTS = frozenset("section div ol ul aside footer".split())
_LISTS_OF_REFERENCES = frozenset(
    "doc-endnotes doc-footnotes doc-bibliography footnotes endnotes references reflist bibliography csl-bib-body".split()
)
"""Roles and classes of a list of references, which may have no heading."""

_LEFT_OUT = frozenset("nav script style template textarea math svg head button select".split())
_MOST_SPANNED = 50
_NOTE = re.compile(r"fn|note|ref|cit|bib|csl|endn|source", re.IGNORECASE)
_NO_NOTES = frozenset("h1 h2 h3 h4 h5 h6 figure table section ol ul main article body".split())
_SHORT_MARK = re.compile(r"[\[(]?[\w*\u2020\u2021]{1,4}[\])]?")


def read_html(text: str, where: str) -> ReportText:
    """Return the text of a report in HTML; hidden elements, navigation and formulas are left out.

    Raises:
        SourceError: it cannot be parsed, is nested too deeply, or has no text.
    """
    from nlp_retrieval.systems.evidence.reading.hidden import StylesTooCostlyError, remove_hidden
    from nlp_retrieval.systems.evidence.reading.page import parse_page

    page = parse_page(text, where)
    title = " ".join((page.findtext("head/title") or "").split())
    try:
        removed, _ = remove_hidden(page)
    except StylesTooCostlyError:
        raise SourceError(f"{where}: its style sheets are too complex to evaluate; save it as plain text") from None
    reader = _Page(page)
    blocks = list(reader.read())
    if not any(piece.text.strip() or piece.url for block in blocks for cell in block.pieces for piece in cell):
        raise SourceError(f"{where}: it has no visible text")
    notes = [f"{where}: {removed.hidden:,} hidden elements with text were left out"] if removed.hidden else []
    has_heading = any(block.kind == "heading" for block in blocks)
    return ReportText(blocks, title="" if has_heading else title, notes=notes)


class _Page:
    def __init__(self, page: Any) -> None:
        self._page = page
        self._draft = Draft()
        self._blocks: list[TextBlock] = []
        self._names: dict[Any, str] = {}
        self._quoted = self._depth = 0
        self._item = ""
        self._counts: dict[Any, int] = {}
        self._find_notes()

    def _find_notes(self) -> None:
        """Find the elements that short links and links to references lead forward to."""
        order: dict[Any, int] = {}
        by_id: dict[str, Any] = {}
        for number, element in enumerate(self._page.iter()):
            order[element] = number
            for name in filter(None, (element.get("id"), element.get("name") if element.tag == "a" else None)):
                by_id.setdefault(name, element)
        self._targets: dict[Any, Any] = {}
        labels: dict[str, Any] = {}
        for anchor in self._page.iter("a"):
            href = anchor.get("href") or ""
            target = by_id.get(unquote(href[1:])) if href.startswith("#") else None
            if target is None:
                continue
            if target.tag in ("a", "span", "sup", "b", "strong", "cite"):
                target = next((above for above in target.iterancestors() if above.tag in _BLOCKS), target)
            text = "".join(anchor.itertext()).strip()
            named = " ".join((href, target.get("class") or "", anchor.get("role") or "", anchor.get("class") or ""))
            is_mark = _SHORT_MARK.fullmatch(text) or _NOTE.search(named)
            if order[target] <= order[anchor] or target.tag in _NO_NOTES or not is_mark:
                continue
            self._targets[anchor] = target
            if target not in self._names:
                label = text.strip("[]() ")
                label = label if re.fullmatch(r"\w{1,4}", label) and label not in labels else unquote(href[1:])
                labels[label] = target
                self._names[target] = label

    def read(self) -> Iterator[TextBlock]:
        body = self._page.find("body")
        self._walk(body if body is not None else self._page)
        self._flush(1)
        return iter(self._blocks)

    def _flush(self, line: int, kind: str = "") -> None:
        if not self._draft:
            self._draft.take()
            return
        pieces = self._draft.take()
        if kind.startswith("h") and kind[1:].isdecimal():
            self._blocks.append(TextBlock("heading", line, [pieces], level=int(kind[1])))
        elif self._depth:
            self._blocks.append(TextBlock("item", line, [pieces], level=self._depth, name=self._item, quoted=self._quoted > 0))
            self._item = ""
        else:
            self._blocks.append(TextBlock("paragraph", line, [pieces], quoted=self._quoted > 0))

    def _walk(self, element: Any) -> None:
        """Read an element and what is in it; the parser limits how deep that is."""
        tag, line = str(element.tag), element.sourceline or 1
        if element in self._names:
            self._note(element, line)
        elif tag == "table":
            self._flush(line)
            self._blocks += row_blocks(list(self._rows(element)))
        elif tag in _BLOCKS:
            self._block(element, tag, line)
        else:
            self._inline(element, tag, line)

    def _block(self, element: Any, tag: str, line: int) -> None:
        outer, number = self._item, 0
        self._flush(line)
        if tag in _BLOCKS_OF_LISTS and not _LISTS_OF_REFERENCES.isdisjoint(
            f"{element.get('role') or ''} {element.get('class') or ''}".lower().split()
        ):
            self._blocks.append(TextBlock("heading", line, [[Piece("text", "References", line)]], level=6))
        self._quoted += tag == "blockquote"
        if tag == "li":
            self._depth += 1
            parent = element.getparent()
            number = self._count(element)
            start = parent.get("start") or "1"
            self._item = str(number - 1 + int(start)) if number and re.fullmatch(r"[0-9]{1,9}", start) else "-"
        if tag != "pre":
            self._content(element, line)
        self._flush(line, tag)
        if tag == "li":
            self._depth -= 1
            self._item = outer if self._depth else ""
        self._quoted -= tag == "blockquote"

    def _count(self, item: Any) -> int:
        """Return the number of an item in its list, from 1; 0 if its list does not count."""
        parent = item.getparent()
        self._counts[parent] = self._counts.get(parent, 0) + 1 if parent.tag == "ol" else 0
        return self._counts[parent]

    def _content(self, element: Any, line: int) -> None:
        self._draft.text(_spaced(element.text), line)
        for child in element:
            if isinstance(child.tag, str) and child.tag not in _LEFT_OUT:
                self._walk(child)
            self._draft.text(_spaced(child.tail), child.sourceline or line)

    def _inline(self, element: Any, tag: str, line: int) -> None:
        if tag == "br":
            self._draft.line_break(line)
        elif tag == "a" and element in self._targets:
            self._draft.note(self._names[self._targets[element]], line)
        elif tag == "a" and (element.get("href") or "").startswith("#") and _is_back_link(element):
            return
        elif tag == "a" and element.get("href") and not any(inner.tag in _BLOCKS for inner in element.iter()):
            # what is hidden has lost its text
            if shown := "".join(element.itertext()).strip():
                self._draft.link(element.get("href"), shown, line)
        elif tag == "sup" and not any(inner.tag == "a" for inner in element.iter()):
            self._draft.raised("".join(element.itertext()).strip(), line)
        elif tag in ("code", "kbd", "samp", "tt"):
            self._draft.code("".join(element.itertext()), line)
        elif tag == "q":
            self._draft.text("\u201c", line)
            self._content(element, line)
            self._draft.text("\u201d", line)
        else:
            self._content(element, line)

    def _note(self, element: Any, line: int) -> None:
        self._flush(line)
        if element.tag == "li":
            self._count(element)
        kept, self._blocks = self._blocks, []
        self._content(element, line)
        self._flush(line)
        inner, self._blocks = self._blocks, kept
        pieces = [piece for block in inner for cell in block.pieces for piece in (*cell, Piece("break", " ", block.line))]
        name = self._names[element]
        self._blocks += [TextBlock("note", line, [[]], name=name), TextBlock("note", line, [pieces], name=name)]

    def _rows(self, table: Any) -> Iterator[tuple[int, list[list[Piece]]]]:
        below: dict[int, tuple[int, list[Piece]]] = {}
        for row in table.iter("tr"):
            if next(row.iterancestors("table")) is not table:
                continue
            cells: list[list[Piece]] = []
            for cell in (*row, None):
                while left := below.get(len(cells), (0, []))[0]:  # a cell of a row above reaches down to here
                    pieces = below[len(cells)][1]
                    below[len(cells)] = left - 1, pieces
                    cells.append(pieces)
                if cell is not None and cell.tag in ("td", "th"):
                    kept, self._blocks = self._blocks, []
                    self._content(cell, row.sourceline or 1)
                    self._flush(row.sourceline or 1)
                    inner, self._blocks = self._blocks, kept
                    pieces = [piece for block in inner for part in block.pieces for piece in part]
                    if (rows := _span(cell, "rowspan") - 1) and len(cells) < _MOST_SPANNED:
                        below[len(cells)] = rows, [piece for piece in pieces if piece.kind in ("text", "code", "break")]
                    cells += [pieces, *([] for _ in range(_span(cell, "colspan") - 1))]
            if any(cells):
                yield row.sourceline or 1, cells


def _spaced(text: str | None) -> str:
    return re.sub(r"\s+", " ", text or "")


def _span(cell: Any, name: str) -> int:
    """Return how many rows or columns a cell takes up; 1 if that is not said, or absurd."""
    text = cell.get(name) or ""
    return max(int(text), 1) if re.fullmatch(r"[0-9]{1,3}", text) and int(text) <= _MOST_SPANNED else 1


def _is_back_link(anchor: Any) -> bool:
    text = "".join(anchor.itertext()).strip()
    return not re.search(r"[^\W\d_]{2}", text)
