"""Reading the title and plain text of a page of HTML or Markdown, without parts that its readers do not see.

trafilatura locates the main text; everything that the page shows there is read, not only trafilatura's extract. If it finds
next to nothing, as on a very short page, or much less than the page holds besides navigation, the whole page is read.

Source: Barbaresi, "Trafilatura: A Web Scraping Library and Command-Line Tool for Text Discovery and Extraction", ACL 2021.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.reading.document import ReadText, Removed
from nlp_retrieval.systems.evidence.reading.hidden import BOX, StylesTooCostlyError, remove_hidden

# Text of an HTML tree in reading order: paragraphs separated by blank lines, items of lists and rows of tables by lines.

_PARAGRAPHS = frozenset(
    "p head h1 h2 h3 h4 h5 h6 div section article main aside header footer nav body figure figcaption quote blockquote pre "
    "address details summary fieldset form hr ul ol dl list table caption center dir menu td th cell noscript dialog "
    "search hgroup legend button option".split()
)
_LINES = frozenset("li item dt dd tr row lb br".split())
_ITEMS = frozenset("li item".split())
_CELLS = frozenset("td th cell".split())
_ROWS = frozenset("tr row".split())
_OF_ROLE = {
    "row": "tr",
    "cell": "td",
    "gridcell": "td",
    "columnheader": "td",
    "rowheader": "td",
    "listitem": "li",
    **dict.fromkeys("table grid rowgroup list heading paragraph".split(), "div"),
}
"""Elements that are read as those of HTML, by their role."""

_BOXES = frozenset("label svg text".split())
"""Elements of a line that browsers set apart from the text beside them."""

_SIDE_BY_SIDE = frozenset("span a b strong small time data".split())
"""Elements that style sheets often make boxes, as the figure and the label of a card."""


@dataclass(frozen=True)
class Line:
    """A line of a tree's text, and the element in which it begins."""

    text: str
    element: Any
    ends_paragraph: bool


def is_block(tag: str) -> bool:
    """Return whether an element of this name begins a line of its own."""
    return tag in _PARAGRAPHS or tag in _LINES or tag in _CELLS


def block_text(tree: Any) -> str:
    """Return the text of a tree.

    White space becomes one space within a paragraph and within a line; an item of a list begins with ``- `` and the cells of a
    row are separated by `` | ``; a ``pre`` keeps its lines. Nothing is recursive, so that a deep tree costs no more than a wide
    one.
    """
    return text_of_lines(lines_of(tree))


def text_of_lines(lines: Iterable[Line]) -> str:
    """Return lines as text, with a blank line between paragraphs."""
    return "".join(f"{line.text}\n\n" if line.ends_paragraph else f"{line.text}\n" for line in lines).strip("\n")


def lines_of(tree: Any) -> list[Line]:
    """Return the lines of a tree's text, in reading order."""
    lines = _Lines()
    pending: list[tuple[Any, bool, str]] = [(tree, True, "")]
    while pending:
        element, entering, code = pending.pop()
        tag = _tag_of(element)
        is_box = tag in _BOXES or (bool(tag) and element.get(BOX) is not None)
        if entering:
            if is_box or (not code and _is_beside_another(element)):
                lines.set_apart(is_sure=is_box)
            lines.enter(tag)
            code_inside = "pre" if tag == "pre" else code or ("code" if tag == "code" else "")
            if tag and element.text:
                lines.add(element.text, element, keeps_lines=code_inside == "pre")
            pending.append((element, False, code))
            pending.extend((child, True, code_inside) for child in reversed(element))
        else:
            lines.leave(tag)
            if is_box:
                lines.set_apart(is_sure=True)
            if element is not tree and element.tail:
                lines.add(element.tail, element.getparent(), keeps_lines=code == "pre")
    return lines.finish()


