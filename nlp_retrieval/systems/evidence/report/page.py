"""The audit of a report's citations as one HTML page that needs no network: each claim next to the passage of its source.

Text of reports and sources is escaped, and the content security policy of the page allows only its own style sheet and script.
The HTML holds everything; the script only hides what a filter excludes. Invisible characters are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from nlp_retrieval.core import write_output
from nlp_retrieval.reports import asset, rendered
from nlp_retrieval.systems.evidence.citations.blocks import web_address
from nlp_retrieval.systems.evidence.citations.citation import CitedReport
from nlp_retrieval.systems.evidence.citations.rows import AuditRow
from nlp_retrieval.systems.evidence.citations.summary import summary_of
from nlp_retrieval.systems.evidence.report.words import STATUSES, said

__all__ = ["render_audit", "write_audit_page"]

_FILES = Path(__file__).parent / "files"


def render_audit(rows: Sequence[AuditRow], report: CitedReport, rule: str = "") -> str:
    """Return the page.

    Args:
        rows: one for each citation.
        report: that was audited.
        rule: the rule for passing, as a sentence.
    """
    summary = summary_of(rows)
    counts = Counter(row.status for row in rows)
    return rendered(
        "audit.html",
        _FILES,
        web_address=web_address,
        rows=rows,
        report=report,
        rule=rule,
        said=said(summary),
        statuses={status: counts[status] for status in STATUSES if counts[status]},
        words=STATUSES,
        reasons=summary.reasons,
        missing={one.number for one in report.missing},
        style=asset("report.css") + asset("passages.css") + asset("audit.css", _FILES),
        script=asset("audit.js", _FILES),
    )


def write_audit_page(rows: Sequence[AuditRow], report: CitedReport, path: str | Path, rule: str = "") -> None:
    """Write the page; a reader sees the old page or the complete new one.

    Args:
        rows: one for each citation.
        report: that was audited.
        path: the file to write. Its folder is created if missing.
        rule: the rule for passing, as a sentence.

    Raises:
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_audit(rows, report, rule).encode())
