"""What became of a subquestion: what was searched for, what happened to each page, and the passages that speak of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

from nlp_retrieval.processors import ExpandedQuery
from nlp_retrieval.systems.evidence.index.records import EvidencePassage

__all__ = ["PageStatus", "ResearchReport", "ResearchedPage", "WebQuery"]

PageStatus = Literal["added", "known", "refused", "failed"]
"""``added``: a new source, or a new version of one. ``known``: the index has it. ``refused``: by a rule, of ours or of its
site. ``failed``: it could not be fetched or read."""


@dataclass(frozen=True)
class WebQuery:
    """What a search engine was asked.

    Args:
        query: as it was asked.
        count: how many pages it found.
        error: why it found none; empty where it answered.
    """

    query: str
    count: int
    error: str = ""


@dataclass(frozen=True)
class ResearchedPage:
    """What happened to a page.

    Args:
        url: as the search engine gave it.
        status: one of :data:`PageStatus`.
        reason: why; empty for an added page.
        source_url: where it was read, under which it is cited; empty where it was not read.
        title: of the page, or as the search engine gave it.
        quality: the grade that it was added with; empty where it was not.
    """

    url: str
    status: PageStatus
    reason: str = ""
    source_url: str = ""
    title: str = ""
    quality: str = ""


@dataclass(frozen=True)
class ResearchReport:
    """The result of :func:`~nlp_retrieval.systems.evidence.web_research.workflow.research`.

    Args:
        subquestion: as it was asked.
        expansion: its hypothetical answer, and both together; None without HyDE.
        queries: what the search engine was asked.
        pages: what happened to each, in the order in which they were looked at.
        unread: how many other pages were found, and not looked at since enough were.
        passages: of the whole index, best first.
    """

    subquestion: str
    expansion: ExpandedQuery | None
    queries: list[WebQuery]
    pages: list[ResearchedPage]
    unread: int
    passages: list[EvidencePassage]

    def counts(self) -> dict[str, int]:
        """Return how many pages there are of each status."""
        counted = Counter(page.status for page in self.pages)
        return {status: counted[status] for status in ("added", "known", "refused", "failed")}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as of JSON."""
        return asdict(self)
