from __future__ import annotations

import io

import pytest
from rich.console import Console

from nlp_retrieval.systems.evidence.audit_report import print_audit
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit


def printed(rows, report, width: int = 120, terminal: bool = False) -> str:
    file = io.StringIO()
    to = Console(file=file, width=width, force_terminal=terminal, color_system="truecolor" if terminal else None)
    print_audit(to, rows, report)
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 70, 80, 120])
def test_each_citation_is_printed_whole_with_its_detail_and_the_gravest_come_first(width):
    rows, report = tram_audit()
    lines = printed(rows, report, width).splitlines()
    text = " ".join(" ".join(lines).split())
    squeezed = "".join(text.split())
    for row in rows:
        assert "".join(row.citation.sentence.split()) in squeezed
        assert "".join(row.detail.split()) in squeezed
        assert row.reason in text
    numbers = [int(first) for line in lines if (first := line.split(" ")[0] or line.strip().split(" ")[0]).isdigit()]
    printed_rows = [row for number in numbers for row in rows if row.citation.number == number]
    assert {row.citation.number for row in printed_rows} == {row.citation.number for row in rows}
    passing = [row.passes for row in printed_rows]
    assert passing == sorted(passing)


def test_what_was_found_is_counted_above():
    text = " ".join(printed(*tram_audit()).split())
    assert text.startswith(
        "7 of 16 citations pass; 8 to review: 1 contradicted, 1 other number, 1 other entity, 1 another source, 1 not found, "
        "2 no reference and 1 deleted source; 1 not indexed. "
        "Facts without a citation: 1; marks without a reference: 1; references never cited: 1."
    )


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_a_claim_commands_no_terminal(attack):
    text = printed(*attacked_audit(attack), terminal=False)
    assert all(char == "\n" or char.isprintable() for char in text)
    coloured = printed(*attacked_audit(attack), terminal=True)
    assert "\x1b]" not in coloured
    assert "\x07" not in coloured
