"""Names of the statuses and reasons of the audit, for people."""

from __future__ import annotations

from nlp_retrieval.reports import counted, listed
from nlp_retrieval.systems.evidence.citations.rows import AuditStatus
from nlp_retrieval.systems.evidence.citations.summary import AuditSummary

__all__ = ["STATUSES", "said"]

STATUSES: dict[AuditStatus, str] = {"PASS": "passed", "REVIEW": "to review", "SOURCE_NOT_INDEXED": "not indexed"}


def said(summary: AuditSummary) -> str:
    """Return a summary as a sentence: ``"15 citations: 7 passed, 6 to review and 2 not indexed."``.

    Args:
        summary: of the audit.
    """
    if not summary.citations:
        return "The report has no citations."
    counts = (summary.passed, summary.review, summary.not_indexed)
    parts = [f"{count:,} {word}" for count, word in zip(counts, STATUSES.values(), strict=True)]
    return f"{counted(summary.citations, 'citation')}: {listed(parts)}."
