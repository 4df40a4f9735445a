"""The page on paper, A4 across: nothing is wider than the sheet, and what is closed on the screen takes no sheets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from evaluation.test_rankings import lists_of

from nlp_retrieval.evaluation.comparison import compare_pairs
from nlp_retrieval.reports.page.page import write_page
from reports.report_data import configuration, measures_like, report_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

WIDTH, HEIGHT = 1031, 703  # A4 across without margins of 12 mm, at 96 pixels an inch


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from bench.browser import chromium

    with chromium() as started:
        yield started


def on_paper(browser: Browser, folder: Path, configurations: int) -> Page:
    """The page of some configurations, every two of them compared, some told apart, as it is printed."""
    from bench.browser import opened, wait_for_lists

    draw = np.random.default_rng(3)
    names = [f"lexical and dense number {place}" for place in range(configurations)]
    values = {name: {"recall@21": draw.uniform(0, 1 - place % 3 / 4, 60)} for place, name in enumerate(names)}
    report = report_of(*(configuration(name, measures_like(0.3 + place / 100)) for place, name in enumerate(names)))
    report = replace(report, pairwise=compare_pairs(values, "recall@21", [None] * 60, 0))
    lists = lists_of({name: [[("a", 2.0, {"s": 1.0})]] for name in names}, {"q0": {"a": 1}}, 1)
    lists = replace(lists, passages={"a": "A passage of a few words."})
    write_page(report, folder / "report.html", lists, {name: {"recall@21": np.zeros(1)} for name in names})
    problems: list[str] = []
    page = opened(browser, (folder / "report.html").as_uri(), problems, width=WIDTH, height=HEIGHT)
    wait_for_lists(page)
    page.emulate_media(media="print")
    assert problems == []
    return page


@pytest.mark.parametrize("configurations", [3, 30])
def test_a_sheet_holds_the_widest_table_so_that_no_text_is_made_smaller(
    browser: Browser, tmp_path: Path, configurations: int
) -> None:
    page = on_paper(browser, tmp_path, configurations)
    pairs = page.locator("#all-pairs")
    assert pairs.locator(".mark").count() > 0
    assert pairs.evaluate("table => table.getBoundingClientRect().right") <= WIDTH
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
