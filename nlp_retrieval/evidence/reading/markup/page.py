"""A page of HTML or Markdown to its title and plain text, without what no reader of it sees.

The main text is found by trafilatura; where it finds next to nothing, as on a very short page, all of the page is read.

Source: Barbaresi, "Trafilatura: A Web Scraping Library and Command-Line Tool for Text Discovery and Extraction", ACL 2021.
"""

from __future__ import annotations

from typing import Any

from nlp_retrieval.errors import SourceError
from nlp_retrieval.evidence.reading.cleaning import clean_text, clean_title
from nlp_retrieval.evidence.reading.markup.blocks import block_text, raise_digits
from nlp_retrieval.evidence.reading.markup.hidden import remove_hidden
from nlp_retrieval.evidence.reading.read_text import ReadText
from nlp_retrieval.evidence.reading.removed import Removed

__all__ = ["read_html", "read_markdown"]

_LEAST_MAIN_TEXT = 250
"""Characters; with less, it is not clear that the main text was found. Trafilatura's own default for the same question."""

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

    cleaned, removed = clean_text(text)
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": _DEEPEST_MARKDOWN}).enable("table")
    marks = parser.parse(cleaned)
    if any(mark.level >= _DEEPEST_MARKDOWN - 1 for mark in marks):
        raise SourceError(f"{where}: more than {_DEEPEST_MARKDOWN // 2} lists or quotes stand inside each other; flatten it")
    return _read(parser.renderer.render(marks, parser.options, {}), where, removed, main_text_only=False)


def _read(text: str, where: str, removed: Removed, main_text_only: bool) -> ReadText:
    page = _parsed(text, where)
    raise_digits(page)
    removed += remove_hidden(page)
    title, removed_there = clean_title(_title(page))
    body = page.find("body")
    content = _main_text(page) if main_text_only else ""
    if len(content) < _LEAST_MAIN_TEXT:
        content = block_text(page if body is None else body)
    # entities (&#8203;) become characters only when the page is parsed
    content, removed_after = clean_text(content)
    return ReadText(title, content.strip(), removed + removed_there + removed_after)


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


def _main_text(page: Any) -> str:
    """The main text of a page, or nothing where trafilatura finds none; the page is not changed."""
    from trafilatura import bare_extraction
    from trafilatura.settings import use_config

    config = use_config()
    config.set("DEFAULT", "MIN_EXTRACTED_SIZE", "1")  # below it all the text becomes one paragraph
    found: Any = bare_extraction(
        page, include_comments=False, include_tables=True, favor_recall=True, deduplicate=False, config=config
    )
    return "" if found is None or found.body is None else block_text(found.body)
