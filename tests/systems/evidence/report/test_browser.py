"""The page of an audit in Chromium: filters hide what they leave out, and the page fits a window of any width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nlp_retrieval.systems.evidence.audit_report import write_audit_page
from systems.evidence.report.attacks import ATTACKS
from systems.evidence.report.audit_data import attacked_audit, tram_audit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from bench.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def page_path(tmp_path: Path) -> Path:
    write_audit_page(*tram_audit(), tmp_path / "audit.html")
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
    everything = [row.status for row in rows]
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


def test_filters_can_be_pressed_by_keyboard(browser: Browser, page_path: Path) -> None:
    from bench.browser import opened

    tab = opened(browser, page_path.as_uri(), [])
    tab.get_by_role("button", name="not indexed").focus()
    tab.keyboard.press("Space")
    assert set(shown(tab)) == {"SOURCE_NOT_INDEXED"}


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("attack", ["", *ATTACKS])
def test_nothing_is_wider_than_the_window_and_nothing_runs(browser: Browser, tmp_path: Path, width: int, attack: str) -> None:
    from bench.browser import opened

    audit = attacked_audit(ATTACKS[attack] * 3) if attack else tram_audit()
    write_audit_page(*audit, tmp_path / "audit.html")
    problems: list[str] = []
    tab = opened(browser, (tmp_path / "audit.html").as_uri(), problems, width=width)
    inner, outer = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert inner <= outer
    assert problems == []
    tab.context.close()
