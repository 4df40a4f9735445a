"""Reading a page of HTML: what a browser shows of it, with links, lists, tables, and the footnotes that links lead to.

trafilatura finds the main text; of the element that holds it, everything but navigation is main text.

Source: Barbaresi, "Trafilatura: A Web Scraping Library and Command-Line Tool for Text Discovery and Extraction", ACL 2021.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from nlp_retrieval.documents.blocks import Document, Draft, Piece, Reference, TextBlock, as_raised, row_blocks
from nlp_retrieval.documents.cleaning import Removed, clean_text, clean_title
from nlp_retrieval.documents.hidden import BOX, StylesTooCostlyError, remove_hidden
from nlp_retrieval.errors import SourceError

_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_BLOCKS = _HEADINGS | frozenset(
    """address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure footer form
    header hgroup hr html legend li main ol p pre section summary svg table text ul""".split()
)
_SIDE_BY_SIDE = frozenset("span a b i strong em small time data".split())
"""Elements that style sheets often make boxes, as the figure and the label of a card."""

_BLOCKS_OF_LISTS = frozenset("section div ol ul aside footer".split())
_LISTS_OF_REFERENCES = frozenset(
    "doc-endnotes doc-footnotes doc-bibliography footnotes endnotes references reflist bibliography csl-bib-body".split()
)
"""Roles and classes of a list of references, which may have no heading."""

_MOST_SPANNED = 50
_LONGEST_SPANNED = 120
_NOTE = re.compile(r"fn|note|ref|cit|bib|csl|endn|source", re.IGNORECASE)
_NO_NOTES = frozenset("figure table section ol ul main article body".split()) | _HEADINGS
_SHORT_MARK = re.compile(r"[\[(]?[\w*\u2020\u2021]{1,4}[\])]?")
_SPACES = re.compile(r"\s+")
_DEEPEST = 250
"""Depth of nested elements; the parser stops at 256, and would omit the rest."""

_FEWEST_WORDS_OF_A_PAGE = 20
WORKS = "work:"
"""Begins the address of a link that cites works of the document itself, by their keys."""


def read_html(text: str, where: str) -> Document:
    """Return the text of a page.

    The title is that of the ``title`` element, else the first heading; ``meta`` elements are ignored.

    Raises:
        SourceError: it is empty, no HTML, or nested too deeply, or its style sheets are too complex.
    """
    cleaned, removed = clean_text(text)
    page = parse_page(cleaned, where)
    has_scripts = next(page.iter("script", "noscript"), None) is not None
    document = document_of(page, where)
    document = replace(document, removed=document.removed + removed)
    words = len(document.text.split())
    if has_scripts and words < _FEWEST_WORDS_OF_A_PAGE:
        document.notes.append(f"{where}: {words} words; if it needs scripts or a login, save it as a browser shows it")
    return document


def parse_page(text: str, where: str) -> Any:
    """Return the root of a page of HTML.

    Raises:
        SourceError: it is empty, no HTML, or nested too deeply.
    """
    from lxml import etree, html

    if not text.strip():
        raise SourceError(f"{where}: it is empty; there is nothing to read")
    parser = html.HTMLParser(encoding="utf-8", huge_tree=False)
    try:
        page = html.document_fromstring(text.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise SourceError(f"{where}: it is not HTML that can be parsed ({str(error)[:80]})") from None
    last = parser.error_log.last_error
    if last is not None and "RESOURCE_LIMIT" in last.type_name:
        raise SourceError(f"{where}: more than {_DEEPEST} levels of nested elements; save it as plain text")
    return page


def document_of(page: Any, where: str, works: Mapping[str, Reference] | None = None) -> Document:
    """Return the text of a parsed page, which is changed: its hidden parts go.

    Args:
        page: its root.
        where: its name, for messages.
        works: of the document itself, by the keys in its links.
    """
    try:
        removed, left_out = remove_hidden(page)
    except StylesTooCostlyError:
        raise SourceError(f"{where}: its style sheets are too complex to evaluate; save it as plain text") from None
    title, removed_there = clean_title(_title(page))
    reader = _Page(page, works or {})
    try:
        blocks = reader.read()
    except RecursionError:
        raise SourceError(f"{where}: its elements are nested too deeply; save it as plain text") from None
    if works is None:
        blocks = _with_main_text(page, blocks, reader.elements)
    left_out += [("outside the main text", text) for text in reader.navigation]
    left_out += [("outside the main text", _text_of(block)) for block in blocks if block.outside]
    removed += removed_there + reader.removed
    return Document(blocks, title, removed=removed, left_out=left_out)


def _title(page: Any) -> str:
    for path in ("head/title", "body//h1"):
        element = page.find(path)
        if element is not None and (title := element.text_content().strip()):
            return str(title)
    return ""


class _Page:
    """One reading of a page, block by block; the parser limits how deep it goes."""

    def __init__(self, page: Any, works: Mapping[str, Reference]) -> None:
        self._page, self._works = page, works
        self._draft = Draft()
        self._blocks: list[TextBlock] = []
        self.elements: list[Any] = []
        self.navigation: list[str] = []
        self._quoted = self._depth = 0
        self._item = ""
        self._counts: dict[Any, int] = {}
        self._names: dict[Any, str] = {}
        self._in_note = False
        self._targets: dict[Any, Any] = {}
        self._find_notes()

    @property
    def removed(self) -> Removed:
        return self._draft.removed

    def _find_notes(self) -> None:
        """Find the elements that short links and links to references lead forward to."""
        order: dict[Any, int] = {}
        by_id: dict[str, Any] = {}
        for number, element in enumerate(self._page.iter()):
            order[element] = number
            for name in filter(None, (element.get("id"), element.get("name") if element.tag == "a" else None)):
                by_id.setdefault(name, element)
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

    def read(self) -> list[TextBlock]:
        body = self._page.find("body")
        body = body if body is not None else self._page
        self._content(body, 1)
        self._flush(1, body)
        return self._blocks

    def _add(self, block: TextBlock, element: Any) -> None:
        self._blocks.append(block)
        self.elements.append(element)

    def _flush(self, line: int, element: Any) -> None:
        if not self._draft:
            self._draft.take()
            return
        pieces = [self._draft.take()]
        quoted = self._quoted > 0
        if element.tag in _HEADINGS:
            self._add(TextBlock("heading", line, pieces, level=int(element.tag[1])), element)
        elif self._depth:
            self._add(TextBlock("item", line, pieces, level=self._depth, name=self._item, quoted=quoted), element)
            self._item = ""
        else:
            self._add(TextBlock("paragraph", line, pieces, quoted=quoted), element)

    def _walk(self, element: Any) -> None:
        tag, line = str(element.tag), element.sourceline or 1
        if tag == "nav":
            self.navigation.append(" ".join(element.text_content().split()))
        elif element in self._names:
            self._flush(line, element.getparent())
            if tag == "li":
                self._count(element)
            name, self._in_note = self._names[element], True
            pieces = self._inner(element, line)
            self._in_note = False
            self._add(TextBlock("note", line, [[]], name=name), element)
            self._add(TextBlock("note", line, [pieces], name=name), element)
        elif tag == "table":
            self._table(element, line)
        elif tag == "pre":
            self._flush(line, element.getparent())
            for number, text in enumerate("".join(element.itertext()).strip("\n").split("\n")):
                if number:
                    self._draft.line_break(line + number)
                self._draft.text(text, line + number)
            self._add(TextBlock("other", line, [self._draft.take()]), element)
        elif tag in _BLOCKS:
            self._block(element, tag, line)
        else:
            self._inline(element, tag, line)

    def _block(self, element: Any, tag: str, line: int) -> None:
        outer = self._item
        self._flush(line, element.getparent())
        if tag in _BLOCKS_OF_LISTS and not _LISTS_OF_REFERENCES.isdisjoint(
            f"{element.get('role') or ''} {element.get('class') or ''}".lower().split()
        ):
            self._add(TextBlock("heading", line, [[Piece("text", "References", line)]], level=6, outside=True), element)
        self._quoted += tag == "blockquote"
        if tag == "li":
            self._depth += 1
            start = element.getparent().get("start") or "1"
            number = self._count(element)
            self._item = str(number - 1 + int(start)) if number and re.fullmatch(r"[0-9]{1,9}", start) else "-"
        self._content(element, line)
        self._flush(line, element)
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
        self._draft.text(_SPACES.sub(" ", element.text or ""), line)
        for child in element:
            if isinstance(child.tag, str) and child.tag not in ("head", "rt", "rp"):
                self._walk(child)
            self._draft.text(_SPACES.sub(" ", child.tail or ""), child.sourceline or line)

    def _inner(self, element: Any, line: int) -> list[Piece]:
        """Return the content of an element that is one part of a block, however many blocks are in it."""
        kept, elements = self._blocks, self.elements
        self._blocks, self.elements = [], []
        self._content(element, line)
        self._flush(line, element)
        inner, self._blocks, self.elements = self._blocks, kept, elements
        return [piece for block in inner for cell in block.pieces for piece in (*cell, Piece("break", " ", block.line))][:-1]

    def _inline(self, element: Any, tag: str, line: int) -> None:
        is_box = element.get(BOX) is not None or tag in ("label", "td", "th")
        before = element.getprevious()
        if is_box or (tag in _SIDE_BY_SIDE and before is not None and not before.tail and _are_two_words(before, element)):
            self._draft.text(" ", line)
        if tag == "br":
            self._draft.line_break(line)
        elif tag == "a" and self._anchor(element, element.get("href") or "", line):
            return
        elif tag == "sup" and next(element.iter("a"), None) is None:
            self._draft.raised("".join(element.itertext()), line)
        elif tag in ("code", "kbd", "samp", "tt"):
            self._draft.code(_SPACES.sub(" ", "".join(element.itertext())), line)
        elif tag == "math":
            self._draft.code(_SPACES.sub(" ", _formula(element)), line)
        elif tag == "q":
            self._draft.text("\u201c", line)
            self._content(element, line)
            self._draft.text("\u201d", line)
        else:
            self._content(element, line)
            if tag == "ruby" and (spoken := _spoken(element)):  # how it is spoken, behind the word
                self._draft.text(f" ({spoken})", line)
        if is_box:
            self._draft.text(" ", line)

    def _anchor(self, anchor: Any, href: str, line: int) -> bool:
        """Read a link or a mark; return False for what is read like any other element."""
        shown = "".join(anchor.itertext()).strip()
        if anchor in self._targets:
            self._draft.note(self._names[self._targets[anchor]], line)
        elif href.startswith(WORKS):
            self._cite(anchor, href.removeprefix(WORKS).split(), line)
        elif href and not (href.startswith("#") and re.search(r"[^\W\d_]{2}", shown)):
            if any(inner.tag in _BLOCKS for inner in anchor.iter()):
                return False
            if shown and not href.startswith("#"):  # else back to a mark, or to a note elsewhere
                self._draft.link(href, shown, line)
        else:
            return False
        return True

    def _cite(self, element: Any, keys: Sequence[str], line: int) -> None:
        """Add marks of works; a note cites them by its text."""
        if self._in_note:
            self._draft.text("".join(element.itertext()), line)
        for work in (self._works[key] for key in keys if key in self._works):
            if self._in_note:
                self._draft.link(work.url, "", line)
            else:
                self._draft.note(work.mark, line)

    def _table(self, table: Any, line: int) -> None:
        self._flush(line, table.getparent())
        rows: list[tuple[Any, list[Any], bool]] = []
        n_heads = 0
        for row in _rows_of(table):
            cells = [cell for cell in row if cell.tag in ("td", "th")]
            is_head = row.getparent().tag == "thead" or (bool(cells) and all(cell.tag == "th" for cell in cells))
            n_heads += is_head and n_heads == len(rows)
            rows.append((row, cells, is_head))
        if (caption := table.find("caption")) is not None:
            self._block(caption, "caption", line)
        for block in row_blocks(list(self._filled(rows)), n_heads):
            self._add(block, table)

    def _filled(self, rows: Sequence[tuple[Any, list[Any], bool]]) -> Iterator[tuple[int, list[list[Piece]]]]:
        """Yield the cells of each row, those that reach down from rows above among them; a head names all of its columns."""
        below: dict[int, tuple[int, list[Piece]]] = {}
        group = None
        for row, row_cells, is_head in rows:
            if row.getparent() is not group:
                group, below = row.getparent(), {}
            line = row.sourceline or 1
            cells: list[list[Piece]] = []
            for cell in (*row_cells, None):
                while left := below.get(len(cells), (0, []))[0]:
                    pieces = below[len(cells)][1]
                    below[len(cells)] = left - 1, pieces
                    cells.append(pieces)
                if cell is not None:
                    pieces = self._inner(cell, line)
                    rows_down = _span(cell, "rowspan") - 1
                    copied = [piece for piece in pieces if piece.kind in ("text", "code", "break")]
                    if sum(len(piece.text) for piece in copied) > _LONGEST_SPANNED:
                        copied = []
                    for number in range(_span(cell, "colspan")):
                        if rows_down and len(cells) < _MOST_SPANNED:
                            below[len(cells)] = rows_down, [] if number else copied
                        cells.append(pieces if not number else copied if is_head else [])
            while len(cells) > 1 and not cells[-1]:
                cells.pop()
            if any(cells):
                yield line, cells


def _rows_of(table: Any) -> Iterator[Any]:
    for row in table.iter("tr"):
        if next(row.iterancestors("table")) is table:
            yield row


def _span(cell: Any, name: str) -> int:
    """Return how many rows or columns a cell takes up: 0 rows stand for all that follow, and what is absurd for 1."""
    text = cell.get(name) or ""
    if not re.fullmatch(r"[0-9]{1,3}", text) or int(text) > _MOST_SPANNED:
        return 1
    return int(text) or (_MOST_SPANNED if name == "rowspan" else 1)


def _are_two_words(before: Any, element: Any) -> bool:
    """Return whether the text of an element and that before it are of two words: ``Stops22``, ``310Crowns``, ``stopsLines``."""
    if before.tag not in _SIDE_BY_SIDE:
        return False
    last, first = "".join(before.itertext())[-1:], "".join(element.itertext())[:1]
    if last.isdigit() or first.isdigit():
        return last.isalpha() or first.isalpha()
    return last.islower() and first.isupper()


def _spoken(ruby: Any) -> str:
    return "".join(text for part in ruby.iter("rt") for text in part.itertext()).strip()


def _formula(math: Any) -> str:
    """Return MathML as text: "1/2" and "10⁶" instead of "12" and "106"."""
    for element in list(math.iter("mfrac", "msup", "msubsup")):
        parts = list(element)
        if element.tag == "mfrac" and len(parts) == 2:
            for part in parts:
                _bracket(part)
            parts[0].tail = " " if element.get("linethickness", "").startswith("0") else "/"
        elif len(parts) == {"msup": 2, "msubsup": 3}.get(element.tag):
            power = "".join(parts[-1].itertext()).strip()
            if (raised := as_raised(power)) != power:
                parts[-1][:] = []
                parts[-1].text = raised
            else:
                parts[-2].tail = "^"
                _bracket(parts[-1])
    return "".join(math.itertext())


def _bracket(part: Any) -> None:
    if len(part) > 1:
        part.text, part[-1].tail = "(", ")"


# Blocks of a page that belong to its main text.

_LEAST_MAIN_TEXT = 250
"""Characters; with fewer, the main text may not have been found. Trafilatura's own default for the same question."""

