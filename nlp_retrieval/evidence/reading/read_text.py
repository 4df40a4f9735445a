"""What reading the bytes of a source gives: a title, a text, and what was left out of it."""

from __future__ import annotations

from dataclasses import dataclass

from nlp_retrieval.evidence.reading.removed import Removed

__all__ = ["ReadText"]


@dataclass(frozen=True)
class ReadText:
    """The text of a source.

    Args:
        title: of the source; empty where it names none.
        text: plain text, paragraphs divided by blank lines.
        removed: what was left out since no reader of the source sees it.
        unread_pages: how many pages of a PDF could not be read.
    """

    title: str
    text: str
    removed: Removed
    unread_pages: int = 0
