from __future__ import annotations

import base64
import hashlib
import re
import unicodedata
from dataclasses import astuple, replace

import pytest
from reports.page.test_page import Page, policy

from nlp_retrieval.systems.evidence.audit_report import (
    by_severity,
    render_audit,
    summary_sentence,
)
from nlp_retrieval.systems.evidence.reviews import CitationReview, Review, ReviewedCitation
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit


def test_each_claim_stands_beside_its_passage():
    rows, report = tram_audit()
    page = Page(render_audit(rows, report))
    articles = page.of("article")
    ordered = by_severity(rows)
    assert [one["data-status"] for one in articles] == [row.status for row in ordered]
    assert [one["data-reason"] for one in articles] == [row.reason for row in ordered]
    assert [row.passes for row in ordered] == sorted(row.passes for row in ordered)
    assert page.texts("mark") == [row.passage.content[slice(*row.sentence)] for row in ordered if row.passage]
    shown = set(page.texts("bdi"))
    assert {row.citation.sentence for row in rows} <= shown
    assert {row.detail for row in rows if row.detail} <= shown
    assert page.texts("data") == [f"{row.support_score:.2f}" for row in ordered if row.passage]


def test_the_report_stands_beside_the_list_with_links_both_ways():
    rows, report = tram_audit()
    page = Page(render_audit(rows, report))
    marks = [link for link in page.of("a") if (link.get("class") or "").startswith("mark")]
    assert [link["href"] for link in marks] == [f"#citation-{row.citation.number}" for row in rows]
    identifiers = {attributes.get("id") for _, attributes in page.elements}
    back = [link["href"] for link in page.of("a") if (link["href"] or "").startswith("#mark-")]
    assert sorted(back) == sorted(f"#mark-{row.citation.number}" for row in rows)
    assert {(link["href"] or "")[1:] for link in [*marks, *page.of("a")] if (link["href"] or "").startswith("#")} <= identifiers
    assert {sentence.text for sentence in report.sentences} <= set(page.texts("bdi"))


def test_reviews_are_shown_and_the_page_holds_what_names_a_citation():
    rows, report = tram_audit()
    of = ReviewedCitation(rows[1].citation.sentence, rows[1].citation.url, "a" * 64)
    said = Review(*astuple(of), "accepted", "Checked.", "Ann", "2026-11-27T00:00:00+00:00")
    page = Page(render_audit([rows[0], replace(rows[1], review=CitationReview(of, (said,)))], report))
    (article,) = [one for one in page.of("article") if "data-cited" in one]
    assert (article["data-cited"], article["data-version"], article["data-decision"]) == (of.cited, of.version, "accepted")
    assert said.said in page.texts("bdi")
    assert page.texts("strong")[0].startswith("2 of 2 citations pass (1 accepted by a reviewer).")


def test_weak_citations_are_called_weak_and_have_a_part_and_a_filter_of_their_own():
    rows, report = tram_audit()
    weak = [replace(row, status="WEAK") if row.citation.number in (1, 3) else row for row in rows]
    assert summary_sentence(weak).startswith("5 of 16 citations pass; 2 weak; 8 to review")
    page = Page(render_audit(weak, report))
    assert [text for text in page.texts("span") if text == "weak"] == ["weak", "weak"]
    assert page.texts("h2")[:3] == ["To review", "Weak", "Passed"]
    assert [button["value"] for button in page.of("button") if "value" in button][:2] == ["PASS", "WEAK"]


def test_what_is_lacking_has_sections():
    rows, report = tram_audit()
    source = render_audit(rows, report)
    page = Page(source)
    assert not page.open
    identifiers = [a["id"] for _, a in page.elements if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    assert {"uncited", "missing", "unused"} <= set(identifiers)
    assert "The network reached Neustadt in 2019." in source
    assert "Trams of the world" in source


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone():
    page = Page(render_audit(*tram_audit()))
    (style,), (script,) = page.texts("style"), page.texts("script")
    for directive, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy(page)
    assert policy(page).startswith("default-src 'none';")
    assert "unsafe" not in policy(page)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_other_peoples_text_stays_text(attack):
    source = render_audit(*attacked_audit(attack))
    page, quiet = Page(source), Page(render_audit(*attacked_audit("quiet")))
    assert [tag for tag, _ in page.elements if tag != "a"] == [tag for tag, _ in quiet.elements if tag != "a"]
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") or name in ("style", "src") for name in attributes)
        if tag == "a":
            assert (attributes["href"] or "").startswith(("https://", "http://", "#"))
    body = source.partition("<body>")[2]
    assert not {char for char in body if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")} - {"\n"}
    shown = re.sub(r'href="[^"]*"', "", body)
    assert not {char for char in shown if unicodedata.category(char) == "Cf"}
