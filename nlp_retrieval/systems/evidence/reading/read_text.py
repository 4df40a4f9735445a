"""What reading the bytes of a source gives: a title, a text, and what was left out of it."""

from __future__ import annotations

from dataclasses import dataclass

from nlp_retrieval.systems.evidence.reading.removed import Removed

__all__ = ["ReadText"]


@dataclass(frozen=True)
class ReadText:
    """The text of a source.

    Args:
        title: of the source; empty where it names none.
        text: plain text, paragraphs divided by blank lines.
        removed: what was left out since no reader of the source sees it.
        unread_pages: how many pages of a PDF could not be read.
        doubtful: spans of the text of which the page does not decide whether a reader sees them.
        doubtful_elements: how many elements of the page that is.
        outside_words: how many words stand outside the main text of a page, and were left out: navigation, comments of readers.
        left_out: what was left out, each text after the reason.
    """

    title: str
    text: str
    removed: Removed
    unread_pages: int = 0
    doubtful: tuple[tuple[int, int], ...] = ()
    doubtful_elements: int = 0
    outside_words: int = 0
    left_out: tuple[tuple[str, str], ...] = ()
