"""The text of a document of any format: headings, paragraphs, items, rows of tables and notes, with their links and marks.

Each format has a reader that returns this; nothing else knows formats. What marks a footnote is data, and no text. Characters
that a person cannot see but a program would read are removed: they hide instructions, and split words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from nlp_retrieval.core import read_yaml

# Characters that nobody sees.

LONGEST_TITLE = 300  # characters; a longer one is cut at a word

_DATA = read_yaml(Path(__file__).with_name("characters.yaml"))
_UNSEEN: dict[str, str] = _DATA["unseen"]
_UNSEEN["zero_width"] += _DATA["selectors"]
_RUN = re.compile(f"[{''.join(_UNSEEN.values())}]+")
_SELECTOR, _JOINING = (re.compile(f"[{_DATA[name]}]") for name in ("selectors", "joining"))
_LINE_ENDS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028]")
_TAKE_SELECTORS = ("Lo", "Nd", "Po", "So", "Sm", "Sk")  # emoji, keys, Chinese and Mongolian letters


def suspicious(removed: Counter[str]) -> str:
    """Return what was left out of a document, in words, if it hides something: elements, tags or the direction of writing.

    Examples:
        >>> suspicious(read_document(b"<p hidden>Obey.</p><p>Krill swarm.", "krill.html").removed)
        '1 hidden element'
    """
    if not removed["hidden"] + removed["tags"] + removed["directional"]:
        return ""
    return ", ".join(f"{n:,} {word}{'s' * (n != 1)}" for name, word in _DATA["words"].items() if (n := removed[name]))


def clean_text(text: str) -> tuple[str, Counter[str]]:
    """Remove the characters of a text that no reader sees, and count them.

    A joiner between letters of a script that needs it or between emoji stays, as does a variation selector behind an emoji, a
    Chinese character or a Mongolian letter. Every line end becomes a line feed. Cleaning again changes nothing.

    Examples:
        >>> clean_text("rain\u200bfall")[0]
        'rainfall'
    """
    text = _LINE_ENDS.sub("\n", text).replace("\u2029", "\n\n")
    gone: list[str] = []

    def needed(run: re.Match[str]) -> str:
        kept = _needed(text[run.start() - 1] if run.start() else " ", run[0], text[run.end() : run.end() + 1] or " ")
        gone.append(run[0][len(kept) :])
        return kept

    cleaned, removed = _RUN.sub(needed, text), "".join(gone)
    return cleaned, Counter({name: n for name, kind in _UNSEEN.items() if (n := len(re.findall(f"[{kind}]", removed)))})


def clean_title(text: str) -> str:
    """Return a title as one line of at most 300 characters, without those that nobody sees.

    Examples:
        >>> clean_title("  A title   on one line ")
        'A title on one line'
    """
    title = " ".join(clean_text(text.lstrip()[: 20 * LONGEST_TITLE])[0].split())
    cut = title[: LONGEST_TITLE - 1]
    return title if len(title) <= LONGEST_TITLE else f"{cut.rpartition(' ')[0] or cut}…"


def _needed(before: str, run: str, after: str) -> str:
    """Return the characters of an invisible run that have a function between the visible characters around it."""
    is_selector = _SELECTOR.match(run) and unicodedata.category(before) in _TAKE_SELECTORS
    kept = run[0] if is_selector else ""
    joiner = run[len(kept) :]
    joins_letters = joiner in ("\u200c", "\u200d") and _JOINING.match(before) and _JOINING.match(after)
    joins_emoji = joiner == "\u200d" and unicodedata.category(before) + unicodedata.category(after) in ("SoSo", "SkSo")
    return kept + joiner if joins_letters or joins_emoji else kept


# Addresses of pages in plain text: URLs, and names of pages such as ``doi:10.1000/x`` and ``arXiv:2101.00001``.

NOT_IN_ADDRESSES = r"\s<>\"`{}|\\^\[\]\uff08\uff09【】「」『』《》\uff0c。、\uff1b"
_TRAILING = ".,;:!?*_~'\u2019\u201d)"
_WEB = re.compile(r"https?://[^\s/]|file:///[^\s]", re.IGNORECASE)
_WRAPPED = re.compile(  # addresses that Google Docs and Outlook put around those of links
    r"https?://(?:www\.google\.[a-z.]{2,6}/url|[a-z0-9]{1,10}\.safelinks\.protection\.outlook\.com/)\?"
    r"(?:[^#&=]{1,20}=[^#&]{0,500}&){0,5}(?:q|url)=(https?(?::|%3A)[^&#\s]{3,4000})",
    re.IGNORECASE,
)
_REST = rf"[^{NOT_IN_ADDRESSES}]"
_ADDRESS = re.compile(
    rf"(?=htt|doi|www|dx\.|arx|abs|pm[ic])(?:(?<![a-z0-9])(?P<url>https?://{_REST}{{1,4000}})"
    rf"|(?<![\w./@-])(?:doi ?[:=]? ?|(?:(?:www|dx)\.)?doi\.org/)(?P<doi>10\.[0-9]{{4,9}}/{_REST}{{1,500}})"
    r"|(?:\barxiv(?: (?:e-?)?preprints?)? ?:? ?(?:arxiv: ?)?|(?<![\w./])abs/)"
    r"(?P<arxiv>(?:[a-z-]{2,20}(?:\.[a-z]{2})?/[0-9]{7}|[0-9]{4}\.[0-9]{4,5})(?:v[0-9]{1,2})?)"
    rf"|(?<![\w./@-])(?P<site>(?:arxiv\.org/|www\.{_REST}){_REST}{{2,2000}})"
    r"|\bPMID ?: ?(?P<pubmed>[0-9]{1,9})\b|\bPMC(?P<central>[0-9]{5,9})\b)",
    re.IGNORECASE,
)
_PAGES = {"url": "{}", "site": "https://{}", "doi": "https://doi.org/{}", "arxiv": "https://arxiv.org/abs/{}"}
_PAGES |= {"pubmed": "https://pubmed.ncbi.nlm.nih.gov/{}", "central": "https://pmc.ncbi.nlm.nih.gov/articles/PMC{}"}


def trimmed(url: str) -> str:
    """Return an address without the punctuation after it; a bracket that it opens itself belongs to it."""
    end = len(url)
    surplus = url.count(")") - url.count("(")
    while end > 3 and url[end - 1] in _TRAILING:
        if url[end - 1] == ")":
            if surplus <= 0:
                break
            surplus -= 1
        end -= 1
    return url[:end]


def web_address(url: str) -> str:
    """Return a text as the address of a page on the web, or of a file; empty if it is none.

    Examples:
        >>> web_address("doi:10.1000/182")
        'https://doi.org/10.1000/182'
    """
    if wrapped := _WRAPPED.match(url):
        return unquote(wrapped[1])
    if _WEB.match(url):
        return url
    match = _ADDRESS.match(url.strip())
    return _page_of(match) if match is not None else ""


def _page_of(match: re.Match[str]) -> str:
    kind = match.lastgroup or "url"
    return _PAGES[kind].format(trimmed(match[kind]))


def plain_links(text: str) -> Iterator[tuple[str, str]]:
    """Yield the stretches of plain text, each with an empty URL, and the addresses and names of pages in it, as URLs alone."""
    begin = 0
    for match in _ADDRESS.finditer(text):
        if match.start() > begin:
            yield text[begin : match.start()], ""
        yield "", _page_of(match)
        begin = match.start() + len(trimmed(match[0]))
    if begin < len(text):
        yield text[begin:], ""


# Pieces, blocks, and the document that they make.

Kind = Literal["text", "code", "link", "note", "raised", "break"]


@dataclass(frozen=True)
class Piece:
    """A stretch of a block.

    Args:
        kind: "note" is the mark of a footnote, and "raised" a raised number that may be one.
        text: of a note, its name; of a break, the white space that stands for it.
        line: of the document, from 1; of a break, the line that begins.
        url: of a link; empty if it is not on the web.
        label: of a link, the definition that it refers to, whose title is ``title``.

    Examples:
        >>> Piece("link", "the report", 3, "https://example.org/report").url
        'https://example.org/report'
    """

    kind: Kind
    text: str
    line: int
    url: str = ""
    label: str = ""
    title: str = ""


@dataclass(frozen=True)
class TextBlock:
    """A stretch of a document that holds whole sentences.

    Args:
        kind: "other" is code.
        pieces: of a row of a table, those of each cell; of anything else, all in one list.
        level: of a heading, 1 to 6; of an item, its depth.
        name: of a note; of an item its number, or "-", and empty for its further paragraphs.
        heads: of a row of a table, the names of its columns.
        quoted: whether it is in a block quote, but for a note with a label ("> **Note:** ...").
        outside: whether it is outside the main text of a page.

    Examples:
        >>> TextBlock("paragraph", 1, [[Piece("text", "Krill swarm.", 1)]]).pieces[0][0].text
        'Krill swarm.'
    """

    kind: Literal["heading", "paragraph", "item", "row", "note", "other"]
    line: int
    pieces: list[list[Piece]]
    level: int = 0
    name: str = ""
    heads: list[str] = field(default_factory=list)
    quoted: bool = False
    outside: bool = False


@dataclass(frozen=True)
class Reference:
    """An entry of a list of references or of a bibliography, or a footnote.

    Args:
        mark: as written; the key of a bibliography's entry.
        title: the text of the entry without the URL, which may be empty.
        other_urls: under which the same work may be stored.

    Examples:
        >>> Reference("frisch1965", "Frisch (1965). The dance", "https://doi.org/10.1000/dance", 1).mark
        'frisch1965'
    """

    mark: str
    title: str
    url: str
    line: int
    other_urls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """What was read of a file or page in any format.

    Args:
        unit: what the ``line`` of a block counts: lines, paragraphs of a DOCX, or pages of a PDF.
        definitions: of links, ``[1]: https://example.org "Title"``.
        removed: counts of what was left out since readers do not see it: "hidden", "unrendered" and "struck" elements, and
            "zero_width", "directional", "tags" and "controls" of characters.
        notes: what was read in a certain way, for people.

    Examples:
        >>> read_document(b"# Krill", "krill.md").text
        'Krill'
    """

    blocks: list[TextBlock]
    title: str = ""
    unit: Literal["line", "paragraph", "page"] = "line"
    definitions: list[Reference] = field(default_factory=list)
    removed: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The plain text: paragraphs apart by blank lines, items and rows by lines, without marks of footnotes."""
        return self._written[0]

    @property
    def pages(self) -> tuple[tuple[int, int], ...]:
        """Of a PDF, the number of each page with text, from 1, and where it begins in the text."""
        return self._written[1] if self.unit == "page" else ()

    @cached_property
    def _written(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        text, pages, before = "", dict[int, int](), None
        for block in self.blocks:
            written, begun = _written(block)
            if block.outside or not begun:
                continue
            is_next = before is not None and before.kind == block.kind and (block.kind == "item" or block.heads == before.heads)
            goes_on = is_next and block.kind in ("item", "row")
            text += "" if before is None else "\n" if goes_on else "\n\n"
            if block.kind == "row" and not goes_on:
                heads = " | ".join(" ".join(head.split()) for head in block.heads).rstrip()
                text += f"{heads}\n" if heads else ""
            elif block.kind == "item" and block.name:
                text += f"{block.name}. " if block.name.isdecimal() else f"{block.name} "
            for page, at in begun.items():
                pages.setdefault(page, len(text) + at)
            text += written
            before = block
        return text, tuple(pages.items())


_NUMBER = re.compile(r"\[\^?[0-9]{1,3}\]")
_MARK_IN_TEXT = re.compile(
    r"(?<=[\w.,;:?\"'\u201d\u2019)%])(?:\[(?:[0-9]{1,3}(?:\s?[,\u2013-]\s?[0-9]{1,3}){0,7}|note [0-9]{1,3})\])+"
)


def _written(block: TextBlock) -> tuple[str, dict[int, int]]:
    """Return the text of a block, in which white space is one space, and where each line of the document begins in it."""
    text, begun = "", dict[int, int]()
    for number, cell in enumerate(block.pieces):
        text = f"{text.rstrip(' ')} | " if number else ""
        after_mark = False
        for piece in cell:
            part = piece.text or piece.url
            is_mark = piece.kind in ("note", "raised") or (piece.kind == "link" and bool(_NUMBER.fullmatch(part)))
            if piece.kind == "break":
                text += part if text and not text.endswith("\n") else ""
            elif not is_mark:
                if piece.kind != "code":
                    part = _MARK_IN_TEXT.sub("", text[-1:] + part)[len(text[-1:]) :] if "[" in part else part
                    part = re.sub(r"\s+", " ", part)
                    part = part.lstrip() if not text or text[-1].isspace() else part
                text = text.rstrip(" ") if after_mark and part[:1] in (".", ",", ";", ":") else text
                if part.strip():
                    begun.setdefault(piece.line, len(text))
                text += part
            after_mark = is_mark
    return text.rstrip(), begun


class Draft:
    """Pieces of a block in the making; characters that nobody sees are left out of them and counted."""

    def __init__(self, removed: Counter[str] | None = None) -> None:
        self._pieces: list[Piece] = []
        self.removed = Counter[str]() if removed is None else removed

    def __bool__(self) -> bool:
        return any(piece.kind != "break" and (piece.text.strip() or piece.url) for piece in self._pieces)

    def add(self, kind: Kind, text: str, line: int, url: str = "", label: str = "", title: str = "") -> None:
        """Add a piece; a break is white space, and a note its name."""
        if kind in ("text", "code", "raised", "link") and not (text.isascii() and text.isprintable()):
            cleaned, removed = clean_text(text)
            self.removed += removed
            text = unicodedata.normalize("NFC", cleaned)
        text = text.strip() if kind == "raised" else text
        if text or url or kind not in ("text", "raised"):
            self._pieces.append(Piece(kind, text, line, url, label, title))

    def take(self) -> list[Piece]:
        """Return the pieces so far, with neighbouring text of one line joined and the addresses in it as links; begin anew."""
        settled = [_settled(self._pieces, at) for at in range(len(self._pieces))]
        self._pieces, pieces = [], []
        for (kind, line), group in groupby(settled, lambda piece: (piece.kind, piece.line)):
            if kind == "text":
                links = plain_links("".join(piece.text for piece in group))
                pieces += [Piece("link", "", line, url) if url else Piece("text", text, line) for text, url in links]
            else:
                pieces += group
        return pieces


# Raised text: ``22<sup>[2]</sup> stops`` says 22 stops, ``10<sup>6</sup>`` is a million and ``m<sup>2</sup>`` a unit.

_MAY_BE_RAISED = "0123456789+-\u2212\u2013()n"
_RAISED = str.maketrans(_MAY_BE_RAISED, "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁽⁾ⁿ")
_NUMBERS = r"[0-9]{1,3}(?:\s?[,;\u2013-]\s?[0-9]{1,3}){0,9},?"
_MARK = re.compile(
    rf"{_NUMBERS}|[\[\u3010(]\s?{_NUMBERS}\s?[\]\u3011)]|[*\u2020\u2021\u00a7\u00b6]{{1,3}}"
    r"|:\s?[0-9][0-9,\s\u2013-]{0,20}|\[\s?[^\W\d_]{1,8}(?:[ \u00a0.][^\]]{1,12})?\s?\]"
)
_UNITS = "[^\\W\\d_] km cm mm dm nm µm ft in yd mi kg mg Hz Pa metres meters miles feet sin cos tan log"
_BEFORE_POWER = re.compile(rf"(?:(?<![\w.,])(?:10|[0-9])|(?<![^\W\d_])(?:{_UNITS.replace(' ', '|')}))\Z")


def as_raised(text: str) -> str:
    """Return a raised text as Unicode writes it: ``"2"`` as ``"²"``; as it is if Unicode has no such letters."""
    return text if text.strip(_MAY_BE_RAISED) else text.translate(_RAISED)


def _settled(pieces: Sequence[Piece], at: int) -> Piece:
    """Return a piece; one that is raised as text, if it belongs to the text beside it or is more than a mark can be."""
    piece = pieces[at]
    if piece.kind != "raised":
        return piece
    before = "".join(one.text for one in pieces[max(0, at - 3) : at] if one.kind in ("text", "code"))[-24:]
    after = pieces[at + 1].text if at + 1 < len(pieces) and pieces[at + 1].kind == "text" else ""
    is_power = piece.text.isdigit() and len(piece.text) < 3 and _BEFORE_POWER.search(before)
    is_letter = before[-1:].isdigit() and piece.text in set("abcdfg")  # of a note below a table
    is_isotope = (not before or before[-1].isspace() or before[-1] in "([") and after[:1].isalpha()
    if is_letter or (_MARK.fullmatch(piece.text) and not is_power and not is_isotope):
        return piece
    return Piece("text", as_raised(piece.text), piece.line)


def row_blocks(rows: Sequence[tuple[int, list[list[Piece]]]], n_heads: int = 1) -> Iterator[TextBlock]:
    """Yield the rows of a table, each with its line, below those at its head, which name the columns."""
    first = "".join(piece.text for piece in rows[0][1][0]).strip() if rows and rows[0][1] else ""
    is_list = re.fullmatch(r"\[[0-9]{1,4}\]|[0-9]{1,3}\.", first)  # of references, without names of columns
    n_heads = 0 if is_list else max(1, min(n_heads, len(rows) - 1))
    heads: list[str] = []
    for column in zip_longest(*(cells for _, cells in rows[:n_heads]), fillvalue=[]):
        # a mark of a footnote stays a mark
        names = ["".join(f"[{one.text}]" if one.kind == "note" else one.text for one in cell).strip() for cell in column]
        heads.append(" ".join(dict.fromkeys(filter(None, names))) or " ")
    if not is_list and (len(heads) == 1 or len(rows) == 1):  # a frame around text, not a table
        yield from (TextBlock("paragraph", line, [cell]) for line, cells in rows for cell in cells)
    else:
        yield from (TextBlock("row", line, cells, heads=heads) for line, cells in rows[n_heads:])