def _tag_of(element: Any) -> str:
    """Return the name of an element, or of the one that its role makes of it; empty for a comment."""
    tag = element.tag if isinstance(element.tag, str) else ""
    if tag == "div" or (tag and not is_block(tag)):
        return _OF_ROLE.get(element.get("role", "").strip().lower(), tag)
    return tag


def _is_beside_another(element: Any) -> bool:
    """Return whether an element of a line follows another one with nothing between them."""
    before = element.getprevious()
    return (
        before is not None
        and not before.tail
        and all(isinstance(each.tag, str) and (each.tag in _SIDE_BY_SIDE or "-" in each.tag) for each in (before, element))
    )


class _Lines:
    """Builder of lines and paragraphs."""

    def __init__(self) -> None:
        self._done: list[Line] = []
        self._lines: list[tuple[str, Any]] = []
        self._parts: list[str] = []
        self._begins: Any = None
        self._rows = 0
        self._mark = ""
        self._may_touch = False

    def add(self, text: str, element: Any, *, keeps_lines: bool = False) -> None:
        if keeps_lines and not self._rows and "\n" in text:
            for number, line in enumerate(text.split("\n")):
                if number:
                    self._end_line()
                self.add(line, element)
            return
        if self._may_touch and text:
            last = next((part for part in reversed(self._parts) if part), " ")[-1]
            self._parts.append(" " * _are_of_two_words(last, text[0]))
            self._may_touch = False
        if self._begins is None and not text.isspace():
            self._begins = element
        self._parts.append(text)

    def set_apart(self, *, is_sure: bool) -> None:
        """Note that another element begins or ends here: a space is needed, surely or where two words would touch."""
        self._may_touch = self._may_touch or not is_sure
        if is_sure:
            self._parts.append(" ")

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
        self._done += [Line(text, element, number == last) for number, (text, element) in enumerate(self._lines)]
        self._lines = []

    def finish(self) -> list[Line]:
        self._end_paragraph()
        return self._done


def _are_of_two_words(last: str, first: str) -> bool:
    """Return whether letters that touch are of two words: ``Stops22``, ``310Crowns``, ``stopsLines``."""
    if last.isdigit() or first.isdigit():
        return last.isalpha() or first.isalpha()
    return last.islower() and first.isupper()


_CELL = "\x1f"
"""Separator of the cells of a row; the text around it has no control characters."""


# Raised text: exponents are written as such, and marks of footnotes are removed, since they are not part of a sentence.
#
# ``22<sup>[2]</sup> stops`` says 22 stops, ``10<sup>6</sup>`` is a million and ``m<sup>2</sup>`` a unit.

