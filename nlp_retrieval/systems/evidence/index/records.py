"""Results of the index of sources: passages, and versions of sources."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["EvidencePassage", "SourceVersion"]


@dataclass(frozen=True)
class EvidencePassage:
    """A passage of a source.

    Args:
        content: its text, exactly as in the source's stored text.
        url: of the source, as it was added.
        title: of the source.
        quality: the source's grade, "A" (best) to "E".
        fetch_date: when the source was fetched, ISO 8601; empty if unknown.
        score: higher is better; comparable within one list of results only. 0 without a search.
        key: of the source's text: the first 12 characters or more of its SHA-256.
        start: of the passage in the stored text, in characters.
        end: of the passage in the stored text.
        signals: that the score comes from.
    """

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


@dataclass(frozen=True)
class SourceVersion:
    """One text under one URL.

    Args:
        key: of the text: the first 12 characters or more of its SHA-256.
        url: as it was added.
        title: of the page.
        quality: its grade, "A" (best) to "E".
        fetch_date: when it was fetched, ISO 8601; empty if unknown.
        passage_count: number of passages of the text.
        searchable: whether the searched index holds it.
    """

    key: str
    url: str
    title: str
    quality: str
    fetch_date: str
    passage_count: int
    searchable: bool
