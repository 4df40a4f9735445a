"""An audit of a report's citations as an HTML page, a table for a terminal, CSV, and Markdown in the project."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nlp_retrieval.core import write_output
from nlp_retrieval.documents import web_address
from nlp_retrieval.reports import asset, counted, listed, rendered
from nlp_retrieval.systems.evidence.audit import AuditRow, AuditStatus, summary_of
from nlp_retrieval.systems.evidence.citations.report import CitedReport
from nlp_retrieval.text import Number, agreeing, compare_numbers, numbers_of, spreadsheet_cell, visible

STATUSES: dict[AuditStatus, str] = {
    "PASS": "passed",
    "WEAK": "weak",
    "REVIEW": "to review",
    "SOURCE_NOT_INDEXED": "not indexed",
}

_SEVERITY = (
    "rejected",
    "contradicted",
    "other number",
    "quote not found",
    "other entity",
    "changed source",
    "another source",
    "not found",
    "unclear number",
    "not judged",
    "too long",
    "no reference",
    "deleted source",
    "not indexed",
    "weak",
    "accepted",
    "passed",
)
"""Results of rows, those that a reviewer should see first before the others."""


def result_of(row: AuditRow) -> str:
    """Return the result of a row in two or three words: the decision of a reviewer, the reason, or the status."""
    decision = "" if row.review is None else row.review.decision
    if decision in ("accepted", "rejected"):
        return decision
    return row.reason or STATUSES[row.status]


def by_severity(rows: Sequence[AuditRow]) -> list[AuditRow]:
    """Return rows in the order in which a reviewer should see them: the gravest first, then weak ones, then those that pass."""
    return sorted(rows, key=lambda row: (_severity(result_of(row)), row.citation.number))


def _severity(result: str) -> int:
    return _SEVERITY.index(result) if result in _SEVERITY else _SEVERITY.index("not judged")


def summary_sentence(rows: Sequence[AuditRow]) -> str:
    """Return a summary: ``"5 of 15 citations pass; 2 weak; 6 to review: 4 other number and 2 not found; 2 not indexed."``."""
    if not rows:
        return "The report has no citations."
    passing = [row for row in rows if row.passes]
    accepted = sum(result_of(row) == "accepted" for row in passing)
    among = f" ({accepted:,} accepted by a reviewer)" if accepted else ""
    parts = [f"{len(passing):,} of {counted(len(rows), 'citation')} pass{among}"]
    weak = sum(row.is_weak for row in rows)
    parts += [f"{weak:,} weak"] if weak else []
    found = Counter(result_of(row) for row in by_severity(rows) if row.to_review)
    apart_too = {words: found.pop(result, 0) for result, words in _AMONG_OTHERS.items()}
    if found:
        listed_results = listed([f"{count:,} {result}" for result, count in found.items()])
        parts.append(f"{found.total():,} to review: {listed_results}")
    parts += [f"{count:,} {words}" for words, count in apart_too.items() if count]
    return "; ".join(parts) + "."


def share_sentence(rows: Sequence[AuditRow]) -> str:
    """Return how many citations lookups alone decided: ``"Lookups decided 31 of 40, the verifier 9."``, or empty."""
    counts = summary_of(rows).decided_by
    total, by_lookups = sum(counts.values()), counts.get("lookups", 0)
    return f"Lookups decided {by_lookups:,} of {total:,}, the verifier {total - by_lookups:,}." if total else ""


_AMONG_OTHERS = {"rejected": "rejected by a reviewer", "not indexed": "not indexed"}


# The audit of a report's citations as one HTML page that needs no network: each claim next to the passage of its source.
#
# Text of reports and sources is escaped, and the content security policy of the page allows only its own style sheet and
# script. The HTML holds everything; the script only hides what a filter excludes. Invisible characters are named.

_FILES = Path(__file__).parent / "audit_page"


def render_audit(rows: Sequence[AuditRow], report: CitedReport, rule: str = "", *, posts: bool = False) -> str:
    """Return the page; with ``posts``, that of a service that keeps the reviews, so that it may connect to that."""
    ordered = by_severity(rows)
    counts = Counter(row.status for row in rows)
    return rendered(
        "audit.html",
        _FILES,
        web_address=web_address,
        rows=rows,
        groups=[
            ("open", "To review", [row for row in ordered if row.to_review]),
            ("weak", "Weak", [row for row in ordered if row.is_weak]),
            ("passed", "Passed", [row for row in ordered if row.passes]),
        ],
        report=report,
        rule=rule,
        connects=posts,
        said=summary_sentence(rows),
        share=share_sentence(rows),
        statuses={status: counts[status] for status in STATUSES if counts[status]},
        words=STATUSES,
        reasons=summary_of(rows).reasons,
        missing={citation.number for citation in report.missing},
        marks={row.citation.number: row.citation.mark or "link" for row in rows},
        results={row.citation.number: result_of(row) for row in rows},
        tones={row.citation.number: _tone(row) for row in rows},
        numbers={row.citation.number: wrong_number(row) for row in rows},
        reviewable=any(row.review is not None for row in rows),
        histories={row.citation.number: _history(row) for row in rows},
        style=asset("report.css") + asset("passages.css") + asset("audit.css", _FILES),
        script=asset("audit.js", _FILES),
    )


def _history(row: AuditRow) -> str:
    """Return the decisions that the project has, as JSON, without notes' texts."""
    history = () if row.review is None else row.review.history
    return json.dumps([{"decision": review.decision, "by": review.by, "date": review.date} for review in history])


