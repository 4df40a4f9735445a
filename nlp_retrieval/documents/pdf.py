"""Reading a PDF: its paragraphs by pages, and the footnotes that raised numbers lead to.

It is for a child process with limits, since a PDF can keep a parser busy for ever. Text that a PDF draws invisibly is read as
well, since scans draw their recognised text like that. Page numbers, and lines at the edge of several pages, are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from nlp_retrieval.documents.blocks import Document, Draft, TextBlock, clean_title
from nlp_retrieval.errors import SourceError

if TYPE_CHECKING:
    from pypdf import PageObject

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl"})
_BULLET = re.compile(r"[•‣◦▪●·] ?")
_HYPHENS = ("-", "\u00ad", "\u2010")
_AFTER_HYPHEN = re.compile(r"(?:and|or|to|und|oder|bis|et|ou)\b")  # "Vor- und Nachteile"
_SENTENCE_END = (".", "!", "?", ":", '."', ".”", ".)", "。")
_IN_ADDRESS = re.compile(r"(?:https?://|doi\.org/|\bdoi: ?10\.|www\.)\S{0,2000}\Z", re.IGNORECASE)
_ADDRESS_GOES_ON = re.compile(r"[\w/._~%#?=&+()-]{1,2000}")
_RAISED = re.compile(r"[0-9]{1,3}(?: ?[,\u2013-] ?[0-9]{1,3}){0,9},?")
_SMALL = 0.87  # share of the size of the text that a raised number has at most
_SHORT = 0.75  # a line shorter than this share of the longest ones ends a paragraph if it ends a sentence
_FOOTNOTE = re.compile(r"([0-9]{1,3})[.)]? ?(?=[^\W\d_]|[\"\u201c(])")
_REPEATED = 3  # pages on which a line at an edge is a header or footer
_NUMBER = re.compile(r"\A[0-9]{1,4}(?=\s|\Z)|(?<=\s)[0-9]{1,4}\Z")


class _Line(NamedTuple):
    """A printed line: its page, and the stretches of its text, each with whether it is a raised number."""

    page: int
    stretches: Sequence[tuple[str, bool]]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.stretches)


def read_pdf(data: bytes, where: str) -> Document:
    """Return the text of a PDF; its lines are pages."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, LimitReachedError

    pages: list[list[_Line]] = []
    damaged: list[Exception] = []
    try:
        reader = PdfReader(BytesIO(data))
        title, n_pages = str((reader.metadata and reader.metadata.title) or ""), len(reader.pages)
        for number in range(n_pages):
            try:
                pages.append(_lines_of(reader.pages[number], number + 1))
            except (LimitReachedError, MemoryError):
                raise
            except Exception as error:  # a page with damaged fonts should not lose the others
                damaged.append(error)
                pages.append([])
        if pages and len(damaged) == n_pages:
            raise damaged[0]  # noqa: TRY301
    except MemoryError:
        raise
    except (FileNotDecryptedError, DependencyError):
        raise SourceError(f"{where}: the PDF is encrypted; save it without a password") from None
    except LimitReachedError as error:
        much = f"far more than the text of a document ({str(error)[:80]})"
        raise SourceError(f"{where}: a part of the PDF unpacks to {much}; omit it") from None
    except Exception as error:  # a damaged file can make pypdf raise any kind of error
        shown = f"{type(error).__name__}: {str(error)[:80]}"
        raise SourceError(f"{where}: the PDF is damaged ({shown}); fetch it again") from None
    empty = [str(number) for number, page in enumerate(pages, start=1) if not any(line.text for line in page)]
    shown = ", ".join([*empty[:10], *["..."] * (len(empty) > 10)])
    without = f"{where}: no text on page {shown}; recognise the text of scans first (ocrmypdf in.pdf out.pdf)"
    if len(empty) == len(pages):
        raise SourceError(without)
    notes = [without] * bool(empty) + [f"{where}: {len(damaged):,} damaged pages could not be read"] * bool(damaged)
    draft = Draft()
    blocks = list(_blocks(_without_edges(pages), draft))
    return Document(blocks, clean_title(title), "page", removed=draft.removed, notes=notes)


def _lines_of(page: PageObject, number: int) -> list[_Line]:
    """Return the lines of a page, with numbers apart that are smaller and higher than the text before them."""
    lines: list[list[tuple[str, bool]]] = [[]]
    base_size = base_height = 0.0

    def add(text: str, cm: list[float], tm: list[float], _font: object, size: float) -> None:
        nonlocal base_size, base_height
        printed = text.strip()
        if printed:
            size, height = abs(size * tm[3] * cm[3]), tm[5] * cm[3] + cm[5]
            rise = height - base_height
            if _RAISED.fullmatch(printed) and size < _SMALL * base_size and 0.1 * base_size < rise < base_size:
                while len(lines) > 1 and not "".join(text for text, _ in lines[-1]).strip():
                    lines.pop()  # pypdf takes the height for another line
                lines[-1].append((printed, True))
                return
            base_size, base_height = size, height
        first, *others = text.translate(_LIGATURES).split("\n")
        lines[-1].append((first, False))
        lines.extend([(other, False)] for other in others)

    page.extract_text(visitor_text=add)
    return [_Line(number, _spaced(line)) for line in lines]


