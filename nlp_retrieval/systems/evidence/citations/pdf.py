"""Reading a report in PDF: its text by pages, with the entries of its list of references told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from unicodedata import normalize

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.citations.blocks import Piece, ReportText, TextBlock
from nlp_retrieval.systems.evidence.citations.building import Draft
from nlp_retrieval.systems.evidence.citations.references import is_list_name

_NUMBERED = tuple(map(re.compile, (r"\s*\[\s?[0-9]{1,4}\s?\]", r"\s*\([0-9]{1,3}\)", r"\s*[0-9]{1,3}\.(?=\s)")))
"""Numbers of entries, in brackets or with a full stop; a list has one kind."""
_NAMED = re.compile(
    r"(?:[A-ZÀ-Þ][^\W\d_]*|(?:van|von|de|der|den|del|da|di|la|le)\b)[^.,;:/]{0,60}(?:, (?:[A-ZÀ-Þ]\.|[A-ZÀ-Þ][^\W\d_]+\b)|[.,]? \((?:1[5-9]|20)[0-9]{2}|\. )"  # noqa: E501
)
_DATED = re.compile(r"[^()]{2,200}\((?:1[5-9]|20)[0-9]{2}[a-z]?[,)]")
_YEAR = re.compile(r"\((?:1[5-9]|20)[0-9]{2}[a-z]?[,)]")
_BARE = re.compile(r"\s*([0-9]{1,3})\s(?=[^\W\d_]|[\"\u201c])")
_RAISED_NUMBER = re.compile("[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]{1,3}")
_FOOTNOTE = re.compile(r"([0-9]{1,3})[.)]? ?(?=[^\W\d_]|[\"\u201c(])")
_MOST_ON_A_PAGE = 60
_ENDED = re.compile(r"(?:[.)\]]|[0-9]|://\S{1,2000})\Z")
_IN_ADDRESS = re.compile(r"(?:https?://|doi\.org/|\bdoi: ?10\.|www\.)\S{0,2000}\Z", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"\W*(?:(?:page|seite|p\.) ?)?[0-9]{1,4}(?: ?(?:/|of|von) ?[0-9]{1,4})?\W*", re.IGNORECASE)
_BROWSERS = re.compile(
    r"[0-9]{1,4}[/.-][0-9]{1,2}[/.-][0-9]{2,4},? [0-9]{1,2}[:.][0-9]{2}(?: ?[AP]M)?(?: .{0,300})?"
    r"|(?:https?|file)://\S{1,2000} [0-9]{1,4}/[0-9]{1,4}",
    re.IGNORECASE,
)
"""What a browser prints above and below each page."""

_REPEATED = 3


def read_pdf_report(data: bytes, where: str) -> ReportText:
    """Return the text of a report in PDF; its lines are pages.

    Raises:
        SourceError: it is damaged, encrypted, or has no text; the message names pages without text.
    """
    from nlp_retrieval.systems.evidence.reading.pdf import read_pages

    title, pages, unread = read_pages(data, where, raised=True)
    empty = [number for number, page in enumerate(pages, start=1) if not page.strip()]
    if len(empty) == len(pages):
        raise SourceError(
            f"{where}: no text on {_spans(empty)}, as of a scan; recognise the text first (ocrmypdf in.pdf out.pdf)"
        )
    notes = []
    if empty:
        notes.append(f"{where}: no text on {_spans(empty)}; recognise the text of scans first (ocrmypdf in.pdf out.pdf)")
    if unread:
        notes.append(f"{where}: {unread:,} damaged pages could not be read")
    lines = list(_lines(pages))
    blocks = list(_blocks(lines))
    return ReportText(blocks, title=" ".join(title.split()), unit="page", notes=notes)


def _spans(numbers: Sequence[int]) -> str:
    """Return pages as words: "pages 1-4 and 7"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    more = f" and {len(parts) - 10} more ranges" if len(parts) > 10 else ""
    return ("page " if len(numbers) == 1 else "pages ") + ", ".join(parts[:10]) + more


