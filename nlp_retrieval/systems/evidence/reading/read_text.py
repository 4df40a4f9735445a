"""Result of reading the bytes of a source: a title, a text, and what was omitted."""

from __future__ import annotations

from dataclasses import dataclass

from nlp_retrieval.systems.evidence.reading.removed import Removed

__all__ = ["ReadText"]


@dataclass(frozen=True)
class ReadText:
    """The text of a source.

    Args:
        title: of the source; may be empty.
        text: plain text, paragraphs separated by blank lines.
        removed: counts of what was omitted since readers of the source do not see it.
        unread_pages: number of pages of a PDF that could not be read.
        doubtful: spans of the text that readers may not see; the page does not decide it.
        doubtful_elements: number of such elements of the page.
        outside_words: number of words outside the main text of a page, which were omitted: navigation, comments of readers.
        left_out: omitted texts, each after the reason.
    """

    title: str
    text: str
    removed: Removed
    unread_pages: int = 0
    doubtful: tuple[tuple[int, int], ...] = ()
    doubtful_elements: int = 0
    outside_words: int = 0
    left_out: tuple[tuple[str, str], ...] = ()