_LEAST_PART = 0.5
"""Share of the words outside navigation; if the main text has less, they are all read."""

_MOST_OF_IT = 0.9
_FEWEST_WORDS = 6
_FEWEST_LINKS = 3
_NAVIGATION = frozenset("aside footer form menu search".split())
_ROLES = frozenset("navigation complementary search banner contentinfo menu menubar toolbar tablist dialog alertdialog".split())


def _with_main_text(page: Any, blocks: list[TextBlock], elements: Sequence[Any]) -> list[TextBlock]:
    """Return blocks, those marked that are outside the main text: navigation, comments of readers, advertisements."""
    from trafilatura import bare_extraction

    texts = [_text_of(block) for block in blocks]
    extracted: Any = bare_extraction(page, favor_recall=True, include_comments=False, include_tables=True, deduplicate=False)
    parts = [] if extracted is None or extracted.body is None else ["".join(part.itertext()) for part in extracted.body.iter()]
    wholes, words = set(map(_letters, parts)) - {""}, set(" ".join(parts[:1]).casefold().split())
    selected = [_letters(text) in wholes or _is_among(text, words) for text in texts]
    weights: Counter[Any] = Counter()
    for element, text, is_selected in zip(elements, texts, selected, strict=True):
        if is_selected:
            for around in (element, *element.iterancestors()):
                weights[around] += len(text)
    whole = max(weights.values(), default=0)
    if whole < _LEAST_MAIN_TEXT:
        return blocks
    holding = [around for around, weight in weights.items() if weight >= _MOST_OF_IT * whole]
    holder = max(holding, key=lambda around: sum(1 for _ in around.iterancestors()))
    aside = _navigation(page, elements, texts)
    first, last = selected.index(True), len(selected) - 1 - selected[::-1].index(True)
    kept = [
        is_selected or (not beside and (first <= at <= last or holder in (element, *element.iterancestors())))
        for at, (is_selected, beside, element) in enumerate(zip(selected, aside, elements, strict=True))
    ]
    counts = [len(text.split()) for text in texts]
    n_kept = sum(count for count, keep in zip(counts, kept, strict=True) if keep)
    if n_kept < _LEAST_PART * sum(count for count, beside in zip(counts, aside, strict=True) if not beside):
        kept = [keep or not beside for keep, beside in zip(kept, aside, strict=True)]
    return [replace(block, outside=block.outside or not keep) for block, keep in zip(blocks, kept, strict=True)]


