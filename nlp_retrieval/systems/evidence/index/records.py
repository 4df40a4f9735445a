"""What the index of sources gives back: passages, and versions of sources."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["EvidencePassage", "SourceVersion"]


@dataclass(frozen=True)
class EvidencePassage:
    """A passage of a source.

    Args:
        content: its text, exactly as it stands in the source's stored text.
        url: of the source, as it was added.
        title: of the source.
        quality: the source's grade, "A" (best) to "E".
        fetch_date: when the source was fetched, ISO 8601; empty where that is not known.
        score: higher is better; comparable within one list of results only. 0 where nothing was searched for.
        key: of the source's text: the first 12 characters or more of its SHA-256.
        start: where the passage begins in the stored text, in characters.
        end: where it ends.
        signals: how the score came about.
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
        fetch_date: when it was fetched, ISO 8601; empty where that is not known.
        passage_count: how many passages the text was split into.
        searchable: whether the index that is searched holds it.
    """

    key: str
    url: str
    title: str
    quality: str
    fetch_date: str
    passage_count: int
    searchable: bool
