"""The page of an audit in Chromium: filters hide what they leave out, and the page fits a window of any width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nlp_retrieval import Bm25Retriever, Searcher
from nlp_retrieval.systems.evidence.audit import CitationAuditor
from nlp_retrieval.systems.evidence.audit_report import by_severity, render_audit
from nlp_retrieval.systems.evidence.index.evidence_index import EvidenceIndex
from nlp_retrieval.systems.evidence.verifiers.lexical import LexicalVerifier
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.soak

REPORT = "# Tram\n\nIt has 27 stops [1]. It has 28 stops [1]. It has 22 stops [1].\n\n[1]: https://stats.example/tram"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from bench.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def page_path(tmp_path: Path) -> Path:
    (tmp_path / "audit.html").write_text(render_audit(*tram_audit()))
    return tmp_path / "audit.html"


def shown(tab: Page) -> list[str]:
    """The statuses of the citations that can be seen."""
    seen = tab.locator("article.citation:visible")
    return [str(one.get_attribute("data-status")) for one in seen.all()]


def test_filters_hide_what_they_leave_out_and_bring_it_back(browser: Browser, page_path: Path) -> None:
    from bench.browser import opened

    rows, _ = tram_audit()
    problems: list[str] = []
    tab = opened(browser, page_path.as_uri(), problems)
    everything = [row.status for row in by_severity(rows)]
    assert shown(tab) == everything
    review = tab.get_by_role("button", name="to review")
    review.click()
    assert shown(tab) == ["REVIEW"] * everything.count("REVIEW")
    assert tab.locator("output").inner_text() == f"{everything.count('REVIEW')} of {len(rows)} shown"
    assert review.get_attribute("aria-pressed") == "true"
    number = tab.get_by_role("button", name="other number")
    number.click()
    assert len(shown(tab)) == sum(row.reason == "other number" for row in rows) > 0
    review.click()
    tab.get_by_role("button", name="passed").click()
    assert shown(tab) == [], "a citation that passed has no reason"
    number.click()
    assert shown(tab) == ["PASS"] * everything.count("PASS")
    tab.get_by_role("button", name="passed").click()
    assert shown(tab) == everything
    assert tab.locator("output").inner_text() == ""
    assert problems == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_window_and_nothing_runs(browser: Browser, tmp_path: Path, width: int) -> None:
    from bench.browser import opened

    for attack in ("", *ATTACKS.values()):
        shown_audit = attacked_audit(attack * 3) if attack else tram_audit()
        (tmp_path / "audit.html").write_text(render_audit(*shown_audit))
        problems: list[str] = []
        tab = opened(browser, (tmp_path / "audit.html").as_uri(), problems, width=width)
        inner, outer = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert (attack, inner <= outer, problems) == (attack, True, [])
        tab.context.close()


@pytest.fixture
def reviewed_project(tmp_path: Path) -> tuple[CitationAuditor, Path]:
    index = EvidenceIndex(tmp_path / "project", Searcher([Bm25Retriever()]))
    index.add_document("The tram carried 2.4 million passengers in 2019. It has 22 stops.", "https://stats.example/tram")
    index.build_index()
    auditor = CitationAuditor(index, LexicalVerifier())
    done = auditor.audit(REPORT)
    (tmp_path / "audit.html").write_text(render_audit(done.rows, done.report))
    return auditor, tmp_path / "audit.html"


def test_a_served_page_keeps_each_decision_in_the_project(
    browser: Browser, reviewed_project: tuple[CitationAuditor, Path]
) -> None:
    from service.running import running

    from bench.browser import opened

    auditor, path = reviewed_project
    (report := path.with_name("report.md")).write_text(REPORT)
    served = [auditor.index.project_path, "--as", "project", "-r", "bm25", "--set", f"report={report}"]
    with running(served) as service:
        problems: list[str] = []
        tab = opened(browser, f"{service.url}/", problems)
        tab.keyboard.press("j")
        tab.keyboard.press("a")
        assert tab.locator("output").inner_text() == "Write your name first."
        tab.keyboard.type("Ann")  # the field for the name has the focus
        tab.keyboard.press("Enter")
        assert tab.evaluate("document.activeElement.dataset.number") == "1"
        tab.keyboard.press("r")
        tab.get_by_text("Citation 1 rejected. 1 of 2 decided.").wait_for()
        tab.locator("#citation-2").get_by_role("button", name="Accept").click()
        tab.get_by_text("Citation 2 accepted. 2 of 2 decided.").wait_for()
        assert [(review.decision, review.by) for review in auditor.reviews.all()] == [("rejected", "Ann"), ("accepted", "Ann")]
        tab.locator("#citation-1").get_by_role("button", name="Undo").click()
        tab.get_by_text("Citation 1 withdrawn. 1 of 2 decided.").wait_for()
        tab.reload()
        decisions = [tab.locator(f"#citation-{number}").get_attribute("data-decision") for number in (1, 2)]
        assert decisions == ["", "accepted"]
        tab.locator(".by").fill("Ann")
        auditor.index.delete("https://stats.example/tram")
        tab.locator("#citation-1").get_by_role("button", name="Reject").click()
        tab.get_by_text("Citation 1: not kept, this project has no text").wait_for()
        assert len(auditor.reviews.all()) == 3
        assert [each for each in problems if "422" not in each] == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_accessible(
    browser: Browser, reviewed_project: tuple[CitationAuditor, Path], width: int, dark: bool
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    from bench.browser import opened

    tab = opened(browser, reviewed_project[1].as_uri(), [], width=width, dark=dark)
    found = Axe().run(tab).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
