"""Report of the research on a subquestion: the queries, the status of each page, and the passages about it."""

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
    """A query to a search engine.

    Args:
        query: its text.
        count: number of pages found.
        error: why there was no answer; else empty.
    """

    query: str
    count: int
    error: str = ""


@dataclass(frozen=True)
class ResearchedPage:
    """Result for a page.

    Args:
        url: from the search engine.
        status: one of :data:`PageStatus`.
        reason: for the status; empty for an added page.
        source_url: the address at which it was read and is cited; empty if it was not read.
        title: of the page, or from the search engine.
        quality: its grade in the index; empty if it was not added.
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
        subquestion: its text.
        expansion: its hypothetical answer, and both together; None without HyDE.
        queries: to the search engine.
        pages: result for each, in the order of processing.
        unread: number of other pages found, which were not processed because there were enough.
        passages: of the whole index, best first.
    """

    subquestion: str
    expansion: ExpandedQuery | None
    queries: list[WebQuery]
    pages: list[ResearchedPage]
    unread: int
    passages: list[EvidencePassage]

    def counts(self) -> dict[str, int]:
        """Return the number of pages by status."""
        counted = Counter(page.status for page in self.pages)
        return {status: counted[status] for status in ("added", "known", "refused", "failed")}

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)
