"""An audit of a report's citations as an HTML page, JSON, a table for a terminal, and Markdown in the project."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nlp_retrieval.documents import Reference, web_address
from nlp_retrieval.reports import asset, rendered
from nlp_retrieval.systems.evidence.audit import AuditReason, AuditRow, AuditStatus, AuditSummary, summary_of
from nlp_retrieval.systems.evidence.citations.published import ReferenceStatus, checked_sentence
from nlp_retrieval.systems.evidence.citations.report import CitedReport, UncitedSentence
from nlp_retrieval.systems.evidence.index.statistics import IndexStatistics
from nlp_retrieval.systems.evidence.reviews import Review
from nlp_retrieval.systems.evidence.verdict.claims import PlainAnswer
from nlp_retrieval.systems.evidence.verdict.deciding import DecidedBy
from nlp_retrieval.text import counted, listed, visible

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
        checked=checked_sentence(report.checked),
        statuses={status: counts[status] for status in STATUSES if counts[status]},
        words=STATUSES,
        reasons=summary_of(rows).reasons,
        missing={citation.number for citation in report.missing},
        marks={row.citation.number: row.citation.mark or "link" for row in rows},
        results={row.citation.number: result_of(row) for row in rows},
        tones={row.citation.number: _tone(row) for row in rows},
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


# The audit as JSON, for programs; the keys stay as they are within one format.

FORMAT = 1
_ESCAPED = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


class DecidingPassage(PlainAnswer):
    """The nearest passage of the cited source, the span of its deciding sentence, and that sentence's page in a PDF."""

    content: str
    url: str
    title: str
    quality: str
    fetch_date: str
    key: str
    start: int
    end: int
    deciding: tuple[int, int]
    page: str


class ReviewState(PlainAnswer):
    """What reviewers said about a citation; ``sentence``, ``cited`` and ``version`` name it for a review of one's own."""

    sentence: str
    cited: str
    version: str
    decision: Literal["accepted", "rejected", "noted", ""]
    said: str
    disputed: bool
    history: tuple[Review, ...]
    earlier: Review | None


class AuditedCitation(PlainAnswer):
    """One citation."""

    number: int
    mark: str
    sentence: str
    line: int
    url: str
    title: str
    status: AuditStatus
    reason: AuditReason
    detail: str
    support_score: float
    decided_by: DecidedBy
    part: str
    other_source: str
    passage: DecidingPassage | None
    review: ReviewState | None


class MissingReference(PlainAnswer):
    """A mark without an entry, and why, if that is known."""

    mark: str
    sentence: str
    line: int
    problem: str = ""


class CheckedEntry(PlainAnswer):
    """What a register of published works says of a reference; ``doi`` is that of the work that it has."""

    mark: str
    title: str
    url: str
    line: int
    status: ReferenceStatus
    detail: str
    doi: str


class ReportTitle(PlainAnswer):
    """The report: its title, what a ``line`` of it counts, and what was left out of it or read in a certain way."""

    title: str
    unit: str
    notes: list[str]


class AuditAnswer(PlainAnswer):
    """Result of an audit: the same as ``nlp-retrieval evidence audit --json`` writes."""

    format: int
    report: ReportTitle
    summary: AuditSummary
    citations: list[AuditedCitation]
    uncited: list[UncitedSentence]
    missing: list[MissingReference]
    unused: list[Reference]
    duplicates: list[Reference]
    checked: list[CheckedEntry]


def audit_json(rows: Sequence[AuditRow], report: CitedReport) -> str:
    """Return an audit as JSON; it holds no ``<``, ``>`` or ``&``, so it can be embedded in a page unchanged."""
    answer = AuditAnswer.of(
        report,
        format=FORMAT,
        report=ReportTitle.of(report),
        summary=summary_of(rows),
        citations=[_audited(row) for row in rows],
        missing=[MissingReference.of(one) for one in report.missing],
        checked=[
            CheckedEntry.of(one.reference, one, doi=one.work.doi if one.work is not None else "") for one in report.checked
        ],
    )
    text = json.dumps(answer.model_dump(), indent=1, ensure_ascii=False, allow_nan=False).translate(_ESCAPED)
    # UTF-8 cannot encode a lone surrogate
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") + "\n"


