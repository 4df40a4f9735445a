"""A source that was read: its text and its origin."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["SourceDocument"]


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
        doubtful: parts of the content that readers of the page may not see.
    """

    content: str
    url: str
    title: str = ""
    quality: str = "C"
    fetch_date: str = ""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    doubtful: tuple[str, ...] = field(default=(), compare=False)
