"""What an audit found about one citation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nlp_retrieval.systems.evidence.citations.citation import Citation
from nlp_retrieval.systems.evidence.index.records import EvidencePassage

__all__ = ["AuditReason", "AuditRow", "AuditStatus"]

AuditStatus = Literal["PASS", "REVIEW", "SOURCE_NOT_INDEXED"]
AuditReason = Literal[
    "",
    "contradicted",
    "other number",
    "unclear number",
    "other entity",
    "another source",
    "changed source",
    "hidden text",
    "quote not found",
    "not found",
    "not judged",
    "too long",
    "no reference",
    "deleted source",
]


@dataclass(frozen=True)
class AuditRow:
    """What an audit found about one citation.

    Args:
        citation: which.
        status: PASS where its source supports the sentence, SOURCE_NOT_INDEXED where the source is not there, else REVIEW.
        reason: why it did not pass; empty where it did.
        support_score: 0 to 1, the calibrated probability that the source supports the sentence.
        passage: the passage of the cited source that comes nearest to the sentence; None where the source is not there.
        sentence: where the deciding sentence begins and ends in the passage's content, in characters.
        other_source: URL of another indexed source that supports the sentence, where the reason is "another source".
        detail: one sentence for people: which number, which name, what stands in the source instead.
    """

    citation: Citation
    status: AuditStatus
    reason: AuditReason
    support_score: float
    passage: EvidencePassage | None
    sentence: tuple[int, int]
    other_source: str
    detail: str