def _tone(row: AuditRow) -> str:
    if row.passes:
        return "fine"
    return "weak" if row.is_weak else "absent" if row.status == "SOURCE_NOT_INDEXED" else ""


_ABOUT_NUMBERS = ("other number", "unclear number")


def wrong_number(row: AuditRow) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the spans of a wrong number in the claim, and of the nearest one of the deciding sentence in the passage.

    Of the numbers of that sentence that the claim does not have, the nearest is of the same kind (a percentage, a year, of the
    same unit), and then of the most similar size. None if the reason is not a number, or no number is near.
    """
    if row.reason not in _ABOUT_NUMBERS or row.passage is None:
        return None
    begin, end = row.sentence
    claimed = numbers_of(row.citation.sentence)
    wrong = [number for number, _ in compare_numbers(row.citation.sentence, row.passage.content)] or claimed
    there = [
        number for number in numbers_of(row.passage.content[begin:end]) if not any(agreeing(each, number) for each in claimed)
    ]
    pairs = [(_distance(one, other), one, other) for one in wrong for other in there if _is_year(one) == _is_year(other)]
    if not pairs:
        return None
    (differs, size), one, other = min(pairs, key=lambda pair: pair[0])
    if differs and size > _NEAR:
        return None
    return (one.begin, one.end), (begin + other.begin, begin + other.end)


_NEAR = math.log(10)


def _distance(one: Number, other: Number) -> tuple[bool, float]:
    """Return whether two numbers are not of one named unit, and the logarithm of the ratio of their sizes."""
    sizes = [abs(number.value * number.size) for number in (one, other)]
    ratio = abs(math.log(sizes[0] / sizes[1])) if all(0 < size < math.inf for size in sizes) else math.inf
    same = (one.percent, one.unit) == (other.percent, other.unit) and (one.percent or one.unit != "")
    return not same, ratio


def _is_year(number: Number) -> bool:
    return number.unit == "date" or (number.written.isdecimal() and len(number.written) == 4)


def write_audit_page(rows: Sequence[AuditRow], report: CitedReport, path: str | Path, rule: str = "") -> None:
    """Write the page; a reader sees the old page or the complete new one.

    Raises:
        OutputError: the folder or the file cannot be written.
    """
    write_output(Path(path), render_audit(rows, report, rule).encode())


# The audit of a report's citations as a table for a terminal of any width.
#
# Invisible characters in a claim are named, and nothing in it reaches the terminal as a command.

_NARROW, _VERY_NARROW = 80, 60
_LONGEST_QUOTE = 600


@dataclass(frozen=True)
class AuditTable:
    """The rows of an audit for a terminal, printed with ``rich``, those to review first; nothing of a claim is cut.

    Args:
        rows: of the audit.
        report: that was audited.
        shown: rows to print; by default all.
        rule: for passing, printed last.
    """

    rows: Sequence[AuditRow]
    report: CitedReport
    shown: Sequence[AuditRow] | None = None
    rule: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bold, dim = ("bold", "dim") if console.is_terminal else ("", "")
        yield Text(summary_sentence(self.rows), style=bold)
        report = self.report
        lists: dict[str, Sequence[object]] = {
            "facts without a citation": report.uncited,
            "marks without a reference": report.missing,
            "references never cited": report.unused,
            "references with the number of an earlier one": report.duplicates,
        }
        parts = [f"{what}: {len(entries):,}" for what, entries in lists.items() if entries]
        if parts:
            yield Text("; ".join(parts).capitalize() + ".", style=dim)
        if self.rows if self.shown is None else self.shown:
            yield self._table(options, dim)
        if self.rule:
            yield Text(f"{self.rule} {share_sentence(self.rows)}".strip(), style=dim)

    def _table(self, options: ConsoleOptions, dim: str) -> Table:
        table = Table(
            box=None if options.ascii_only else SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, expand=True, leading=1
        )
        table.add_column("no.", justify="right", no_wrap=True)
        if options.max_width >= _VERY_NARROW:
            table.add_column(self.report.unit, justify="right", no_wrap=True)
        table.add_column("result", no_wrap=True)
        if options.max_width >= _NARROW:
            table.add_column("support", justify="right", no_wrap=True)
        table.add_column("claim", ratio=1, overflow="fold")
        for row in by_severity(self.rows if self.shown is None else self.shown):
            result = result_of(row)
            style = "green" if row.passes else {"not indexed": "dim", "weak": "cyan"}.get(result, "yellow")
            cells: list[RenderableType] = [Text(str(row.citation.number)), Text(result, style=style), _claim(row, dim)]
            if options.max_width >= _VERY_NARROW:
                cells.insert(1, Text(str(row.citation.line)))
            if options.max_width >= _NARROW:
                cells.insert(-1, Text(f"{row.support_score:.2f}" if row.passage is not None else ""))
            table.add_row(*cells)
        return table


def _claim(row: AuditRow, dim: str) -> Group:
    """Return the claim, and below it the detail, the source and the review."""
    below = [(row.detail, ""), (f"see {row.other_source}" if row.other_source else "", dim)]
    if not row.passes or row.status != "PASS":
        said = "" if row.other_source else " ".join(decisive(row)[:_LONGEST_QUOTE].split())
        address = row.citation.url.removeprefix("https://").removeprefix("http://") or row.citation.title
        below += [(f"\u201c{said}\u201d" if said else "", dim), (f"{address}, {row.page}" if row.page else address, dim)]
    below.append(("" if row.review is None else row.review.said, ""))
    claim = Text(visible(row.citation.sentence) or "There is no sentence at this mark.")
    return Group(claim, *(Padding(Text(visible(text), style=style), (0, 0, 0, 2)) for text, style in below if text))


# The audit as a table for other programs.

_CSV_COLUMNS = (
    "number", "line", "mark", "status", "reason", "claim", "detail", "support", "url", "title", "passage", "decision", "review",
)  # fmt: skip


def audit_csv(rows: Sequence[AuditRow]) -> str:
    """Return the rows of an audit as CSV; a cell that a spreadsheet would read as a formula begins with an apostrophe."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(_CSV_COLUMNS)
    for row in rows:
        citation, review, passage = row.citation, row.review, row.passage
        values = {
            "number": citation.number,
            "line": citation.line,
            "mark": citation.mark,
            "status": row.status,
            "reason": row.reason,
            "claim": citation.sentence,
            "detail": row.detail,
            "support": f"{row.support_score:.2f}" if passage is not None else "",
            "url": citation.url,
            "title": (passage.title if passage is not None else "") or citation.title,
            "passage": decisive(row),
            "decision": "" if review is None else review.decision,
            "review": "" if review is None else review.said,
        }
        table.writerow([_csv_cell(str(values[column])) for column in _CSV_COLUMNS])
    return written.getvalue()


