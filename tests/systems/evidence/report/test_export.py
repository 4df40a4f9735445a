"""An audit in CSV."""

from __future__ import annotations

import csv
import io

import pytest

from nlp_retrieval.systems.evidence.audit_report import audit_csv
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit


def test_every_row_is_in_the_table():
    rows, _ = tram_audit()
    written = list(csv.DictReader(io.StringIO(audit_csv(rows))))
    assert [(row["status"], row["reason"], row["claim"]) for row in written] == [
        (row.status, row.reason, row.citation.sentence) for row in rows
    ]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\u200b=1", "\r-1", *ATTACKS.values()])
def test_no_cell_is_a_formula(text):
    rows, _ = attacked_audit(text)
    for row in csv.reader(io.StringIO(audit_csv(rows))):
        assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row)
