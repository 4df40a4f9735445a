"""The page of an audit in Chromium: filters hide what they leave out, and the page fits a window of any width."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.browser import opened
from nlp_retrieval.systems.evidence.audit_report import by_severity, render_audit
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.soak


@pytest.fixture
def page_path(tmp_path: Path) -> Path:
    (tmp_path / "audit.html").write_text(render_audit(tram_audit()))
    return tmp_path / "audit.html"


def test_filters_hide_what_they_leave_out_and_bring_it_back(browser: Browser, page_path: Path) -> None:
    problems: list[str] = []
    tab = opened(browser, page_path.as_uri(), problems)
    shown = tab.locator("article.citation:visible")
    results = [row.result for row in by_severity(tram_audit().rows)]
    passed, number = (tab.get_by_role("button", name=name) for name in ("passed", "other number"))
    passed.click()
    assert shown.count() == results.count("passed")
    assert tab.locator("output").inner_text() == f"{results.count('passed')} of {len(results)} shown"
    number.click()
    assert shown.count() == results.count("passed") + 1
    tab.locator("a.mark.open").nth(1).click()
    assert shown.count() == len(results), "a mark leads to a citation that was hidden"
    assert tab.locator("output").inner_text() == ""
    assert problems == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_window_and_nothing_runs(browser: Browser, tmp_path: Path, width: int) -> None:
    for attack in ("", *ATTACKS.values()):
        shown_audit = attacked_audit(attack * 3) if attack else tram_audit()
        (tmp_path / "audit.html").write_text(render_audit(shown_audit))
        problems: list[str] = []
        tab = opened(browser, (tmp_path / "audit.html").as_uri(), problems, width=width)
        inner, outer = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert (attack, inner <= outer, problems) == (attack, True, [])
        tab.context.close()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_accessible(browser: Browser, page_path: Path, width: int, dark: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    tab = opened(browser, page_path.as_uri(), [], width=width, dark=dark)
    found = Axe().run(tab).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
