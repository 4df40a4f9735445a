"""Report pages in the machine's headless Chromium, driven with Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Give the first Chromium on the path.

    Raises:
        FileNotFoundError: there is none.
    """
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        raise FileNotFoundError("there is no Chromium on the path; install Debian's package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def opened(
    browser: Browser,
    address: str,
    problems: list[str],
    *,
    width: int = 1280,
    height: int = 1000,
    dark: bool = False,
    script: str = "",
) -> Page:
    """Open an address in a tab of its own.

    Args:
        browser: to open it in.
        address: of a page.
        problems: takes whatever the page complains about.
        width: of the window; below 500 it is a phone's.
        height: of the window.
        dark: whether the user prefers dark colours.
        script: what runs before the page's own.
    """
    look: ViewportSize = {"width": width, "height": height}
    context = browser.new_context(viewport=look, color_scheme="dark" if dark else "light", is_mobile=width < 500)
    page = context.new_page()

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    page.on("console", said)
    page.on("pageerror", lambda error: problems.append(str(error)))
    if script:
        page.add_init_script(script)
    page.goto(address)
    return page


def wait_until(page: Page, condition: str) -> None:
    """Wait for a condition; Playwright's own way makes code of text in the page, which its policy forbids.

    Raises:
        TimeoutError: it does not come true in 30 seconds.
    """
    for _ in range(1500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise TimeoutError(condition)
