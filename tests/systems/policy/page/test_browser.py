"""The page of a study in Chromium: links open what they lead to, choices hide the rest, and it fits a window of any width."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nlp_retrieval.systems.policy.page.page import write_study_page
from systems.policy.page.test_page import hostile_study
from systems.policy.study.studies import study

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from bench.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    asked = study(folder / "index", hop=True)
    path = folder / "out" / "report.html"
    write_study_page(asked.run(folder / "out", method="both"), asked, path)
    return path


def test_a_number_of_the_overview_opens_its_answer(browser: Browser, page_path: Path) -> None:
    from bench.browser import opened

    problems: list[str] = []
    tab = opened(browser, page_path.as_uri(), problems)
    assert tab.locator("article.found:visible").count() == 0
    tab.locator('table.overview a[href="#s3-q2"]').click()
    assert tab.locator("#s3-q2 article.found:visible").count() > 0
    assert tab.locator("#s1-q1 article.found:visible").count() == 0
    assert problems == []


@pytest.mark.parametrize("width", [320, 420, 800, 1400])
def test_it_fits_a_window_of_any_width(browser: Browser, page_path: Path, width: int) -> None:
    from bench.browser import opened

    problems: list[str] = []
    tab = opened(browser, page_path.as_uri(), problems)
    tab.set_viewport_size({"width": width, "height": 900})
    tab.get_by_role("button", name="open all").click()
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert problems == []


def test_hostile_documents_run_nothing(browser: Browser, tmp_path: Path) -> None:
    from bench.browser import opened

    problems: list[str] = []
    hostile = hostile_study(tmp_path)
    path = tmp_path / "out" / "report.html"
    write_study_page(hostile.run(tmp_path / "out"), hostile, path)
    tab = opened(browser, path.as_uri(), problems)
    tab.get_by_role("button", name="open all").click()
    assert tab.locator("script").count() == 1
    assert tab.locator("img").count() == 0
    assert problems == []
