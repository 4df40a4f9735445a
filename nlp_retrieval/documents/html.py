"""Reading a page of HTML: what a browser shows of it, with links, lists, tables, and the footnotes that links lead to.

Markdown, LaTeX and DOCX become such pages first, so that one reader makes the blocks of them all. trafilatura (Barbaresi, ACL
2021) finds the main text of a page of the web; of the element that holds it, everything but navigation is main text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, takewhile
from secrets import token_hex
from typing import Any
from urllib.parse import unquote

from nlp_retrieval.documents.blocks import Document, Draft, Piece, TextBlock, clean_text, clean_title, row_blocks, web_address
from nlp_retrieval.documents.hidden import WORDS, remove_hidden
from nlp_retrieval.errors import SourceError

_OURS = token_hex(8)
# elements that readers of other formats write: the mark of a note or work, a note (both with a "name"), one within the
# text, and the beginning of a line; no author of a page can write them, since their names differ in each process
MARK, NOTE, FOOTNOTE, LINE = (f"x-{name}-{_OURS}" for name in ("mark", "note", "inner", "line"))
# attributes: the line of an element, the label of a link, which stays one if it leads to no page, and the number of an item
AT, LABEL, NUMBER = (f"{name}-{_OURS}" for name in ("line", "label", "number"))
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_BLOCKS = _HEADINGS | WORDS["blocks"]
_FIGURE_BESIDE_WORD = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
_MOST_SPANNED = 50
_LONGEST_SPANNED = 120
_NOTE = re.compile(r"fn|note|ref|cit|bib|csl|endn|source", re.IGNORECASE)
_SHORT_MARK = re.compile(r"[\[(]?[\w*\u2020\u2021]{1,4}[\])]?")
_SPACES = re.compile(r"\s+")
_BESIDE = re.compile(r"\b(?:foot|side|margin)note\b|ltx_role_footnote")
_YEAR = re.compile(r"\s?[\[(][^\[\]()]{0,80}[0-9][^\[\]()]{0,80}[\])]\s?\Z")  # of "Frisch (1965)"


def read_html(text: str, where: str) -> Document:
    """Return the text of a page; its title is that of the ``title`` element, else the first heading."""
    cleaned, removed = clean_text(text)
    page = parse_page(cleaned, where)
    for element in page.iter(*WORDS["side_by_side"]):
        before = element.getprevious()
        if before is not None and before.tag in WORDS["side_by_side"] and not before.tail:
            ends = "".join(before.itertext())[-1:] + "".join(element.itertext())[:1]
            before.tail = " " if _FIGURE_BESIDE_WORD.fullmatch(ends) else None
    document = document_of(page, where, is_of_web=True)
    return replace(document, removed=document.removed + removed)


def parse_page(text: str, where: str) -> Any:
    """Return the root of a page of HTML."""
    from lxml import etree, html

    parser = html.HTMLParser(encoding="utf-8", huge_tree=False)
    try:
        page = html.document_fromstring(text.encode(), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError) as error:
        raise SourceError(f"{where}: it is not HTML that can be parsed ({str(error)[:80]})") from None
    last = parser.error_log.last_error
    if last is not None and "RESOURCE_LIMIT" in last.type_name:
        raise SourceError(f"{where}: more than 250 levels of nested elements; save it as plain text")
    return page


def document_of(page: Any, where: str, *, is_of_web: bool = False) -> Document:
    """Return the text of a parsed page, which is changed: its hidden parts go; of a page of the web, find the main text.

    Elements of other pages are on the lines that their attributes name, or else on those of the elements around them.
    """
    for element in () if is_of_web else page.iter("*"):
        line, around = element.attrib.pop(AT, ""), element.getparent()
        line = line or (1 if around is None else around.sourceline)
        element.sourceline = min(int(line), 65_534)  # lxml keeps it in two bytes
    try:
        removed = remove_hidden(page, where)
        reader = _Page(page)
    except RecursionError:
        raise SourceError(f"{where}: its elements are nested too deeply; save it as plain text") from None
    titles = [each.text_content().strip() for each in page.findall("head/title")[:1]]
    headings = (block.pieces[0] for _, block in reader.blocks if block.kind == "heading" and not block.outside)
    titles += ["".join(piece.text for piece in one if piece.kind not in ("note", "raised")) for one in headings]
    blocks = _with_main_text(page, reader.blocks) if is_of_web else [block for _, block in reader.blocks]
    return Document(blocks, clean_title(next(filter(None, titles), "")), removed=removed + reader.draft.removed)


class _Page:
    """What a page says, block by block, with the element of each; the parser limits how deep it goes."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self.draft = Draft()
        self.blocks: list[tuple[Any, TextBlock]] = []
        self._beside: list[tuple[Any, TextBlock]] = []  # footnotes within the text
        self._footnotes = count(1)
        self._line = 1
        self._numbers = {
            item: item.get(NUMBER) or (str(number) if parent.tag == "ol" else "-")
            for parent in dict.fromkeys(item.getparent() for item in page.iter("li"))
            for number, item in enumerate(parent.iterchildren("li"), number_of(parent, "start", 10**9))
        }
        self._names: dict[Any, str] = {note: note.get("name", "") for note in page.iter(NOTE)}
        self._marks: dict[Any, str] = {}
        self._find_notes()
        body = next(page.iter("body"), page)
        self._content(body, 1)
        self._flush(body)
        self.blocks += self._beside

    def _find_notes(self) -> None:
        """Find the elements that short links and links to references lead forward to, and name them."""
        order = {element: number for number, element in enumerate(self._page.iter())}
        by_id = {name: each for each in reversed(order) for name in (each.get("id"), each.get("name")) if name}
        labels: set[str] = set()
        links = [(anchor, anchor.get("href") or "") for anchor in self._page.iter("a")]
        led = {href: to for _, href in links if href.startswith("#") and (to := by_id.get(unquote(href[1:]))) is not None}
        blocks = {each: next((up for up in (each, *each.iterancestors()) if up.tag in _BLOCKS), each) for each in led.values()}
        # a note in an item is all of it; several notes in a paragraph stay text, and links to them marks
        blocks = {each: up.getparent() if up.tag == "p" and up.getparent().tag == "li" else up for each, up in blocks.items()}
        several = {block for block, n in Counter(blocks.values()).items() if n > 1 and list(block.iter("br", LINE))}
        for anchor, href in links:
            target, text = blocks.get(led.get(href)), "".join(anchor.itertext()).strip()
            if target is None or order[target] <= order[anchor] or target.tag in WORDS["no_notes"]:
                continue
            is_named = target not in several and _NOTE.search(f"{href} {target.get('class')} {anchor.get('class')}")
            if not (_SHORT_MARK.fullmatch(text) or is_named):
                continue
            label = text.strip("[]() ")
            if target not in self._names and target not in several:
                name = label if re.fullmatch(r"\w{1,4}", label) and label not in labels else unquote(href[1:])
                labels.add(name)
                self._names[target] = name
            self._marks[anchor] = self._names.get(target, label)

    def _flush(self, element: Any) -> None:
        """Make a block of what was read in an element since the last one; the elements around it decide its kind."""
        is_empty, pieces = not self.draft, self.draft.take()
        if is_empty:
            return
        line = next(piece.line for piece in pieces if piece.kind != "break" and (piece.text.strip() or piece.url))
        around = [element, *element.iterancestors()]
        if url := next((web_address(each.get("href", "")) for each in around if each.tag == "a"), ""):  # a link around blocks
            pieces = [replace(piece, kind="link", url=url) if piece.kind == "text" else piece for piece in pieces]
        items = [each for each in around if each.tag == "li"]
        quoted = any(each.tag == "blockquote" and each.get("role") != "note" for each in around)
        if note := next((self._names[each] for each in around if each in self._names), ""):
            block = TextBlock("note", line, [pieces], name=note)
        elif element.tag in _HEADINGS:
            block = TextBlock("heading", line, [pieces], level=int(element.tag[1]))
        elif items:
            name = self._numbers.pop(items[0], "")
            block = TextBlock("item", line, [pieces], level=len(items), name=name, quoted=quoted)
        else:
            block = TextBlock("paragraph", line, [pieces], quoted=quoted)
        self.blocks.append((element, block))

    def _content(self, element: Any, line: int) -> None:
        self.draft.add("text", _SPACES.sub(" ", element.text or ""), line)
        for child in element:
            if isinstance(child.tag, str) and child.tag not in ("head", "nav", "rt", "rp"):
                self._walk(child)
            self.draft.add("text", _SPACES.sub(" ", child.tail or ""), max(child.sourceline or line, self._line))

    def _walk(self, element: Any) -> None:
        tag, line = str(element.tag), element.sourceline or 1
        if tag == "table":
            self._table(element)
        elif tag == "pre":
            self._flush(element.getparent())
            for number, text in enumerate("".join(element.itertext()).strip("\n").split("\n")):
                if number:
                    self.draft.add("break", "\n", line + number)
                self.draft.add("code", text, line + number)
            self.blocks.append((element, TextBlock("other", line, [self.draft.take()])))
        elif tag in _BLOCKS or element in self._names:
            self._flush(element.getparent())
            roles = f"{element.get('role') or ''} {element.get('class') or ''}".lower().split()
            if element in self._names:
                self.blocks.append((element, TextBlock("note", line, [[]], name=self._names[element])))
            elif tag in ("section", "div", "ol", "ul", "aside", "footer") and not WORDS["references"].isdisjoint(roles):
                title = [[Piece("text", "References", line)]]
                self.blocks.append((element, TextBlock("heading", line, title, level=6, outside=True)))
            self._content(element, line)
            self._flush(element)
        else:
            self._inline(element, tag, line)

    def _inner(self, element: Any, line: int) -> list[Piece]:
        """Return the content of an element that is one part of a block, however many blocks are in it."""
        kept = self.draft, self.blocks, self._numbers
        self.draft, self.blocks, self._numbers = Draft(self.draft.removed), [], {}
        self._content(element, line)
        self._flush(element)
        inner = self.blocks
        self.draft, self.blocks, self._numbers = kept
        return [piece for _, block in inner for cell in block.pieces for piece in (*cell, Piece("break", " ", block.line))][:-1]

    def _inline(self, element: Any, tag: str, line: int) -> None:
        if tag in ("br", LINE):
            self._line = line
            self.draft.add("break", " " if tag == LINE else "\n", line)
        elif tag == MARK or tag.endswith("-cite"):  # <d-cite key="frisch,doe">
            for name in [element.get("name", "")] if tag == MARK else re.findall(r"[^\s,]+", element.get("key", "")):
                self.draft.add("note", name, line)
            self._content(element, line)
        elif tag == "a" and self._anchor(element, element.get("href") or "", line):
            return
        elif tag == "sup" and next(element.iter("a", MARK), None) is None:
            self.draft.add("raised", "".join(element.itertext()), line)
        elif tag in ("code", "kbd", "samp", "tt", "math") and next(element.iter("a"), None) is None:
            for part in element.iter("mfrac", "msup", "msqrt", "mtd"):  # "1/2" and "10^6" instead of "12" and "106"
                if part.tag in ("msqrt", "mtd"):
                    part.text = ("√" if part.tag == "msqrt" else " ") + (part.text or "")
                elif len(part) == 2:
                    part[0].tail = "/" if part.tag == "mfrac" else "^"
            self.draft.add("code", _SPACES.sub(" ", "".join(element.itertext())), line)
        elif tag == FOOTNOTE or (_BESIDE.search(f"{tag} {element.get('class')}") and " " in element.text_content()):
            name = f"footnote {next(self._footnotes)}"
            self.draft.add("note", name, line)
            note: list[list[list[Piece]]] = [[[]], [self._inner(element, line)]]
            self._beside += [(element, TextBlock("note", line, pieces, name=name)) for pieces in note]
        else:
            before, after = ("\u201c", "\u201d") if tag == "q" else ("", "")
            if tag == "ruby":  # how it is spoken, behind the word
                spoken = "".join(text for part in element.iter("rt") for text in part.itertext()).strip()
                after = f" ({spoken})" if spoken else ""
            self.draft.add("text", before, line)
            self._content(element, line)
            self.draft.add("text", after, line)

    def _anchor(self, anchor: Any, href: str, line: int) -> bool:
        """Read a link or a mark; return False for what is read like any other element."""
        shown, label = "".join(anchor.itertext()), anchor.get(LABEL)
        href = f"https:{href}" if href.startswith("//") else href
        if shown.strip().isdecimal() and (label or anchor.getparent().tag == "sup" or anchor.find("sup") is not None):
            shown = f"[{shown.strip()}]"  # a mark, and no figure
        if anchor in self._marks:
            is_in_note = any(each in self._names for each in anchor.iterancestors())
            said = shown if is_in_note else _YEAR.sub("", shown)
            if is_in_note or said != shown or not re.search(r"[0-9]|\A\W*\w{0,4}\W*\Z", shown):
                self.draft.add("text", _SPACES.sub(" ", said), line)
            self.draft.add("note", self._marks[anchor], line)
            return True
        if label is None and (
            not href
            or (href.startswith("#") and re.search(r"[^\W\d_]{2}", shown))
            or not _BLOCKS.isdisjoint(inner.tag for inner in anchor.iter())
        ):
            return False
        for each in anchor.iter("br", LINE, MARK):
            self._inline(each, each.tag, each.sourceline or line)
        address = web_address(href.strip())
        if label is not None:
            text = "" if address and shown == href else shown
            self.draft.add("link", text, max(line, self._line), address, label, anchor.get("title", ""))
        elif shown.strip() and not href.startswith("#"):  # else back to a mark, or to a note elsewhere
            text = " ".join(shown.split()) if address else shown.strip()
            text = "" if address and web_address(text) == address else text
            self.draft.add("text", " " * shown[0].isspace(), line)
            self.draft.add("link" if address else "text", text, line, address)
            self.draft.add("text", " " * shown[-1].isspace(), line)
        return True

    def _table(self, table: Any) -> None:
        self._flush(table.getparent())
        if (caption := table.find("caption")) is not None:
            self._walk(caption)
        rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
        cells = ((row, {cell.tag for cell in row} & {"td", "th"}) for row in rows)
        n_heads = sum(1 for _ in takewhile(lambda each: each[0].getparent().tag == "thead" or each[1] == {"th"}, cells))
        first = rows[0].findall("*") if rows else []
        if not n_heads and any(number_of(cell, "colspan") > 1 for cell in first):  # two levels, marked as none
            n_heads = max(number_of(cell, "rowspan") for cell in first) % len(rows)
        filled = list(self._filled(rows, n_heads))
        is_in_cell = next(table.iterancestors("td", "th"), None) is not None
        of_cell = (TextBlock("row", row_line, row) for row_line, row in filled)
        self.blocks += [(table, block) for block in (of_cell if is_in_cell else row_blocks(filled, n_heads))]

    def _filled(self, rows: Sequence[Any], n_heads: int) -> Iterator[tuple[int, list[list[Piece]]]]:
        """Yield the cells of each row, those that reach down from rows above among them; a head names all of its columns."""
        below: dict[int, tuple[int, list[Piece]]] = {}
        group = None
        for number, row in enumerate(rows):
            if row.getparent() is not group:
                group, below = row.getparent(), {}
            line = row.sourceline or 1
            filled: list[list[Piece]] = []
            for cell in (*row.iterchildren("td", "th"), None):
                while left := below.get(len(filled), (0, []))[0]:
                    below[len(filled)] = left - 1, below[len(filled)][1]
                    filled.append(below[len(filled)][1])
                if cell is None:
                    break
                pieces = self._inner(cell, line)
                rows_down = (_MOST_SPANNED if cell.get("rowspan") == "0" else number_of(cell, "rowspan")) - 1  # 0: all below
                copied = [piece for piece in pieces if piece.kind in ("text", "code", "break")]
                copied = copied if sum(len(piece.text) for piece in copied) <= _LONGEST_SPANNED else []
                for column in range(number_of(cell, "colspan")):
                    if rows_down and len(filled) < _MOST_SPANNED:
                        below[len(filled)] = rows_down, [] if column else copied
                    filled.append(pieces if not column else copied if number < n_heads else [])
            while len(filled) > 1 and not filled[-1]:
                filled.pop()
            if any(filled):
                yield line, filled


