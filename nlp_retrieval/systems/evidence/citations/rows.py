"""Rows of an audit."""

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
    """Result of an audit for one citation.

    Args:
        citation: that was audited.
        status: PASS if its source supports the sentence, SOURCE_NOT_INDEXED if the source is not in the index, else REVIEW.
        reason: why it did not pass; empty if it did.
        support_score: 0 to 1, the calibrated probability that the source supports the sentence.
        passage: the passage of the cited source that is nearest to the sentence; None if the source is not in the index.
        sentence: where the deciding sentence begins and ends in the passage's content, in characters.
        other_source: URL of another indexed source that supports the sentence, if the reason is "another source".
        detail: one sentence for people: which number or name, and what the source says instead.
    """

    citation: Citation
    status: AuditStatus
    reason: AuditReason
    support_score: float
    passage: EvidencePassage | None
    sentence: tuple[int, int]
    other_source: str
    detail: str