def _audited(row: AuditRow) -> AuditedCitation:
    passage, review = row.passage, row.review
    return AuditedCitation.of(
        row.citation,
        row,
        passage=None if passage is None else DecidingPassage.of(passage, deciding=row.sentence, page=row.page),
        review=None if review is None else ReviewState.of(review.of, review, disputed=review.is_disputed),
    )


# The audit of a report's citations as a table for a terminal of any width.
#
# Invisible characters in a claim are named, and nothing in it reaches the terminal as a command.

_NARROW, _VERY_NARROW = 80, 60
_LONGEST_QUOTE = 600


def print_audit(
    console: Console, rows: Sequence[AuditRow], report: CitedReport, rule: str = "", shown: Sequence[AuditRow] | None = None
) -> None:
    """Print the rows of an audit, or some of them, those to review first; nothing of a claim is cut."""
    bold, dim = ("bold", "dim") if console.is_terminal else ("", "")
    console.print(Text(summary_sentence(rows), style=bold))
    lists: dict[str, Sequence[object]] = {
        "facts without a citation": report.uncited,
        "marks without a reference": report.missing,
        "references never cited": report.unused,
        "references with the number of an earlier one": report.duplicates,
    }
    if parts := [f"{what}: {len(entries):,}" for what, entries in lists.items() if entries]:
        console.print(Text("; ".join(parts).capitalize() + ".", style=dim))
    if report.checked:
        console.print(Text(checked_sentence(report.checked), style=dim))
    for one in report.checked:
        if one.status != "as cited":
            mark = f"[{one.reference.mark}] " if one.reference.mark else ""
            console.print(Text(visible(f"{mark}{one.reference.title}"), style=bold))
            console.print(Padding(Text(visible(f"{one.status}: {one.detail}")), (0, 0, 0, 2)))
    if listed_rows := by_severity(rows if shown is None else shown):
        console.print(_table(listed_rows, report.unit, console, dim))
    if rule:
        console.print(Text(rule, style=dim))


def _table(rows: Sequence[AuditRow], unit: str, console: Console, dim: str) -> Table:
    """Return a table of the columns that a terminal has room for."""
    box = None if console.options.ascii_only else SIMPLE_HEAD
    table = Table(box=box, padding=(0, 1, 0, 0), pad_edge=False, expand=True, leading=1)
    with_line, with_support = console.width >= _VERY_NARROW, console.width >= _NARROW
    columns = {"no.": True, unit: with_line, "result": True, "support": with_support}
    for name, fits in columns.items():
        if fits:
            table.add_column(name, justify="left" if name == "result" else "right", no_wrap=True)
    table.add_column("claim", ratio=1, overflow="fold")
    for row in rows:
        result = result_of(row)
        style = "green" if row.passes else {"not indexed": "dim", "weak": "cyan"}.get(result, "yellow")
        support = f"{row.support_score:.2f}" if row.passage is not None else ""
        cells = (Text(str(row.citation.number)), Text(str(row.citation.line)), Text(result, style=style), Text(support))
        table.add_row(*(cell for cell, fits in zip(cells, columns.values(), strict=True) if fits), _claim(row, dim))
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


# The audit as ``09_qa/retrieval_audit.md``: the index, its queries, every citation, and what to do.
#
# Claims, addresses and passages are untrusted. They are escaped in the file: they cannot end a row, or make a link, image,
# heading or HTML.

PLACE = Path("09_qa") / "retrieval_audit.md"

_LONGEST_CELL = 300
_HEADS = ("Claim", "Cited Source", "Retrieved Passage", "Support Score", "Status")
_MARKUP = re.compile(r"([\\`*_\[\](){}<>|~$&#!]|:(?=/)|(?<=[^\W_])\.(?=[^\W\d_]))")


def retrieval_audit(
    rows: Sequence[AuditRow], index: IndexStatistics, engine: str, rule: str = "", *, unit: str = "line"
) -> str:
    """Return the audit as Markdown; ``unit`` is that of the places of the report: "line", "paragraph" or "page"."""
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
        *(_markdown_table(rows) if rows else ["The report has no citations."]),
        "",
        "## Recommendations",
        "",
        *_recommendations(rows, unit),
    ]
    return "\n".join(lines) + "\n"


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