def _text_of(block: TextBlock) -> str:
    return " ".join("".join(piece.text for cell in block.pieces for piece in (*cell, Piece("break", " ", 1))).split())


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum()).casefold()


def _is_among(text: str, words: set[str]) -> bool:
    """Return whether the words of a long line occur, as when two lines were joined."""
    own = text.casefold().split()
    return len(own) >= _FEWEST_WORDS and sum(word in words for word in own) >= _MOST_OF_IT * len(own)


def _navigation(page: Any, elements: Sequence[Any], texts: Sequence[str]) -> list[bool]:
    """Return which blocks are navigation, comments of readers or advertisements."""
    from trafilatura.xpaths import OVERALL_DISCARD_XPATH, REMOVE_COMMENTS_XPATH

    aside = {element for path in (*OVERALL_DISCARD_XPATH, *REMOVE_COMMENTS_XPATH) for element in path(page)}
    for element in page.iter():
        if not isinstance(element.tag, str):
            continue
        within = any(around.tag in ("article", "main") for around in element.iterancestors())
        own = within and element.tag in ("aside", "footer") and _is_prose(element)  # a quotation set apart, or a correction
        header = element.tag == "header" and not within and element.find(".//h1") is None
        is_role = element.get("role", "").strip().lower() in _ROLES
        is_list = element.tag in ("ul", "ol", "div", "p", "td", "section", "table", "tr") and _is_of_links(element)
        if (element.tag in _NAVIGATION and not own) or is_role or header or is_list:
            aside.add(element)
    # an element with most of the page is not navigation, whatever its name
    weights: Counter[Any] = Counter()
    for element, text in zip(elements, texts, strict=True):
        for around in {element, *element.iterancestors()} & aside:
            weights[around] += len(text)
    aside = {element for element in aside if weights[element] <= sum(map(len, texts)) / 2}
    return [not aside.isdisjoint((element, *element.iterancestors())) for element in elements]


def _is_prose(element: Any) -> bool:
    """Return whether an element holds a sentence, and neither mostly links nor a form."""
    text = " ".join("".join(element.itertext()).split())
    is_sentence = len(text.split()) >= _FEWEST_WORDS and any(end in text for end in ".!?\u3002\u2026")
    return is_sentence and element.find(".//form") is None and _linked(element)[1] < len(text) / 2


def _is_of_links(element: Any) -> bool:
    """Return whether the text of a list or box is links."""
    count, size = _linked(element)
    return count >= _FEWEST_LINKS and size >= _MOST_OF_IT * sum(len(text.strip()) for text in element.itertext())


def _linked(element: Any) -> tuple[int, int]:
    """Return the number of links in an element, and of characters of their text."""
    sizes = [sum(len(text.strip()) for text in link.itertext()) for link in element.iter("a")]
    return len(sizes), sum(sizes)
