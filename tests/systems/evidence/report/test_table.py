from __future__ import annotations

import io

import pytest
from rich.console import Console

from nlp_retrieval.systems.evidence.audit_report import AuditTable
from nlp_retrieval.systems.evidence.citations.report import CitedReport
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit


def printed(audit, width: int = 120, terminal: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None).print(audit)
    return file.getvalue()


def test_each_citation_has_a_line():
    rows, report = tram_audit()
    lines = [line for line in printed(AuditTable(rows, report)).splitlines() if line.strip()][2:18]
    for row, line in zip(rows, lines, strict=True):
        assert line.split()[0] == str(row.citation.line)
        assert row.citation.sentence[:20] in line
        assert row.reason in line


@pytest.mark.parametrize("width", [40, 70, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(map(len, printed(AuditTable(*tram_audit()), width).splitlines())) <= width


def test_the_source_is_shown_where_there_is_room_for_it_and_the_score_where_there_is_some():
    rows, report = tram_audit()
    for width, source, score in ((70, False, False), (80, False, True), (120, True, True)):
        text = printed(AuditTable(rows, report), width)
        assert ("museum.altbrunn.example/cen" in text, "0.97" in text) == (source, score), width
        assert "other number" in text


def test_what_was_found_is_counted_below():
    text = printed(AuditTable(*tram_audit()))
    assert "16 citations: 7 passed, 7 to review and 2 not indexed." in text
    assert "Facts without a citation: 1; marks without a reference: 1; references never cited: 1." in text


def test_a_report_without_citations_is_said_to_be_one():
    assert printed(AuditTable([], CitedReport("", [], [], [], []))).strip() == "The report has no citations."


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_claim_commands_no_terminal(attack):
    text = printed(AuditTable(*attacked_audit(attack)), terminal=False)
    assert all(char == "\n" or char.isprintable() for char in text)
    coloured = printed(AuditTable(*attacked_audit(attack)), terminal=True)
    assert "\x1b]" not in coloured
    assert "\x07" not in coloured
