"""Sources that were read: their text, what was left out of it, and the limits of reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

# All limits of reading sources.
#
# A source may come from anyone. One that exceeds a limit is refused with a message that names the limit, and never cut.

LARGEST_FILE = 50 * 2**20
"""Bytes of a plain text or a PDF."""

LARGEST_MARKUP = 10 * 2**20
"""Bytes of a page of HTML or Markdown: the time to find its main text is quadratic in its size."""

LARGEST_TEXT = 20 * 2**20
"""Characters of text of one source."""

READ_HERE = {"html": 2**18, "markdown": 2**15}
"""Bytes of a page that this process reads itself, since even a malicious one takes only seconds. A larger one is read in a
child process, which can be stopped."""

CHILD_SECONDS = 60.0
"""Seconds that a child process may read one source."""

CHILD_MEMORY = 2 * 2**30
"""Bytes of address space that a child process may use."""

MOST_PAGES = 5000
"""Pages of a PDF."""

LONGEST_TITLE = 300
"""Characters of a title; a longer one is cut at a word."""

LONGEST_URL = 2048
"""Characters of a URL."""


_WORDS = {
    "hidden": ("hidden element", "hidden elements"),
    "unrendered": ("comment or element that browsers do not show", "comments or elements that browsers do not show"),
    "zero_width": ("zero-width character", "zero-width characters"),
    "directional": ("control of the writing direction", "controls of the writing direction"),
    "tags": ("Unicode tag character", "Unicode tag characters"),
    "controls": ("control character", "control characters"),
    "struck": ("struck passage", "struck passages"),
    "marks": ("footnote mark", "footnote marks"),
}


@dataclass(frozen=True)
class Removed:
    """Counts of what was removed from a text; two of them can be added.

    Args:
        hidden: elements of a page with text that is hidden by style or attribute.
        unrendered: comments, and elements with text that a browser does not show: template, noscript and the like.
        zero_width: characters without width or function, including soft hyphens.
        directional: characters that change the direction of the writing around them.
        tags: characters of the Unicode tag block, which mirror ASCII and are invisible.
        controls: control characters other than tab and line feed, and lone surrogates.
        struck: passages that the author struck out.
        marks: marks of footnotes, which are not part of a sentence.
    """

    hidden: int = 0
    unrendered: int = 0
    zero_width: int = 0
    directional: int = 0
    tags: int = 0
    controls: int = 0
    struck: int = 0
    marks: int = 0

    def __add__(self, other: Removed) -> Removed:
        return Removed(*(getattr(self, kind.name) + getattr(other, kind.name) for kind in fields(self)))

    def __bool__(self) -> bool:
        return any(getattr(self, kind.name) for kind in fields(self))

    @property
    def suspicious(self) -> bool:
        """Return whether more than usual was removed: hidden elements, tag characters or directional controls."""
        return bool(self.hidden or self.tags or self.directional)

    def describe(self) -> str:
        """Return what was omitted, for people: ``2 hidden elements, 1 zero-width character``; empty for nothing."""
        counts = {kind.name: int(getattr(self, kind.name)) for kind in fields(self)}
        return ", ".join(f"{count:,} {_WORDS[name][count != 1]}" for name, count in counts.items() if count)


@dataclass(frozen=True)
class ReadText:
    """The text of a source.

    Args:
        title: of the source; may be empty.
        text: plain text, paragraphs separated by blank lines.
        removed: counts of what was omitted since readers of the source do not see it.
        unread_pages: number of pages of a PDF that could not be read.
        outside_words: number of words outside the main text of a page, which were omitted: navigation, comments of readers.
        left_out: omitted texts, each after the reason.
        pages: of a PDF, the number of each page with text, from 1, and where it begins in the text.
        metadata: that the source states about itself, by lower-case names.
        notes: what was read in a certain way, as tracked changes, for people.
    """

    title: str
    text: str
    removed: Removed
    unread_pages: int = 0
    outside_words: int = 0
    left_out: tuple[tuple[str, str], ...] = ()
    pages: tuple[tuple[int, int], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceDocument:
    """A source in the form that the index of evidence accepts.

    Args:
        content: its plain text, paragraphs separated by blank lines, without anything that its readers do not see.
        url: of the source; ``file://`` for a file.
        title: of the source, or the name of its file.
        quality: its grade, "A" (best) to "E".
        fetch_date: when it was fetched, ISO 8601; empty if unknown.
        given: the values that came from a person, not from a rule, page or clock: "title", "quality", "fetch_date".
        pages: numbers of its pages with text, from 1, and where each begins in the content.
        metadata: more about it, as its DOI: text by name.
        aliases: more URLs that it is cited by.
    """

    content: str
    url: str
    title: str = ""
    quality: str = "C"
    fetch_date: str = ""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    pages: tuple[tuple[int, int], ...] = field(default=(), compare=False)
    metadata: Mapping[str, str] = field(default_factory=dict, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)
