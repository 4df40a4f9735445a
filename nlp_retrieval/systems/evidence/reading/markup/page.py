"""A page of HTML or Markdown to its title and plain text, without what no reader of it sees.

trafilatura says where the main text is; all that the page shows there is read, and not only what trafilatura takes out
of it. Where it finds next to nothing, as on a very short page, or much less than the page holds besides navigation, all of the
page is read.

Source: Barbaresi, "Trafilatura: A Web Scraping Library and Command-Line Tool for Text Discovery and Extraction", ACL 2021.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from nlp_retrieval.errors import SourceError
from nlp_retrieval.systems.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.systems.evidence.reading.markup.blocks import Line, lines_of, text_of_lines
from nlp_retrieval.systems.evidence.reading.markup.hidden import DOUBT, DOUBT_ENDS, remove_hidden
from nlp_retrieval.systems.evidence.reading.markup.main_text import main_lines
from nlp_retrieval.systems.evidence.reading.markup.raised import read_raised
from nlp_retrieval.systems.evidence.reading.markup.styles import StylesTooCostlyError
from nlp_retrieval.systems.evidence.reading.read_text import ReadText
from nlp_retrieval.systems.evidence.reading.removed import Removed

__all__ = ["read_html", "read_markdown"]

_DOUBT_MARKS = re.compile(f"([{DOUBT}{DOUBT_ENDS}])")

_DEEPEST = 250
"""Elements inside each other; the parser stops at 256, and would leave out what comes after."""

_DEEPEST_MARKDOWN = 100
"""Quotes inside each other, and half as many lists; the parser calls itself for each, and leaves out what lies deeper."""


def read_html(text: str, where: str) -> ReadText:
    """Return the title and the main text of a page.

    Navigation, readers' comments and advertisements are left out as far as they can be told from the main text. The title is
    that of the ``title`` element, else the first heading; what ``meta`` elements say is not read.

    Args:
        text: HTML.
        where: the page's name, for messages.

    Raises:
        SourceError: it is nested too deeply, or holds no text.
    """
    cleaned, removed = clean_text(text)
    return _read(cleaned, where, removed, main_text_only=True)


def read_markdown(text: str, where: str) -> ReadText:
    """Return the title and the text of a Markdown file, as its reader sees it: without marks, addresses and hidden HTML.

    The title is the first heading.

    Args:
        text: CommonMark, with tables.
        where: the file's name, for messages.

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
        raise SourceError(f"{where}: more than {_DEEPEST_MARKDOWN // 2} lists or quotes stand inside each other; flatten it")
    return _read(parser.renderer.render(marks, parser.options, {}), where, removed, main_text_only=False)


def _read(text: str, where: str, removed: Removed, main_text_only: bool) -> ReadText:
    page = _parsed(text, where)
    try:
        hidden, doubtful, left_out = remove_hidden(page)
    except StylesTooCostlyError:
        raise SourceError(f"{where}: its style sheets take more work than a page needs; save it as plain text") from None
    count, marks = read_raised(page)
    left_out += [("footnote marks", " ".join(marks))] if marks else []
    title, removed_there = clean_title(_title(page))
    body = page.find("body")
    lines = lines_of(page if body is None else body)
    kept = main_lines(page, lines) if main_text_only else [True] * len(lines)
    outside = [line.text for line, keep in zip(lines, kept, strict=True) if not keep]
    left_out += [("outside the main text", _DOUBT_MARKS.sub("", one)) for one in outside]
    content, spans, removed_after = _without_marks(text_of_lines(_only(lines, kept)))
    return ReadText(
        title,
        content,
        removed + hidden + removed_there + removed_after + Removed(marks=count),
        doubtful=tuple(spans),
        doubtful_elements=doubtful,
        outside_words=sum(len(one.split()) for one in outside),
        left_out=tuple((why, one) for why, one in left_out if one),
    )


def _only(lines: list[Line], kept: list[bool]) -> Iterator[Line]:
    """The lines that are kept; a paragraph ends where one ended between two of them."""
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


def _without_marks(text: str) -> tuple[str, list[tuple[int, int]], Removed]:
    """A text without the marks of doubt, the spans that stood between them, and what else was removed."""
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    removed, begin, length = Removed(), -1, 0
    for piece in _DOUBT_MARKS.split(text.strip()):
        if piece in (DOUBT, DOUBT_ENDS):
            if piece == DOUBT_ENDS and 0 <= begin < length:
                spans.append((begin, length))
            begin = length if piece == DOUBT else -1
            continue
        # entities (&#8203;) become characters only when the page is parsed
        cleaned, gone = clean_text(piece)
        cleaned = cleaned if parts else cleaned.lstrip()
        parts.append(cleaned)
        removed += gone
        length += len(cleaned)
    content = "".join(parts).rstrip()
    return content, [(start, min(end, len(content))) for start, end in spans if start < len(content)], removed


def _parsed(text: str, where: str) -> Any:
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
        raise SourceError(f"{where}: more than {_DEEPEST} elements stand inside each other; save it as plain text")
    return page


def _title(page: Any) -> str:
    for path in ("head/title", "body//h1"):
        found = page.find(path)
        if found is not None and (title := found.text_content().strip()):
            return str(title)
    return ""