def _csv_cell(text: str) -> str:
    return spreadsheet_cell(" ".join(visible(text).split()))


# The audit as ``09_qa/retrieval_audit.md``: the index, its queries, every citation, and what to do.
#
# Claims, addresses and passages are untrusted. They are escaped in the file: they cannot end a row, or make a link, image,
# heading or HTML.

PLACE = Path("09_qa") / "retrieval_audit.md"

_LONGEST_CELL = 300
_HEADS = ("Claim", "Cited Source", "Retrieved Passage", "Support Score", "Status")
_MARKUP = re.compile(r"([\\`*_\[\](){}<>|~$&#!]|:(?=/)|(?<=[^\W_])\.(?=[^\W\d_]))")


@dataclass(frozen=True)
class RetrievalStatistics:
    """Figures of an index and its searches.

    Args:
        documents: number of indexed texts, without those that were replaced, or that wait for the index to be built.
        passages: number of their passages.
        sources: number of registrable domains that they are from.
        queries: number of searches so far.
        relevance: mean relevance of their results, 0 to 10; None without a search.
        zero_result_queries: number of searches without results.
        scale: a sentence that explains relevance.
    """

    documents: int
    passages: int
    sources: int
    queries: int
    relevance: float | None
    zero_result_queries: int
    scale: str = ""


