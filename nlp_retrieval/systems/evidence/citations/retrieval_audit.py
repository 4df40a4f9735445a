"""The audit as ``09_qa/retrieval_audit.md``: the index, its queries, every citation, and what to do.

Claims, addresses and passages are untrusted. They are escaped in the file: they cannot end a row, or make a link, image,
heading or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nlp_retrieval.core import write_output
from nlp_retrieval.systems.evidence.citations.rows import AuditRow
from nlp_retrieval.text import visible

__all__ = ["PLACE", "RetrievalStatistics", "retrieval_audit", "write_retrieval_audit"]

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


def retrieval_audit(rows: Sequence[AuditRow], statistics: RetrievalStatistics, engine: str, rule: str = "") -> str:
    """Return the audit as Markdown.

    Args:
        rows: one for each citation.
        statistics: of the index.
        engine: name of what retrieves passages of long sources, such as "ColBERT" or "BM25 and dense vectors, fused".
        rule: the rule for passing, as a sentence.
    """
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
        *([_text(rule)] if rule else []),
        "",
        *(_table(rows) if rows else ["The report has no citations."]),
        "",
        "## Recommendations",
        "",
        *_recommendations(rows),
    ]
    return "\n".join(lines) + "\n"


def write_retrieval_audit(
    project: str | Path, rows: Sequence[AuditRow], statistics: RetrievalStatistics, engine: str, rule: str = ""
) -> Path:
    """Write the audit into a project; a reader sees the old file or the complete new one.

    Args:
        project: folder of the project.
        rows: as in :func:`retrieval_audit`, as are the other arguments.
        statistics: of the index.
        engine: name of what retrieves passages of long sources.
        rule: the rule for passing, as a sentence.

    Raises:
        OutputError: the file cannot be written.
    """
    path = Path(project) / PLACE
    write_output(path, retrieval_audit(rows, statistics, engine, rule).encode("utf-8", "replace"))
    return path


def _table(rows: Iterable[AuditRow]) -> list[str]:
    lines = [_line(_HEADS), _line(["---"] * len(_HEADS))]
    for row in rows:
        indexed = row.status != "SOURCE_NOT_INDEXED"
        passage = _decisive(row)
        cells = [
            _text(row.citation.sentence),
            _address(row.citation.url) or "no reference",
            _text(passage) or "none",
            f"{row.support_score:.2f}" if indexed else "none",
            row.status,
        ]
        lines.append(_line(cells))
    return lines


def _decisive(row: AuditRow) -> str:
    if row.passage is None:
        return ""
    begin, end = row.sentence
    return row.passage.content[begin:end] or row.passage.content


def _recommendations(rows: Sequence[AuditRow]) -> list[str]:
    absent = [row.citation.url for row in rows if row.status == "SOURCE_NOT_INDEXED" and row.citation.url]
    doubtful = [row for row in rows if row.status == "REVIEW" or (row.status != "PASS" and not row.citation.url)]
    return [
        "### Sources to re-fetch",
        "",
        *([f"- {_address(url)}" for url in dict.fromkeys(absent)] or ["None."]),
        "",
        "### Claims needing manual verification",
        "",
        *([_doubt(row) for row in doubtful] or ["None."]),
    ]


def _doubt(row: AuditRow) -> str:
    mark = f" {_text(f'[{row.citation.mark}]')}" if row.citation.mark else ""
    told = [
        f"- Line {row.citation.line}{mark}: {_text(row.citation.sentence) or 'no sentence'}",
        row.reason,
        _text(row.detail),
    ]
    other = f"See {_address(row.other_source)}" if row.other_source else ""
    return " — ".join(filter(None, [*told, other]))


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