_MAY_BE_RAISED = "0123456789+-\u2212()n"
_RAISED = str.maketrans(_MAY_BE_RAISED, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")
_LONGEST_MARK = 24
_BEFORE = 24
_LEFT_OUT = "left-out-of-the-text"

_NUMBERS = r"[0-9]{1,3}(?:\s?[,;\u2013-]\s?[0-9]{1,3}){0,7}"
_BRACKETED = re.compile(rf"[\[\u3010(]\s?(?:{_NUMBERS}|[^\W\d_]{{1,3}}|[^\W\d_]{{1,8}}[ \u00a0.][^\]]{{1,12}})\s?[\]\u3011)]")
_PLAIN = re.compile(rf"{_NUMBERS}|[a-z]|[*\u2020\u2021\u00a7\u00b6]{{1,3}}")
_DIGITS = re.compile(rf"{_NUMBERS}")
_IN_TEXT = re.compile(
    r"(?<=[\w.,;:?\"'\u201d\u2019)%])(?:\[(?:[0-9]{1,3}(?:\s?[,\u2013-]\s?[0-9]{1,3}){0,7}|note [0-9]{1,3})\])+"
)
_NOTE_NAMES = re.compile(
    r"(?:^|[-_ :])(?:fn|ftn|note|notes|footnote|footnotes|endnote|noteref|fnref|ref|refs|reference|references|cite|citation|bib)"  # noqa: E501
)
_NOTE_PLACE = re.compile(
    r"#(?:[-_:.]*(?:user-content-)?(?:fn|ftn|edn|note|foot|end|ref|cite|cit|bib|b|r|n|rf)[a-z]{0,12}[-_:.]?[a-z]{0,12}[-_:.]?[0-9a-z]|[0-9]{1,3}$)",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]+\Z")
_NUMBER_BEFORE = re.compile(r"(?<![\w.,])([0-9][0-9.,]*)\Z")
_ON_GOES_A_FORMULA = ("=", "+", "\u2212", "\u00d7", "*", "/", "^", "<", ">", "\u2248", "\u00b7", "\u2264", "\u2265")
_UNITS = frozenset(
    "km cm mm dm hm nm µm μm pm ft in yd mi sq kg mg µg s ms h min Hz kHz MHz mol cd rad sr Pa kPa ly pc AU au px nmi sec "
    "metre metres meter meters mile miles foot feet inch inches yard yards sin cos tan log ln exp det chi rho sigma".split()
)


def as_raised(text: str) -> str:
    """Return a raised text as Unicode writes it: ``"2"`` as ``"²"``; as it is if Unicode has no such letters."""
    return text if text.strip(_MAY_BE_RAISED) else text.translate(_RAISED)


def read_raised(page: Any) -> tuple[int, list[str]]:
    """Write exponents as such and remove the marks of footnotes, in place.

    A mark is a short number, letter or sign that links to a note, or is in brackets, or is raised after a word or a number
    where it cannot be an exponent. An exponent follows a unit, a single letter, a bracket of a formula, or the base of a
    power. Code has no marks.
    """
    from lxml import etree

    marks: list[str] = []
    before = ""
    pending: list[tuple[Any, bool, bool]] = [(page, True, False)]
    while pending:
        element, entering, is_code = pending.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if not entering:
            before = "" if is_block(tag) else before
            if element is not page:
                before = _remove_marks(element, "tail", before, is_code, marks)
            continue
        before = "" if is_block(tag) else before
        pending.append((element, False, is_code))
        if not tag or tag in ("title", "head"):
            continue
        inside = is_code or tag in ("pre", "code", "samp", "kbd", "math", "svg")
        if tag in ("sup", "a", "span", "small") and not inside and (text := _short(element)):
            if _is_mark(element, tag, text, before):
                marks.append(text)
                element.tag = _LEFT_OUT
                continue
            if tag == "sup" and not text.strip(_MAY_BE_RAISED):
                for inner in list(element):
                    element.remove(inner)
                element.text = text.translate(_RAISED)
        before = _remove_marks(element, "text", before, inside, marks)
        pending.extend((child, True, inside) for child in reversed(element))
    etree.strip_elements(page, _LEFT_OUT, with_tail=False)
    return len(marks), marks


def _remove_marks(element: Any, part: str, before: str, is_code: bool, marks: list[str]) -> str:
    """Remove marks in the text itself, and return the text that now precedes the following text."""
    text = getattr(element, part)
    if not text:
        return before
    if "[" in text and not is_code:
        whole = before + text
        kept = _IN_TEXT.sub("", whole)
        if kept != whole and text.isprintable() and whole.startswith(before) and kept.startswith(before):
            marks += _IN_TEXT.findall(whole)
            text = kept[len(before) :]
            setattr(element, part, text)
    return f"{before}{text[-_BEFORE:]}"[-_BEFORE:]


def _short(element: Any) -> str:
    """Return the stripped text of an element; empty if it is longer than a mark."""
    text = "".join(islice(element.itertext(), 12)).strip()
    return text if len(text) <= _LONGEST_MARK else ""


def _is_mark(element: Any, tag: str, text: str, before: str) -> bool:
    links = [element] if tag == "a" else list(islice(element.iter("a"), 4))
    names = " ".join(element.get(name, "") for name in ("class", "id", "role", "epub:type", "rel")).lower()
    leads = any(_NOTE_PLACE.search(link.get("href", "")) for link in links) or bool(_NOTE_NAMES.search(names))
    bracketed = _BRACKETED.fullmatch(text) is not None
    if tag == "a":
        if not leads or not element.get("href", "").strip().startswith(("#", "http", "/")):
            return False
        return "#" in element.get("href", "") and (bracketed or _PLAIN.fullmatch(text) is not None) and bool(before.strip())
    if tag in ("span", "small"):
        return leads and bracketed and bool(before.strip())
    if leads and (bracketed or _PLAIN.fullmatch(text)):
        return True
    if bracketed:
        single = text.startswith("(") and re.search(r"(?:\A|[^\w])[^\W\d_]\Z", before) is not None
        return not single and (text[0] != "(" or bool(_DIGITS.fullmatch(text[1:-1].strip())))
    return _DIGITS.fullmatch(text) is not None and not _is_exponent(element, text, before)


def _is_exponent(element: Any, text: str, before: str) -> bool:  # noqa: PLR0911
    """Return whether a raised number belongs to the text before it, or to the symbol after it."""
    after = element.tail or ""
    if not before or before[-1].isspace() or before[-1] in "([":
        return after[:1].isalpha()  # an isotope
    if not text.isdigit():
        return False
    if after.lstrip()[:1] in _ON_GOES_A_FORMULA and after.strip():
        return True
    if number := _NUMBER_BEFORE.search(before):
        return number[1] in ("2", "10") or len(number[1]) == 1
    if before[-1] in ")]":
        inner = before[before.rfind("(") + 1 : -1] if "(" in before else ""
        return bool(inner) and not re.search(r"[^\W\d_]{3}", inner)
    letters = _LETTERS.search(before)
    if letters is None:
        return not before[-1].isascii() and not before[-1].isalnum() and before[-1] not in "\u201d\u2019\u00bb\u3002\u2026"
    word = letters[0]
    return len(word) == 1 or word in _UNITS


# Formulas and tables, whose meaning is in their layout.


def write_formulas(page: Any) -> None:
    """Write fractions and powers of MathML as text does, in place: "1/2" and "10⁶" instead of "12" and "106"."""
    for element in list(page.iter("mfrac", "msup", "msubsup", "mtd")):
        parts = list(element)
        if element.tag == "mtd":
            element.tail = " "
        elif element.tag == "mfrac" and len(parts) == 2:
            for part in parts:
                _put_in_brackets(part)
            parts[0].tail = " " if element.get("linethickness", "").startswith("0") else "/"
        elif len(parts) == {"msup": 2, "msubsup": 3}.get(element.tag):
            power = "".join(parts[-1].itertext()).strip()
            if power and not power.strip(_MAY_BE_RAISED):
                parts[-1][:] = []
                parts[-1].text = power.translate(_RAISED)
            else:
                parts[-2].tail = "^"
                _put_in_brackets(parts[-1])


def _put_in_brackets(part: Any) -> None:
    """Put brackets around a part of a formula that has parts itself."""
    if len(part) > 1:
        part.text, part[-1].tail = "(", ")"


_MOST_SPANNED = 5_000
"""Cells of a page that are added for those that span rows or columns."""

_MOST_COLUMNS = 50
_LONGEST_SPANNED = 120


def fill_spans(page: Any) -> None:
    """Repeat a cell that spans rows in each of them, in place, so that a row is read with its label and below its header.

    A cell that spans columns is followed by empty ones. Of a long cell only its place is kept.
    """
    left = _MOST_SPANNED
    groups: dict[Any, dict[int, tuple[int, Any]]] = {}
    for row in list(page.iter("tr")):
        spanning = groups.setdefault(row.getparent(), {})  # column: rows that follow, cell; it ends with its group of rows
        here, spanning_here = 0, dict(spanning)
        cells = [cell for cell in row if cell.tag in _CELLS]
        for cell in [*cells, None]:
            while here in spanning_here and left > 0:
                rows, spanned = spanning_here.pop(here)
                copy = _copied(spanned)
                if cell is None:
                    row.append(copy)
                else:
                    cell.addprevious(copy)
                spanning.pop(here)
                if rows > 1:
                    spanning[here] = rows - 1, copy
                here, left = here + 1, left - 1
            if cell is None or left <= 0:
                break
            columns = min(_span_of(cell, "colspan"), _MOST_COLUMNS)
            if (rows := _span_of(cell, "rowspan")) > 1:
                spanning[here] = rows - 1, cell
                spanning |= {here + number: (rows - 1, cell.makeelement("td")) for number in range(1, columns)}
            here += columns
            if columns > 1 and (cell is not cells[-1] or any(column >= here for column in spanning_here)):
                for _ in range(columns - 1):
                    cell.addnext(cell.makeelement("td"))
                left -= columns - 1
        if left <= 0:
            return


def _copied(cell: Any) -> Any:
    """Return a copy of a cell, or an empty one in place of one that is long."""
    size = 0
    for number, text in enumerate(cell.itertext()):
        size += len(text)
        if size > _LONGEST_SPANNED or number > _LONGEST_SPANNED:
            return cell.makeelement("td")
    copy = deepcopy(cell)
    copy.tail = None
    return copy


def _span_of(cell: Any, name: str) -> int:
    """Return the number of rows or columns of a cell; 0 stands for all rows that follow."""
    value = cell.get(name, "").strip()
    if not (value.isascii() and value.isdigit()):
        return 1
    return int(value[:6]) or (65_534 if name == "rowspan" else 1)


# Lines of a page that belong to its main text.
#
# trafilatura locates the main text; of the element that holds it, and of all lines between its first and last, everything is
# kept except what is navigation by its tag, role, class or links, and was not selected by trafilatura.

_LEAST_MAIN_TEXT = 250
"""Characters; with fewer, the main text may not have been found. Trafilatura's own default for the same question."""

_LEAST_PART = 0.5
"""Share of the words outside navigation; if the main text has less, they are all read."""

_MOST_OF_IT = 0.9
_FEWEST_WORDS = 6
_FEWEST_LINKS = 3
_NAVIGATION = frozenset("nav aside footer form menu search button".split())
_OF_AN_ARTICLE = ("aside", "footer")
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6 dt summary".split())
_ROLES = frozenset("navigation complementary search banner contentinfo menu menubar toolbar tablist dialog alertdialog".split())


def main_lines(page: Any, lines: Sequence[Line]) -> list[bool]:
    """Return which lines belong to the main text.

    Args:
        page: the root of the page, without its hidden parts; it is not changed.
        lines: of its body, in order.
    """
    selected = _main_text_lines(page, lines)
    if sum(len(line.text) for line, is_selected in zip(lines, selected, strict=True) if is_selected) < _LEAST_MAIN_TEXT:
        return [True] * len(lines)
    navigation = _navigation(page, lines)
    first, last = selected.index(True), len(selected) - 1 - selected[::-1].index(True)
    inside = _inside(lines, selected)
    kept = [
        is_selected or (not aside and (first <= number <= last or within))
        for number, (is_selected, aside, within) in enumerate(zip(selected, navigation, inside, strict=True))
    ]
    counts = [len(line.text.split()) or 1 for line in lines]
    n_kept = sum(count for count, keep in zip(counts, kept, strict=True) if keep)
    besides = sum(count for count, aside in zip(counts, navigation, strict=True) if not aside)
    if n_kept < _LEAST_PART * besides:
        return [keep or not aside for keep, aside in zip(kept, navigation, strict=True)]
    return kept


def _main_text_lines(page: Any, lines: Sequence[Line]) -> list[bool]:
    """Return which lines trafilatura selects as the main text."""
    from trafilatura import bare_extraction

    extracted: Any = bare_extraction(page, include_comments=False, include_tables=True, deduplicate=False)
    if extracted is None or extracted.body is None:
        return [False] * len(lines)
    text = block_text(extracted.body)
    whole = {_plain(line) for line in text.split("\n")} - {""}
    words = set(text.casefold().split())
    return [_plain(line.text) in whole or _is_among(line.text, words) for line in lines]


def _plain(line: str) -> str:
    return "".join(char for char in line if char.isalnum()).casefold()


def _is_among(line: str, page_words: set[str]) -> bool:
    """Return whether the words of a long line occur, as when two lines were joined."""
    words = line.casefold().split()
    return len(words) >= _FEWEST_WORDS and sum(word in page_words for word in words) >= _MOST_OF_IT * len(words)


def _inside(lines: Sequence[Line], selected: Sequence[bool]) -> list[bool]:
    """Return which lines are in the innermost element that holds most of the main text."""
    weights: Counter[Any] = Counter()
    for line, is_selected in zip(lines, selected, strict=True):
        if is_selected:
            for around in _with_ancestors(line.element):
                weights[around] += len(line.text)
    most = _MOST_OF_IT * max(weights.values())
    holding = {around for around, weight in weights.items() if weight >= most}
    innermost = max(holding, key=lambda is_selected: sum(1 for _ in is_selected.iterancestors()))
    return [any(around is innermost for around in _with_ancestors(line.element)) for line in lines]


def _with_ancestors(element: Any) -> list[Any]:
    return [element, *element.iterancestors()]


def _navigation(page: Any, lines: Sequence[Line]) -> list[bool]:
    """Return which lines are navigation, comments of readers or advertisements."""
    from trafilatura.xpaths import OVERALL_DISCARD_XPATH, REMOVE_COMMENTS_XPATH

    aside = {element for path in (*OVERALL_DISCARD_XPATH, *REMOVE_COMMENTS_XPATH) for element in path(page)}
    for element in page.iter():
        role = element.get("role", "").strip().lower() if isinstance(element.tag, str) else ""
        within = element.tag in ("header", *_OF_AN_ARTICLE) and any(
            around.tag in ("article", "main") for around in element.iterancestors()
        )
        header = element.tag == "header" and not within
        own = within and element.tag in _OF_AN_ARTICLE and _is_prose(element)  # a quotation set apart, or a correction
        own |= element.tag == "button" and element.getparent().tag in _HEADINGS  # it opens what follows
        if (element.tag in _NAVIGATION and not own) or role in _ROLES or (header and element.find(".//h1") is None):
            aside.add(element)
    aside |= _link_lists(page)
    # an element with most of the page is not navigation, whatever its name
    length = sum(len(line.text) for line in lines)
    weights: Counter[Any] = Counter()
    for line in lines:
        for around in _with_ancestors(line.element):
            if around in aside:
                weights[around] += len(line.text)
    aside = {element for element in aside if weights[element] <= length / 2}
    return [any(around in aside for around in _with_ancestors(line.element)) for line in lines]


def _is_prose(element: Any) -> bool:
    """Return whether an element holds a sentence, and neither mostly links nor a form."""
    if element.find(".//form") is not None:
        return False
    linked = sum(len(text.strip()) for link in element.iter("a") for text in link.itertext())
    text = " ".join("".join(element.itertext()).split())
    is_sentence = len(text.split()) >= _FEWEST_WORDS and any(end in text for end in ".!?\u3002\u2026")
    return is_sentence and linked < len(text) / 2


def _link_lists(page: Any) -> set[Any]:
    """Return lists and other boxes whose text is links."""
    lengths: dict[Any, list[int]] = {}
    for link in page.iter("a"):
        size = sum(len(text.strip()) for text in link.itertext())
        for around in link.iterancestors():
            entry = lengths.setdefault(around, [0, 0])
            entry[0] += size
            entry[1] += 1
    lists = set()
    for element, (size, count) in lengths.items():
        if count >= _FEWEST_LINKS and element.tag in ("ul", "ol", "div", "p", "td", "section", "table", "tr"):
            total = sum(len(text.strip()) for text in element.itertext())
            if size >= _MOST_OF_IT * total:
                lists.add(element)
    return lists


_FEWEST_WORDS_OF_A_PAGE = 20

_DEEPEST = 250
"""Depth of nested elements; the parser stops at 256, and would omit the rest."""

_DEEPEST_MARKDOWN = 100
"""Depth of nested quotes, and half as many lists; the parser recurses into each, and omits deeper ones."""


def read_html(text: str, where: str) -> ReadText:
    """Return the title and the main text of a page.

    Navigation, readers' comments and advertisements are omitted as far as they can be told from the main text. The title is
    that of the ``title`` element, else the first heading; ``meta`` elements are ignored.

    Raises:
        SourceError: it is nested too deeply, or holds no text.
    """
    cleaned, removed = clean_text(text)
    return _read(cleaned, where, removed, main_text_only=True)


def read_markdown(text: str, where: str) -> ReadText:
    """Return the title and the text of a Markdown file as its readers see it: without markup, addresses and hidden HTML.

    The title is the first heading.

    Raises:
        SourceError: it is nested too deeply, or holds no text.
    """
    from markdown_it import MarkdownIt
    from mdit_py_plugins.footnote import footnote_plugin

    cleaned, removed = clean_text(text)
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": _DEEPEST_MARKDOWN}).enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False)
    marks = parser.parse(cleaned)
    if any(mark.level >= _DEEPEST_MARKDOWN - 1 for mark in marks):
        raise SourceError(f"{where}: more than {_DEEPEST_MARKDOWN // 2} levels of nested lists or quotes; flatten it")
    return _read(parser.renderer.render(marks, parser.options, {}), where, removed, main_text_only=False)


def _read(text: str, where: str, removed: Removed, main_text_only: bool) -> ReadText:
    page = parse_page(text, where)
    has_scripts = next(page.iter("script", "noscript"), None) is not None
    try:
        hidden, left_out = remove_hidden(page)
    except StylesTooCostlyError:
        raise SourceError(f"{where}: its style sheets are too complex to evaluate; save it as plain text") from None
    write_formulas(page)
    count, marks = read_raised(page)
    fill_spans(page)
    left_out += [("footnote marks", " ".join(marks))] if marks else []
    title, removed_there = clean_title(_title(page))
    body = page.find("body")
    lines = lines_of(page if body is None else body)
    kept = main_lines(page, lines) if main_text_only else [True] * len(lines)
    outside = [line.text for line, keep in zip(lines, kept, strict=True) if not keep]
    left_out += [("outside the main text", part) for part in outside]
    content, removed_after = clean_text(text_of_lines(_kept_lines(lines, kept)).strip())  # &#8203; is a character only now
    content = content.strip()
    few = main_text_only and has_scripts and len(content.split()) < _FEWEST_WORDS_OF_A_PAGE
    note = f"{where}: {len(content.split())} words; if it needs scripts or a login, save it as a browser shows it"
    return ReadText(
        title,
        content,
        removed + hidden + removed_there + removed_after + Removed(marks=count),
        outside_words=sum(len(part.split()) for part in outside),
        left_out=tuple((why, part) for why, part in left_out if part),
        notes=(note,) if few else (),
    )


def _kept_lines(lines: list[Line], kept: list[bool]) -> Iterator[Line]:
    """Yield the lines that are kept; a paragraph also ends where a dropped line ended one."""
    last: Line | None = None
    for line, keep in zip(lines, kept, strict=True):
        if keep:
            if last is not None:
                yield last
            last = line
        elif last is not None:
            last = Line(last.text, last.element, True)
    if last is not None:
        yield last


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


def _title(page: Any) -> str:
    for path in ("head/title", "body//h1"):
        element = page.find(path)
        if element is not None and (title := element.text_content().strip()):
            return str(title)
    return ""
