"""Stored form of a source's text, and its split into passages.

A text is stored in one form, so that the same text is the same bytes: it has one identity, and every span is valid for it.
For every passage, ``text[start:end]`` is its content; every character that is not white space is in a passage.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nlp_retrieval.core import ByKey, normalize, refuse_lone_surrogates
from nlp_retrieval.errors import ItemError
from nlp_retrieval.text import sentence_spans, words_of

SIZE = 500
"""The most characters of a passage."""

OVERLAP = 50
"""The most characters of sentences that a passage repeats from the one before."""

_WRAPPED = range(60, 121)
"""Lengths of lines that a program wrapped; a shorter or longer line was ended by its author."""

_INVISIBLE = frozenset(("Cc", "Cf", "Zs", "Zl", "Zp"))
_BEGINNING = re.compile(r"\A[\s\ufeff]+")
_BLANK_LINES = re.compile(r"\n{3,}")
_LIST_MARK = re.compile(r"[ \t]*(?:[-*+•–#|>]|\(?\w{1,3}[.)])\s")  # noqa: RUF001


@dataclass(frozen=True)
class EvidencePassage(ByKey):
    """A passage of a source, a span of its stored text; its fields are read by key, too: ``passage["content"]``."""

    content: str
    url: str
    title: str
    quality: str
    fetch_date: str
    score: float
    key: str
    start: int
    end: int
    signals: dict[str, float] = field(default_factory=dict)
    pages: list[int] = field(default_factory=list)
    page_breaks: list[int] = field(default_factory=list)

    def page_of(self, start: int = 0, end: int | None = None) -> str:
        """Return the pages of a part of the content: ``"p. 12"``, ``"pp. 12-13"``; empty if its source has no pages."""
        stop = len(self.content) if end is None else end
        first = sum(page_break <= start for page_break in self.page_breaks)
        last = max(first, sum(page_break < stop for page_break in self.page_breaks))
        on = self.pages[first : last + 1]
        return "" if not on else f"p. {on[0]}" if len(on) == 1 else f"pp. {on[0]}-{on[-1]}"


def by_shared_words(query: str, texts: Sequence[str]) -> list[int]:
    """Return the numbers of texts, first of those that share most words with a query."""
    wanted = set(words_of(query))
    shared = [len(wanted.intersection(words_of(text))) for text in texts]
    return sorted(range(len(texts)), key=lambda number: -shared[number])


class _Unit(NamedTuple):
    """A sentence, or a piece of one that is longer than a passage; ``closes`` if a paragraph ends with it."""

    start: int
    end: int
    whole: bool
    closes: bool


def normal_text(content: str) -> str:
    """Return a text as it is stored: in NFC, with line feeds alone, no white space at ends of lines, one blank line at most."""
    if not isinstance(content, str):
        raise ItemError(f"the content of a source is a string, not {type(content).__name__}; decode it first")
    refuse_lone_surrogates(content, "the content", ItemError)
    text = normalize("NFC", content)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    text = _BLANK_LINES.sub("\n\n", _BEGINNING.sub("", text)).rstrip()
    if all(unicodedata.category(char) in _INVISIBLE for char in text):
        raise ItemError("the content is empty; a source without text supports nothing; omit it")
    return text


def passage_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the passages of a stored text: of 500 characters at most, ended by a paragraph, else a sentence."""
    units = list(_units(text))
    spans = []
    first = 0
    while first < len(units):
        begin, last = units[first].start, first
        while last + 1 < len(units) and units[last + 1].end <= begin + SIZE:
            last += 1
        if (after := last + 1) < len(units):
            closing = (number for number in range(last, first - 1, -1) if units[number].closes)
            last = next((number for number in closing if units[number].end >= begin + SIZE // 2), last)
            after = last + 1
        spans.append((begin, units[last].end))
        back = first
        first = after
        while (  # the next one repeats whole sentences of the same paragraph
            after < len(units)
            and not units[last].closes
            and first - 1 > back
            and units[first - 1].whole
            and units[last].end - units[first - 1].start <= OVERLAP
            and units[after].end - units[first - 1].start <= SIZE
        ):
            first -= 1
    return spans


def _units(text: str) -> Iterator[_Unit]:
    for start, end in _paragraphs(text):
        sentences = sentence_spans(text[start:end])
        for number, (low, high) in enumerate(sentences, start=1):
            yield from _pieces(text, start + low, start + high, number == len(sentences))


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Yield spans of lines that belong together: up to a blank line, or the end of a line that its author ended."""
    begin = start = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        end = start + len(line)
        after = lines[number + 1] if number + 1 < len(lines) else ""
        if not line or not after or len(line) not in _WRAPPED or _LIST_MARK.match(after):
            if text[begin:end].strip():
                yield begin, end
            begin = end + 1
        start = end + 1


def _pieces(text: str, start: int, end: int, closes: bool) -> Iterator[_Unit]:
    """Yield a sentence, or the pieces of one that is longer than a passage."""
    whole = end - start <= SIZE
    while end - start > SIZE:
        cut = _cut(text, start, start + SIZE)
        yield _Unit(start, start + len(text[start:cut].rstrip()), whole=False, closes=False)
        start = cut + len(text[cut:end]) - len(text[cut:end].lstrip()) if text[cut].isspace() else cut
    yield _Unit(start, end, whole, closes)


def _cut(text: str, start: int, limit: int) -> int:
    """Return where to cut a sentence, at the limit or before: at white space, else not between a character and its accents."""
    gap = next((position for position in range(limit, start, -1) if text[position].isspace()), None)
    if gap is not None:
        return gap
    return next((position for position in range(limit, start, -1) if not unicodedata.combining(text[position])), limit)
