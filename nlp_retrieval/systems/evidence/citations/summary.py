"""Summary of an audit in a few numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.systems.evidence.citations.rows import AuditRow

__all__ = ["AuditSummary", "summary_of"]


@dataclass(frozen=True)
class AuditSummary:
    """Numbers of citations of a report by the result of its audit.

    Args:
        citations: number of all.
        passed: number whose source supports the sentence.
        review: number that a person should check.
        not_indexed: number whose source is not in the index.
        reasons: number that did not pass for each reason, most frequent first.
    """

    citations: int
    passed: int
    review: int
    not_indexed: int
    reasons: dict[str, int]


def summary_of(rows: Sequence[AuditRow]) -> AuditSummary:
    """Count the rows of an audit.

    Args:
        rows: one for each citation.
    """
    statuses = Counter(row.status for row in rows)
    reasons = Counter(row.reason for row in rows if row.reason)
    return AuditSummary(
        len(rows), statuses["PASS"], statuses["REVIEW"], statuses["SOURCE_NOT_INDEXED"], dict(reasons.most_common())
    )
