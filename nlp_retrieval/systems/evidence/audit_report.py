"""An audit of a report's citations as an HTML page, JSON, text for a terminal, and Markdown in the project."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from nlp_retrieval.core import ByKey
from nlp_retrieval.documents import Reference, web_address
from nlp_retrieval.reports import asset, rendered
from nlp_retrieval.systems.evidence.audit import AuditRow, AuditStatus, CitationAudit
from nlp_retrieval.systems.evidence.citations.published import CheckedReference, checked_sentence
from nlp_retrieval.systems.evidence.citations.report import Citation, ReportSentence
from nlp_retrieval.systems.evidence.index.evidence_index import IndexStatistics
from nlp_retrieval.text import counted, listed, visible

_SEVERITY = (
    "rejected, contradicted, other number, quote not found, other entity, changed source, another source, not found, "
    "unclear number, not judged, too long, no reference, deleted source, not indexed, weak, accepted, passed"
).split(", ")
"""Results of rows, those that a reviewer should see first before the others."""


def by_severity(rows: Sequence[AuditRow]) -> list[AuditRow]:
    """Return rows in the order in which a reviewer should see them: the gravest first, then weak ones, then those that pass."""
    return sorted(rows, key=lambda row: (_SEVERITY.index(row.result), row.citation.number))


def summary_sentence(rows: Sequence[AuditRow]) -> str:
    """Return a summary: ``"5 of 15 citations pass; 2 weak; 8 to review: 4 other number, 2 not found and 2 not indexed."``."""
    if not rows:
        return "The report has no citations."
    parts = [f"{sum(row.passes for row in rows):,} of {counted(len(rows), 'citation')} pass"]
    if weak := sum(row.is_weak for row in rows):
        parts.append(f"{weak:,} weak")
    if counts := Counter(row.result for row in by_severity(rows) if row.to_review):
        parts.append(f"{counts.total():,} to review: {listed([f'{count:,} {result}' for result, count in counts.items()])}")
    return "; ".join(parts) + "."


# One HTML page that needs no network: each claim next to the passage of its source, and the report beside them.
#
# Text of reports and sources is escaped, and the content security policy of the page allows only its own style sheet and
# script. The HTML holds everything; the script only hides what a filter excludes. Invisible characters are named.

_FILES = Path(__file__).parent / "audit_page"


def render_audit(audit: CitationAudit, rule: str = "") -> str:
    """Return the page."""
    ordered = by_severity(audit.rows)
    return rendered(
        "audit.html",
        _FILES,
        web_address=web_address,
        groups=[
            ("open", "To review", [row for row in ordered if row.to_review]),
            ("weak", "Weak", [row for row in ordered if row.is_weak]),
            ("passed", "Passed", [row for row in ordered if row.passes]),
        ],
        report=audit.report,
        rule=rule,
        said=summary_sentence(audit.rows),
        checked=checked_sentence(audit.report.checked),
        results=Counter(row.result for row in ordered),
        rows={row.citation.number: row for row in audit.rows},
        missing={citation.number for citation in audit.report.missing},
        style=asset("report.css") + asset("passages.css") + asset("audit.css", _FILES),
        script=asset("audit.js", _FILES),
    )


# JSON, for programs; the keys stay as they are within one format.

FORMAT = 3
_ESCAPED = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


class AuditAnswer(BaseModel):
    """Result of an audit, as ``nlp-retrieval evidence audit --json`` writes it; ``unit`` is what a ``line`` counts."""

    format: int
    title: str
    unit: str
    notes: list[str]
    summary: dict[AuditStatus, int]
    rows: list[dict[str, Any]]
    uncited: list[ReportSentence]
    missing: list[Citation]
    unused: list[Reference]
    checked: list[CheckedReference]


def audit_json(audit: CitationAudit) -> str:
    """Return an audit as JSON; it holds no ``<``, ``>`` or ``&``, so it can be embedded in a page unchanged."""
    answer = {
        name: getattr(audit.report, name) for name in ("title", "unit", "notes", "uncited", "missing", "unused", "checked")
    }
    answer |= {"format": FORMAT, "summary": Counter(row.status for row in audit.rows), "rows": audit.rows}

    def plain(part: Any) -> dict[str, Any]:
        return dict(part) if isinstance(part, ByKey) else asdict(part)

    text = json.dumps(answer, indent=1, ensure_ascii=False, allow_nan=False, default=plain).translate(_ESCAPED)
    # UTF-8 cannot encode a lone surrogate
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") + "\n"


# Text for a terminal of any width: invisible characters in a claim are named, and nothing in it is a command.

_LONGEST_QUOTE = 600


def print_audit(console: Console, audit: CitationAudit, rule: str = "", shown: Sequence[AuditRow] | None = None) -> None:
    """Print the rows of an audit, or some of them, those to review first; nothing of a claim is cut."""
    report = audit.report
    console.print(Text(summary_sentence(audit.rows), style="bold"))
    lists: dict[str, Sequence[object]] = {
        "facts without a citation": report.uncited,
        "marks without a reference": report.missing,
        "references never cited": report.unused,
    }
    if parts := [f"{what}: {len(entries):,}" for what, entries in lists.items() if entries]:
        console.print(Text("; ".join(parts).capitalize() + "."))
    if report.checked:
        console.print(Text(checked_sentence(report.checked)))
    for one in report.checked:
        if one.status != "as cited":
            mark = f"[{one.reference.mark}] " if one.reference.mark else ""
            console.print(Text(visible(f"{mark}{one.reference.title}"), style="bold"))
            console.print(Padding(Text(visible(f"{one.status}: {one.detail}")), (0, 0, 0, 3)))
    for row in by_severity(audit.rows if shown is None else shown):
        support = f", support {row.support_score:.2f}" if row.passage is not None else ""
        style = "green" if row.passes else "cyan" if row.is_weak else "yellow"
        heading = Text.assemble(f"\n{row.citation.number}  ", (row.result, style))
        console.print(heading.append(f"  {report.unit} {row.citation.line}{support}", "dim"))
        for text in _lines_of(row):
            console.print(Padding(Text(visible(text)), (0, 0, 0, 3)))
    if rule:
        console.print(Text(f"\n{rule}", style="dim"))


def _lines_of(row: AuditRow) -> Iterable[str]:
    """Yield the claim, the detail, the source with what it says, and the review."""
    yield row.citation.sentence or "There is no sentence at this mark."
    yield from filter(None, (row.detail, row.other_source and f"see {row.other_source}"))
    if row.result != "passed":
        said = "" if row.other_source else " ".join(decisive(row)[:_LONGEST_QUOTE].split())
        address = row.citation.url.removeprefix("https://").removeprefix("http://") or row.citation.title
        yield from filter(None, (said and f"\u201c{said}\u201d", ", ".join(filter(None, (address, row.page)))))
    if row.review is not None:
        yield row.review.said


# ``09_qa/retrieval_audit.md``: the index, its queries, every citation, and what to do.
#
# Claims, addresses and passages are untrusted. They are escaped in the file: they cannot end a row, or make a link, image,
# heading or HTML.

PLACE = Path("09_qa") / "retrieval_audit.md"

_LONGEST_CELL = 300
_MARKUP = re.compile(r"([\\`*_\[\](){}<>|~$&#!]|:(?=/)|(?<=[^\W_])\.(?=[^\W\d_]))")


def retrieval_audit(audit: CitationAudit, index: IndexStatistics, engine: str, rule: str = "") -> str:
    """Return the audit as Markdown."""
    queries, without = index["total_queries"], index["zero_result_queries"]
    relevance = f"{index['average_relevance']:.1f}/10" if queries else "not measured"
    lines = [
        "# Retrieval Quality Audit",
        "",
        "## Index Statistics",
        "",
        f"- Documents indexed {index['indexed_count']}",
        f"- Total passages {index['indexed_passage_count']}",
        f"- Unique sources {index['indexed_domains']}",
        "",
        "## Query Performance",
        "",
        f"- Queries executed {queries}",
        f"- Average relevance score {relevance}",
        f"- Zero-result queries {without} ({without / max(queries, 1):.0%})",
        "",
        "Relevance is ten times the share of a query's words that are in the best passage.",
        "",
        "## Citation Verification via ColBERT",
        "",
        "Each citation was judged within its own source: by the whole text, or, where that is long, by the passages in it "
        f"that were retrieved by {_text(engine)}.",
        *([_text(rule)] if rule else []),
        "",
        *(_markdown_table(audit.rows) if audit.rows else ["The report has no citations."]),
        "",
        "## Recommendations",
        "",
        *_recommendations(audit),
    ]
    return "\n".join(lines) + "\n"


def _markdown_table(rows: Iterable[AuditRow]) -> list[str]:
    lines = ["| Claim | Cited Source | Retrieved Passage | Support Score | Status |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        passage = decisive(row)
        cells = [
            _text(row.citation.sentence),
            _address(row.citation.url) or "no reference",
            _text(f"{passage} ({row.page})" if row.page else passage) or "none",
            f"{row.support_score:.2f}" if row.status != "SOURCE_NOT_INDEXED" else "none",
            row.status,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def decisive(row: AuditRow) -> str:
    """Return the deciding sentence of the passage, or the passage if there is none; empty without a passage."""
    if row.passage is None:
        return ""
    begin, end = row.sentence
    return row.passage.content[begin:end] or row.passage.content


def _recommendations(audit: CitationAudit) -> list[str]:
    open_rows = [row for row in audit.rows if row.to_review]
    absent = [row.citation.url for row in open_rows if row.status == "SOURCE_NOT_INDEXED"]
    doubtful = [row for row in open_rows if row.status != "SOURCE_NOT_INDEXED"]
    weak = [row for row in audit.rows if row.is_weak]
    unit = audit.report.unit
    return [
        "### Sources to re-fetch",
        "",
        *([f"- {_address(url)}" for url in dict.fromkeys(absent)] or ["None."]),
        "",
        "### Claims needing manual verification",
        "",
        *([_doubt(row, unit) for row in doubtful] or ["None."]),
        *(["", "### Claims that are weakly supported", "", *(_doubt(row, unit) for row in weak)] if weak else []),
    ]


def _doubt(row: AuditRow, unit: str) -> str:
    mark = f" {_text(f'[{row.citation.mark}]')}" if row.citation.mark else ""
    parts = [
        f"- {unit.capitalize()} {row.citation.line}{mark}: {_text(row.citation.sentence) or 'no sentence'}",
        row.result,
        _text(row.detail),
        f"See {_address(row.other_source)}" if row.other_source else "",
        _text(row.review.said) if row.review is not None else "",
    ]
    return " — ".join(filter(None, parts))


def _short(text: str) -> str:
    text = " ".join(visible(text[: 4 * _LONGEST_CELL]).split())
    return text if len(text) <= _LONGEST_CELL else text[:_LONGEST_CELL].rsplit(" ", 1)[0] + " …"


def _text(text: str) -> str:
    """Escape text so that Markdown shows it as text, addresses too."""
    escaped = _MARKUP.sub(r"\\\1", _short(text))
    # services turn an at sign into a link even if escaped, and notify people
    return escaped.replace("@", "\N{FULLWIDTH COMMERCIAL AT}")


def _address(url: str) -> str:
    """Return an address as code, to copy it: it is not a link."""
    plain = _short(url).replace("|", "%7C").replace("`", "%60").replace("\\", "%5C")
    return f"`{plain}`" if plain else ""