def _spaced(line: Sequence[tuple[str, bool]]) -> list[tuple[str, bool]]:
    """Return a line without white space at its ends and beside other white space."""
    kept: list[tuple[str, bool]] = []
    for text, is_raised in line:
        spaced = re.sub(r"\s+", " ", text)
        spaced = spaced.lstrip() if not kept or kept[-1][0][-1:] == " " else spaced
        kept += [(spaced, is_raised)] if spaced else []
    if kept:
        kept[-1] = (kept[-1][0].rstrip(), kept[-1][1])
    return kept


def _without_edges(pages: Sequence[Sequence[_Line]]) -> Iterator[list[_Line]]:
    """Yield the pages without their numbers, and without lines at the edge of several pages, which may count them."""
    edges = Counter(key for page in pages for key in {key for line in (*page[:2], *page[-2:]) for key in _counted(line)})
    for page in pages:
        yield [
            line
            for at, line in enumerate(page)
            if 2 <= at < len(page) - 2
            or not line.text
            or (line.text.strip("\u2013\u2014-|. ") != str(line.page) and all(edges[key] < _REPEATED for key in _counted(line)))
        ]


def _counted(line: _Line) -> Iterator[tuple[str, int]]:
    """Yield a line as it is, and with the distance from the number of the page for each number in it."""
    yield line.text, 0
    for number in _NUMBER.finditer(line.text):
        yield f"{line.text[: number.start()]}\0{line.text[number.end() :]}", int(number[0]) - line.page


def _blocks(pages: Iterator[list[_Line]], draft: Draft) -> Iterator[TextBlock]:
    """Yield the paragraphs, and the notes of each page; a sentence that goes on on the next page stays one."""
    begun = 0
    waiting: list[TextBlock] = []
    for page in pages:
        prose, notes = _without_footnotes(page)
        for at, paragraph in enumerate(_paragraphs(prose)):
            if draft and not at and paragraph[0].text[0].islower():
                draft.add("break", " ", paragraph[0].page)
            else:
                if draft:
                    yield TextBlock("paragraph", begun, [draft.take()])
                yield from waiting
                begun, waiting = paragraph[0].page, []
            _add(draft, paragraph)
        for number, lines in notes:
            inner, line = Draft(), lines[0].page
            _add(inner, lines)
            waiting += [TextBlock("note", line, [[]], name=number), TextBlock("note", line, [inner.take()], name=number)]
    if draft:
        yield TextBlock("paragraph", begun, [draft.take()])
    yield from waiting


def _paragraphs(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield the lines of each paragraph: it ends at an empty line, and at a short line that ends a sentence."""
    longest = sorted(len(line.text) for line in lines)[len(lines) * 9 // 10] if lines else 0
    paragraph: list[_Line] = []
    for line in lines:
        if line.text:
            paragraph.append(line)
        if paragraph and (not line.text or (line.text.endswith(_SENTENCE_END) and len(line.text) < _SHORT * longest)):
            yield paragraph
            paragraph = []
    if paragraph:
        yield paragraph


def _add(draft: Draft, lines: Sequence[_Line]) -> None:
    """Add the lines of a paragraph, with words and addresses that were broken at the end of a line made whole."""
    for line, following in zip(lines, [*(line.text for line in lines[1:]), ""], strict=True):
        is_address = bool(following) and _address_goes_on(line.text, following)
        is_broken = line.text[-1:] in _HYPHENS and line.text[-2:-1].isalnum() and following[:1].isalnum() and not is_address
        is_word = is_broken and not _AFTER_HYPHEN.match(following)
        is_hyphenless = is_word and following[0].islower() and line.text[-2].isalpha()
        stretches = [*line.stretches[:-1], (line.stretches[-1][0][:-1], False)] if is_hyphenless else line.stretches
        for stretch, is_raised in stretches:
            draft.add("raised" if is_raised else "text", stretch, line.page)
        if following and not is_word and not is_address:
            draft.add("break", "\n" if _BULLET.match(following) else " ", line.page)


def _address_goes_on(line: str, following: str) -> bool:
    if following[0].isdigit() and re.search(r"\b(?:doi|arxiv):\Z", line, re.IGNORECASE):
        return True
    if not _IN_ADDRESS.search(line[-2100:]) or (goes_on := _ADDRESS_GOES_ON.match(following)) is None:
        return False
    is_rest = goes_on[0] == following and not following[0].isupper()
    return is_rest or line[-1] in "/-_=?&" or bool(re.search(r"[/_=]", goes_on[0]))


def _without_footnotes(lines: Sequence[_Line]) -> tuple[Sequence[_Line], list[tuple[str, list[_Line]]]]:
    """Return the lines of a page without the footnotes below it, and these by their numbers."""
    first_marks: dict[int, int] = {}
    for at, line in enumerate(lines):
        for mark in [text for text, is_raised in line.stretches[1:] if is_raised]:
            for number in re.findall("[0-9]{1,3}", mark):
                first_marks.setdefault(int(number), at)
    notes: list[tuple[str, list[_Line]]] = []
    end = len(lines)
    for marked in sorted(first_marks, reverse=True):
        for at in range(end - 1, first_marks[marked], -1):
            start = _FOOTNOTE.match(lines[at].text)
            if start and int(start[1]) == marked:
                first = _Line(lines[at].page, [(lines[at].text[start.end() :], False)])
                notes.insert(0, (start[1], [first, *(line for line in lines[at + 1 : end] if line.text)]))
                end = at
                break
    return (lines[:end], notes) if 2 * len(notes) > len(first_marks) else (lines, [])
