"""The page in Chromium: judged by keys, kept at once, on a phone too, and accessible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench.browser import opened
from nlp_retrieval import Query, SearchableItem
from nlp_retrieval.judging import JudgingProject

from .test_server import served
from .world import make

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.soak

HOSTILE = '<img src=x onerror="document.title=1">\u202e evil </div><script>document.title=2</script> \U0001f40b whale one sings'


def judged(tab: Page, number: int) -> None:
    tab.get_by_text(f"{number} of ", exact=False).first.wait_for()


def test_sixty_pairs_by_keys(browser: Browser, tmp_path: Path) -> None:
    """As many as there are: grades, skip, note, undo, and a reload in the middle."""
    project = make(tmp_path / "judging", scale="graded")
    chosen = len(project.pool().item_ids)
    with served(project.path, "--judge", "Ann") as page:
        problems: list[str] = []
        tab = opened(browser, f"{page.url}/#{page.token}", problems)
        judged(tab, 0)
        tab.keyboard.press("2")
        tab.get_by_text("Kept: 2 answers in part.").wait_for()
        judged(tab, 1)
        tab.keyboard.press("n")
        tab.keyboard.type("3 of these? no, see = below")
        tab.keyboard.press("Escape")
        tab.keyboard.press("0")
        judged(tab, 2)
        tab.keyboard.press("u")
        judged(tab, 1)
        tab.keyboard.press("1")
        judged(tab, 2)
        tab.keyboard.press("s")
        tab.get_by_text("Skipped.").wait_for()
        tab.reload()
        judged(tab, 2)
        tab.keyboard.press("?")
        assert tab.locator("dialog").is_visible()
        tab.keyboard.press("3")
        tab.keyboard.press("Escape")
        judged(tab, 2)
        for done in range(3, chosen + 1):
            tab.keyboard.press("0")
            judged(tab, done) if done < chosen else tab.get_by_text("Nothing is left to judge.").wait_for()
        assert problems == []
    history = project.history()
    assert [each.grade for each in history[:5]] == [2, 0, None, 1, None]
    assert [each.decision for each in history[:5]] == ["graded", "graded", "withdrawn", "graded", "skipped"]
    assert history[1].note == "3 of these? no, see = below"
    assert len(project.judgements()) == chosen
    assert all(each.seconds > 0 for each in project.judgements())


def test_hostile_text_is_text(browser: Browser, tmp_path: Path) -> None:
    item = SearchableItem(item_id="<b>", content=HOSTILE + " x" + "y" * 300, metadata={"title": HOSTILE})
    queries = [Query(query_id="q", text=f"which whale? {HOSTILE}")]
    project = JudgingProject.create(tmp_path / "p", queries, {"one": {"q": [("<b>", 1.0)]}}, [item])
    with served(project.path, "--judge", "Ann") as page:
        problems: list[str] = []
        tab = opened(browser, f"{page.url}/#{page.token}", problems, width=320)
        tab.locator("#content mark").first.wait_for()
        inner, outer = tab.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert inner <= outer
        tab.get_by_role("button", name="1 relevant", exact=True).click()
        tab.get_by_text("Nothing is left to judge.").wait_for()
        assert tab.title() == "Judging"
        assert problems == []
        tab.context.close()
    (kept,) = project.judgements()
    assert kept.grade == 1


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("settles", [False, True])
def test_the_page_is_accessible(browser: Browser, tmp_path: Path, width: int, dark: bool, settles: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    project = make(tmp_path / "judging", scale="graded")
    project.judge(0, 3, "Ben")
    project.judge(0, 1, "Cem")
    with served(project.path, "--judge", "Ann", *(["--settle"] if settles else [])) as page:
        tab = opened(browser, f"{page.url}/#{page.token}", [], width=width, dark=dark)
        tab.locator("#content mark").first.wait_for()
        tab.keyboard.press("n")
        found = Axe().run(tab).response["violations"]
        tab.context.close()
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