def number_of(element: Any, name: str, most: int = _MOST_SPANNED) -> int:
    """Return the value of an attribute that is a number; what is absurd stands for 1."""
    text = element.get(name) or ""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) and 1 <= int(text) <= most else 1


# Blocks of a page that belong to its main text.

_LEAST_MAIN_TEXT = 250  # characters; with fewer, the main text may not have been found
_MOST_OF_IT = 0.9


def _with_main_text(page: Any, blocks: Sequence[tuple[Any, TextBlock]]) -> list[TextBlock]:
    """Return blocks, those marked that are outside the main text: navigation, comments of readers, advertisements."""
    from lxml import etree
    from trafilatura import bare_extraction
    from trafilatura.xpaths import OVERALL_DISCARD_XPATH, REMOVE_COMMENTS_XPATH

    etree.strip_attributes(page, "colspan", "rowspan")  # trafilatura fills the cells that a made-up number spans
    texts = ["".join(piece.text for cell in block.pieces for piece in cell) for _, block in blocks]
    extracted: Any = bare_extraction(page, favor_recall=True, include_comments=False, include_tables=True, deduplicate=False)
    parts = [] if extracted is None or extracted.body is None else ["".join(part.itertext()) for part in extracted.body.iter()]
    wholes = set(map(_letters, parts)) - {""}
    chosen = [_letters(text) in wholes for text in texts]
    weights: Counter[Any] = Counter()
    for (element, _), text, is_chosen in zip(blocks, texts, chosen, strict=True):
        for around in (element, *element.iterancestors()) if is_chosen else ():
            weights[around] += len(text)
    whole = max(weights.values(), default=0)
    if whole < _LEAST_MAIN_TEXT:
        return [block for _, block in blocks]
    holding = (around for around, weight in weights.items() if weight >= _MOST_OF_IT * whole)
    holder = max(holding, key=lambda around: sum(1 for _ in around.iterancestors()))
    aside = {element for path in (*OVERALL_DISCARD_XPATH, *REMOVE_COMMENTS_XPATH) for element in path(page)}
    aside |= set(page.iter(*WORDS["navigation"])) - {holder, *holder.iterancestors()}
    marked = []
    for (element, block), is_chosen in zip(blocks, chosen, strict=True):
        around = () if is_chosen else (element, *element.iterancestors())
        is_outside = not is_chosen and (holder not in around or not aside.isdisjoint(around))
        marked.append(replace(block, outside=block.outside or is_outside))
    return marked


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum()).casefold()