def retrieval_audit(
    rows: Sequence[AuditRow], statistics: RetrievalStatistics, engine: str, rule: str = "", *, unit: str = "line"
) -> str:
    """Return the audit as Markdown; ``unit`` is that of the places of the report: "line", "paragraph" or "page"."""
    share = statistics.zero_result_queries / statistics.queries if statistics.queries else 0.0
    relevance = "not measured" if statistics.relevance is None else f"{statistics.relevance:.1f}/10"
    lines = [
        "# Retrieval Quality Audit",
        "",
        "## Index Statistics",
        "",
        f"- Documents indexed {statistics.documents}",
        f"- Total passages {statistics.passages}",
        f"- Unique sources {statistics.sources}",
        "",
        "## Query Performance",
        "",
        f"- Queries executed {statistics.queries}",
        f"- Average relevance score {relevance}",
        f"- Zero-result queries {statistics.zero_result_queries} ({share:.0%})",
        *(["", _text(statistics.scale)] if statistics.scale else []),
        "",
        "## Citation Verification via ColBERT",
        "",
        "Each citation was judged within its own source: by the whole text, or, where that is long, by the passages in it "
        f"that were retrieved by {_text(engine)}.",
        *([_text(f"{rule} {share_sentence(rows)}".strip())] if rule else []),
        "",
        *(_markdown_table(rows) if rows else ["The report has no citations."]),
        "",
        "## Recommendations",
        "",
        *_recommendations(rows, unit),
    ]
    return "\n".join(lines) + "\n"


def write_retrieval_audit(
    project: str | Path,
    rows: Sequence[AuditRow],
    statistics: RetrievalStatistics,
    engine: str,
    rule: str = "",
    *,
    unit: str = "line",
) -> Path:
    """Write the audit into a project; a reader sees the old file or the complete new one.

    Raises:
        OutputError: the file cannot be written.
    """
    path = Path(project) / PLACE
    write_output(path, retrieval_audit(rows, statistics, engine, rule, unit=unit).encode("utf-8", "replace"))
    return path


def _markdown_table(rows: Iterable[AuditRow]) -> list[str]:
    lines = [_line(_HEADS), _line(["---"] * len(_HEADS))]
    for row in rows:
        indexed = row.status != "SOURCE_NOT_INDEXED"
        passage = decisive(row)
        cells = [
            _text(row.citation.sentence),
            _address(row.citation.url) or "no reference",
            _text(f"{passage} ({row.page})" if row.page else passage) or "none",
            f"{row.support_score:.2f}" if indexed else "none",
            row.status,
        ]
        lines.append(_line(cells))
    return lines


def decisive(row: AuditRow) -> str:
    """Return the deciding sentence of the passage, or the passage if there is none; empty without a passage."""
    if row.passage is None:
        return ""
    begin, end = row.sentence
    return row.passage.content[begin:end] or row.passage.content


def _recommendations(rows: Sequence[AuditRow], unit: str) -> list[str]:
    open_rows = [row for row in rows if row.to_review]
    absent = [row.citation.url for row in open_rows if row.status == "SOURCE_NOT_INDEXED" and row.citation.url]
    doubtful = [row for row in open_rows if row.status != "SOURCE_NOT_INDEXED" or not row.citation.url]
    accepted = [row for row in rows if result_of(row) == "accepted"]
    weak = [row for row in rows if row.is_weak]
    return [
        "### Sources to re-fetch",
        "",
        *([f"- {_address(url)}" for url in dict.fromkeys(absent)] or ["None."]),
        "",
        "### Claims needing manual verification",
        "",
        *([_doubt(row, unit) for row in doubtful] or ["None."]),
        *(["", "### Claims that are weakly supported", "", *(_doubt(row, unit) for row in weak)] if weak else []),
        *(["", "### Claims accepted by a reviewer", "", *(_doubt(row, unit) for row in accepted)] if accepted else []),
    ]


def _doubt(row: AuditRow, unit: str) -> str:
    mark = f" {_text(f'[{row.citation.mark}]')}" if row.citation.mark else ""
    parts = [
        f"- {unit.capitalize()} {row.citation.line}{mark}: {_text(row.citation.sentence) or 'no sentence'}",
        row.reason or ("weak" if row.status == "WEAK" else ""),
        _text(row.detail),
    ]
    other = f"See {_address(row.other_source)}" if row.other_source else ""
    said = "" if row.review is None else _text(row.review.said)
    return " — ".join(filter(None, [*parts, other, said]))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


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
