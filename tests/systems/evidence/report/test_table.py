from __future__ import annotations

import io

import pytest
from rich.console import Console

from nlp_retrieval.systems.evidence.audit import CitationAudit
from nlp_retrieval.systems.evidence.audit_report import by_severity, print_audit
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit


def printed(audit: CitationAudit, width: int = 120, terminal: bool = False) -> str:
    file = io.StringIO()
    to = Console(file=file, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None)
    print_audit(to, audit)
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 120])
def test_each_citation_is_printed_whole_with_its_detail_and_the_gravest_come_first(width: int) -> None:
    audit = tram_audit()
    text = printed(audit, width)
    squeezed = "".join(text.split())
    for row in audit.rows:
        assert "".join(row.citation.sentence.split()) in squeezed
        assert "".join(row.detail.split()) in squeezed
    numbers = [int(part.split()[0]) for part in text.split("\n\n")[1:]]
    assert numbers == [row.citation.number for row in by_severity(audit.rows)]


def test_what_was_found_is_counted_above() -> None:
    text = " ".join(printed(tram_audit()).split())
    assert text.startswith(
        "7 of 16 citations pass; 9 to review: 1 contradicted, 1 other number, 1 other entity, 1 another source, 1 not found, "
        "2 no reference, 1 deleted source and 1 not indexed. "
        "Facts without a citation: 1; marks without a reference: 1; references never cited: 1."
    )


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_claim_commands_no_terminal(attack: str) -> None:
    text = printed(attacked_audit(attack), terminal=False)
    assert all(char == "\n" or char.isprintable() for char in text)
    coloured = printed(attacked_audit(attack), terminal=True)
    assert "\x1b]" not in coloured
    assert "\x07" not in coloured
