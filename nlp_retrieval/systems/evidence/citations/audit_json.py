"""An audit as JSON, for programs.

The keys stay as they are within one ``format``:

- ``report``: ``title``
- ``summary``: ``citations``, ``passed``, ``review``, ``not_indexed``, ``reasons``
- ``citations``: of each ``number``, ``mark``, ``sentence``, ``line``, ``url``, ``title``, ``status``, ``reason``, ``detail``,
  ``support_score``, ``other_source``, and ``passage``: null, or ``content``, ``url``, ``title``, ``quality``, ``fetch_date``,
  ``key``, ``start``, ``end`` and ``deciding``, the span of the deciding sentence in ``content``
- ``uncited``: of each ``sentence``, ``line``
- ``missing``: of each ``mark``, ``sentence``, ``line``
- ``unused``, ``duplicates``: of each ``mark``, ``title``, ``url``, ``line``

The text holds no ``<``, ``>`` or ``&``, so it can be embedded in a page unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from nlp_retrieval.systems.evidence.citations.citation import CitedReport
from nlp_retrieval.systems.evidence.citations.rows import AuditRow
from nlp_retrieval.systems.evidence.citations.summary import summary_of

__all__ = ["FORMAT", "audit_json"]

FORMAT = 1

_ESCAPED = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def audit_json(rows: Sequence[AuditRow], report: CitedReport) -> str:
    """Return an audit as JSON.

    Args:
        rows: one for each citation.
        report: that was audited.
    """
    audit = {
        "format": FORMAT,
        "report": {"title": report.title},
        "summary": asdict(summary_of(rows)),
        "citations": [_row(row) for row in rows],
        "uncited": [asdict(one) for one in report.uncited],
        "missing": [{"mark": one.mark, "sentence": one.sentence, "line": one.line} for one in report.missing],
        "unused": [asdict(one) for one in report.unused],
        "duplicates": [asdict(one) for one in report.duplicates],
    }
    text = json.dumps(audit, indent=1, ensure_ascii=False, allow_nan=False).translate(_ESCAPED)
    # UTF-8 cannot encode a lone surrogate
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") + "\n"


def _row(row: AuditRow) -> dict[str, object]:
    citation, passage = row.citation, row.passage
    return {
        "number": citation.number,
        "mark": citation.mark,
        "sentence": citation.sentence,
        "line": citation.line,
        "url": citation.url,
        "title": citation.title,
        "status": row.status,
        "reason": row.reason,
        "detail": row.detail,
        "support_score": row.support_score,
        "other_source": row.other_source,
        "passage": None
        if passage is None
        else {
            "content": passage.content,
            "url": passage.url,
            "title": passage.title,
            "quality": passage.quality,
            "fetch_date": passage.fetch_date,
            "key": passage.key,
            "start": passage.start,
            "end": passage.end,
            "deciding": list(row.sentence),
        },
    }
