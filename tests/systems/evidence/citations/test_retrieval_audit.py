from __future__ import annotations

import json
import re
from typing import Any

import pytest
from markdown_it import MarkdownIt

from nlp_retrieval.systems.evidence.audit_report import audit_json, retrieval_audit
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit

STATISTICS: Any = {
    "indexed_count": 47, "indexed_passage_count": 382, "indexed_domains": 23, "total_queries": 156, "average_relevance": 7.4,
    "zero_result_queries": 3,
}  # fmt: skip
ENGINE = "BM25 and dense vectors, fused"
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def cells(text: str) -> list[list[str]]:
    """The rows of the table, as a reader of Markdown takes them."""
    tokens = PARSER.parse(text)
    rows: list[list[str]] = []
    for place, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("td_open", "th_open"):
            rows[-1].append("".join(child.content for child in tokens[place + 1].children or []))
    return rows


def test_the_audit_has_the_parts_that_are_asked_for():
    text = retrieval_audit(tram_audit(), STATISTICS, ENGINE)
    assert re.findall("^#+ .*", text, re.M) == [
        "# Retrieval Quality Audit",
        "## Index Statistics",
        "## Query Performance",
        "## Citation Verification via ColBERT",
        "## Recommendations",
        "### Sources to re-fetch",
        "### Claims needing manual verification",
    ]
    for line in (
        "Documents indexed 47",
        "Total passages 382",
        "Unique sources 23",
        "Queries executed 156",
        "Average relevance score 7.4/10",
        "Zero-result queries 3 (2%)",
    ):
        assert f"- {line}\n" in text
    assert "by the whole text, or, where that is long, by the passages in it that were retrieved by BM25 and" in text


def test_each_citation_has_a_row():
    audit = tram_audit()
    rows, report = audit.rows, audit.report
    head, *table = cells(retrieval_audit(audit, STATISTICS, ENGINE))
    assert head == ["Claim", "Cited Source", "Retrieved Passage", "Support Score", "Status"]
    assert [row[0] for row in table] == [one.sentence for one in report.citations]
    assert [row[1] for row in table] == [one.url or "no reference" for one in report.citations]
    assert [row[4] for row in table] == [row.status for row in rows]
    assert table[0][2:] == ["The line from the harbour to the market square was opened on 4 May 1911.", "0.97", "PASS"]
    assert table[7][2:] == ["none", "none", "SOURCE_NOT_INDEXED"]


def test_what_to_do_is_said():
    audit = tram_audit()
    advice = retrieval_audit(audit, STATISTICS, ENGINE).partition("### Sources to re-fetch")[2]
    sources, _, claims = advice.partition("### Claims needing manual verification")
    assert sources.split() == ["-", "`https://archive.altbrunn.example/tickets`", "-", "`https://bridges.example/muehltor`"]
    assert claims.count("\n- Line ") == sum(row.status == "REVIEW" for row in audit.rows)
    assert "another source" in claims
    assert "See `https://wagons.example/graz`" in claims


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_other_peoples_text_stays_text(attack):
    text = retrieval_audit(attacked_audit(attack), STATISTICS, ENGINE)
    assert [len(row) for row in cells(text)] == [5] * 4
    kinds = {token.type for token in PARSER.parse(text)}
    kinds |= {child.type for token in PARSER.parse(text) for child in token.children or []}
    assert not kinds & {
        "link_open",
        "image",
        "html_inline",
        "html_block",
        "em_open",
        "strong_open",
        "s_open",
        "fence",
        "code_block",
    }
    assert sum(token.type == "heading_open" for token in PARSER.parse(text)) == 7
    outside_code = re.sub(r"(?<!\\)`[^`]*`", "", text)
    assert not re.search(r"(?<!\\)://|www\.|@", outside_code)
    assert all(char == "\n" or char.isprintable() for char in text)


def test_json_holds_the_audit():
    audit = tram_audit()
    told = json.loads(audit_json(audit))
    assert told["summary"] == {"PASS": 7, "REVIEW": 7, "SOURCE_NOT_INDEXED": 2}
    first = told["rows"][0]
    begin, end = first["sentence"]
    assert first["actual_passage"][begin:end] == "The line from the harbour to the market square was opened on 4 May 1911."
    assert (first["claim"], first["cited_url"]) == (audit.rows[0].citation.sentence, audit.rows[0].citation.url)
    assert told["rows"][7]["passage"] is None
    assert [one["mark"] for one in told["missing"]] == ["9"]
    assert [one["title"] for one in told["unused"]] == ["Trams of the world"]
