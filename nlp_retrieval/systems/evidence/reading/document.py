"""A source that was read: its text, and what is known of where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["SourceDocument"]


@dataclass(frozen=True)
class SourceDocument:
    """A source, as the index of evidence takes it.

    Args:
        content: its plain text, paragraphs divided by blank lines, without what no reader of it sees.
        url: where it comes from; ``file://`` for a file.
        title: of the source, or the name of its file.
        quality: its grade, "A" (best) to "E".
        fetch_date: when it was fetched, ISO 8601; empty where that is not known.
        given: what of this a person gave, and no rule, page or clock: "title", "quality", "fetch_date".
        doubtful: parts of the content of which it is not known whether a reader of the page sees them.
    """

    content: str
    url: str
    title: str = ""
    quality: str = "C"
    fetch_date: str = ""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    doubtful: tuple[str, ...] = field(default=(), compare=False)