def _lines(pages: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each printed line with its page, without page numbers and lines at the edge of many pages; pages end in ""."""
    split = [[" ".join(line.split()) for line in page.splitlines()] for page in pages]
    edges = Counter(line for page in split for line in {*page[:2], *page[-2:]} if line)
    for number, page in enumerate(split, start=1):
        for at, line in enumerate(page):
            is_edge = at < 2 or at >= len(page) - 2
            if is_edge and line and (_PAGE_NUMBER.fullmatch(line) or _BROWSERS.fullmatch(line) or edges[line] >= _REPEATED):
                continue
            yield number, line


def _blocks(lines: Sequence[tuple[int, str]]) -> Iterator[TextBlock]:
    begin = next((at for at in range(len(lines) - 1, -1, -1) if _begins_list(lines, at)), len(lines))
    prose, notes = _without_footnotes(lines[:begin])
    yield from _prose(prose)
    yield from notes
    if begin < len(lines):
        page, heading = lines[begin]
        yield TextBlock("heading", page, [_pieces(heading, page)], level=1)
        yield from _entries(lines[begin + 1 :])


def _without_footnotes(lines: Sequence[tuple[int, str]]) -> tuple[list[tuple[int, str]], list[TextBlock]]:
    """Return the lines without the footnotes below each page, and these: lines with the raised numbers that are above them."""
    kept: list[tuple[int, str]] = []
    notes: list[TextBlock] = []
    for page, group in groupby(lines, key=lambda line: line[0]):
        texts = [text for _, text in group]
        begins = _footnotes(texts)
        ends = [*(at for at, _ in begins), len(texts)][1:]
        for (at, number), end in zip(begins, ends, strict=True):
            text = ""
            for line in texts[at:end]:
                text = _continued(text, line) if line else text
            pieces = _pieces(text[len(number) :].lstrip(" .)"), page)
            notes += [TextBlock("note", page, [[]], name=number), TextBlock("note", page, [pieces], name=number)]
        kept += [(page, text) for text in texts[: begins[0][0] if begins else len(texts)]]
    return kept, notes


def _footnotes(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return which lines of a page begin a footnote, and their numbers; none if most raised numbers have no such line."""
    first_marks: dict[int, int] = {}
    for at, line in enumerate(lines):
        for mark in _RAISED_NUMBER.finditer(line):
            first_marks.setdefault(int(normalize("NFKC", mark[0])), at)
    if not first_marks or max(first_marks) - min(first_marks) > _MOST_ON_A_PAGE:
        return []
    begins: list[tuple[int, str]] = []
    end = len(lines)
    for number in range(max(first_marks), min(first_marks) - 1, -1):
        marked = first_marks.get(number, min(first_marks.values()))
        for at in range(end - 1, marked, -1):
            start = _FOOTNOTE.match(lines[at])
            if start and int(start[1]) == number:
                begins.insert(0, (at, start[1]))
                end = at
                break
    return begins if 2 * len(begins) > len(first_marks) else []


def _begins_list(lines: Sequence[tuple[int, str]], at: int) -> bool:
    line = lines[at][1]
    if not line or not is_list_name(line):
        return False
    following = next((text for _, text in lines[at + 1 : at + 4] if text), "")
    return bool(any(pattern.match(following) for pattern in _NUMBERED) or _NAMED.match(following) or "://" in following)


def _prose(lines: Sequence[tuple[int, str]]) -> Iterator[TextBlock]:
    from nlp_retrieval.systems.evidence.reading.pdf import join_lines

    open_page, open_text = 0, ""
    for number in sorted({page for page, _ in lines}):
        paragraphs = [
            part for part in join_lines("\n".join(line for page, line in lines if page == number)).split("\n\n") if part
        ]
        for at, paragraph in enumerate(paragraphs):
            if open_text and not at and paragraph[:1].islower():  # a sentence that goes on, on the next page
                yield TextBlock("paragraph", open_page, [_pieces(f"{open_text} {paragraph}", open_page)])
                open_text = ""
                continue
            if open_text:
                yield TextBlock("paragraph", open_page, [_pieces(open_text, open_page)])
            open_page, open_text = number, paragraph
    if open_text:
        yield TextBlock("paragraph", open_page, [_pieces(open_text, open_page)])


def _entries(lines: Sequence[tuple[int, str]]) -> Iterator[TextBlock]:
    """Yield the entries of a list of references: by their numbers, or else by authors at the beginning of a line."""
    lines = list(_with_points(lines))
    starts = {pattern: sum(1 for _, line in lines if pattern.match(line)) for pattern in (*_NUMBERED, _NAMED)}
    most = max(_NUMBERED, key=starts.__getitem__)
    start = most if starts[most] and 2 * starts[most] >= starts[_NAMED] else _NAMED
    page, entry = 0, ""
    for number, line in lines:
        if not line:
            continue
        begins = start.match(line) and (
            start is not _NAMED or not entry or _ENDED.search(entry) or (_DATED.match(line) and _YEAR.search(entry))
        )
        if begins and entry:
            yield TextBlock("paragraph", page, [_pieces(entry, page)])
            entry = ""
        page = page if entry else number
        entry = _continued(entry, line)
    if entry:
        yield TextBlock("paragraph", page, [_pieces(entry, page)])


def _with_points(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a list; if numbers alone count its entries ("3 Frisch, K."), with a full stop after each."""
    last, begins = 0, set[int]()
    for at, (_, line) in enumerate(lines):
        if (number := _BARE.match(line)) and int(number[1]) == last + 1:
            begins.add(at)
            last += 1
    for at, (page, line) in enumerate(lines):
        bare = _BARE.match(line) if last > 1 and at in begins else None
        yield page, f"{line[: bare.end(1)]}.{line[bare.end(1) :]}" if bare else line


def _continued(entry: str, line: str) -> str:
    """Return an entry with its next line; an address that was broken at the end of a line is made whole."""
    if not entry:
        return line
    address = _IN_ADDRESS.search(entry[-2100:])
    goes_on = re.match(r"[\w/._~%#?=&+()-]{1,2000}", line)
    is_rest = goes_on is not None and goes_on[0] == line and not line[0].isupper()
    if (
        address
        and goes_on
        and (is_rest or entry[-1] in "/-_=?&." or re.search(r"[0-9/_=]", goes_on[0]))
        and not _NAMED.match(line)
    ):
        return entry + line
    if entry[-1] == "-" and line[:1].islower():
        return entry[:-1] + line
    return f"{entry} {line}"


def _pieces(text: str, page: int) -> list[Piece]:
    draft = Draft()
    draft.text(text, page)
    return draft.take()
