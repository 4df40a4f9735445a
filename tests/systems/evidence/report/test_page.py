from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from dataclasses import replace

import pytest
from reports.page.test_page import Page, policy

from nlp_retrieval.systems.evidence.audit import CitationAudit, Review
from nlp_retrieval.systems.evidence.audit_report import by_severity, render_audit
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit


def test_each_claim_stands_beside_its_passage_and_the_report_beside_both():
    audit = tram_audit()
    page = Page(render_audit(audit))
    ordered = by_severity(audit.rows)
    assert not page.open
    assert [one["data-result"] for one in page.of("article")] == [row.result for row in ordered]
    assert page.texts("mark") == [row.passage.content[slice(*row.sentence)] for row in ordered if row.passage]
    assert page.texts("data") == [f"{row.support_score:.2f}" for row in ordered if row.passage]
    shown = set(page.texts("bdi"))
    assert {row.citation.sentence for row in audit.rows} | {row.detail for row in audit.rows if row.detail} <= shown
    assert {sentence.text for sentence in audit.report.sentences} <= shown
    assert {"The network reached Neustadt in 2019.", "Trams of the world"} <= shown
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    links = [link["href"] for link in page.of("a") if link["href"].startswith("#")]
    assert len(identifiers) == len(set(identifiers))
    assert {link[1:] for link in links} <= set(identifiers)
    numbers = {row.citation.number for row in audit.rows}
    assert {f"#{what}-{number}" for what in ("mark", "citation") for number in numbers} <= set(links)


def test_weak_and_reviewed_citations_are_called_so():
    audit = tram_audit()
    said = Review("accepted", "Checked.", "Ann", "2026-11-27T00:00:00+00:00")
    rows = [replace(row, status="WEAK") if row.citation.number in (1, 3) else row for row in audit.rows]
    page = Page(render_audit(CitationAudit(audit.report, [rows[0], replace(rows[1], review=said), *rows[2:]])))
    assert page.texts("strong")[0].startswith("6 of 16 citations pass; 2 weak; 8 to review")
    assert page.texts("h2")[:3] == ["To review", "Weak", "Passed"]
    assert said.said in page.texts("bdi")
    assert {"weak", "accepted"} <= {button["value"] for button in page.of("button")}


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone():
    page = Page(render_audit(tram_audit()))
    (style,), (script,) = page.texts("style"), page.texts("script")
    for directive, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy(page)
    assert policy(page).startswith("default-src 'none';")
    assert "unsafe" not in policy(page)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_other_peoples_text_stays_text(attack):
    source = render_audit(attacked_audit(attack))
    page, quiet = Page(source), Page(render_audit(attacked_audit("quiet")))
    assert [tag for tag, _ in page.elements if tag != "a"] == [tag for tag, _ in quiet.elements if tag != "a"]
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("style", "src") for name in attributes)
        if tag == "a":
            assert (attributes["href"] or "").startswith(("https://", "http://", "#"))
    body = source.partition("<body>")[2]
    assert not {char for char in body if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")} - {"\n"}
    shown = re.sub(r'href="[^"]*"', "", body)
    assert not {char for char in shown if unicodedata.category(char) == "Cf"}
