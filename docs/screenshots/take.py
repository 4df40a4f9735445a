"""The pictures of docs/REPORT.md: parts of the page of a run, in headless Chromium (Debian's package ``chromium``).

``python -m docs.screenshots.take runs/sweep/report.html``, in the repository's folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from bench.browser import chromium, opened, wait_until

WIDTH = 1280
HERE = Path(__file__).parent
LISTS_ARE_SHOWN = "!document.getElementById('explorer').hidden"


def between(page: Page, name: str, first: str, last: str) -> None:
    """Take a picture from the top of one element to the bottom of another, over the whole width."""
    top, bottom = page.evaluate(
        f"[{json.dumps(first)}, {json.dumps(last)}].map((one, place) => {{"
        " const box = document.querySelector(one).getBoundingClientRect();"
        " return (place ? box.bottom : box.top) + scrollY; })"
    )
    path = HERE / f"{name}.png"
    page.screenshot(path=path, full_page=True, clip={"x": 0, "y": top - 16, "width": WIDTH, "height": bottom - top + 24})
    reduced(path)


def reduced(path: Path) -> None:
    """Save a picture with 256 colours."""
    Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def main(path: Path) -> None:
    """Take all pictures of a page."""
    with chromium() as browser:
        for name, size, dark in (("first", (WIDTH, 800), False), ("dark", (WIDTH, 800), True), ("phone", (390, 844), False)):
            page = opened(browser, path.absolute().as_uri(), [], width=size[0], height=size[1], dark=dark)
            wait_until(page, LISTS_ARE_SHOWN)
            page.screenshot(path=HERE / f"{name}.png")
            reduced(HERE / f"{name}.png")
        page = opened(browser, path.absolute().as_uri(), [], width=WIDTH)
        wait_until(page, LISTS_ARE_SHOWN)
        between(page, "table", "#results", "#comparison")
        between(page, "differences", "#significance", "#verdicts")
        between(page, "pairs", "#pairs", ".pairs")
        between(page, "charts", "#charts", "#charts ~ .charts")
        choices = {"one": "bm25", "other": "both, sum, plain", "measure": "Recall@10", "order": "gains first"}
        for choice, label in choices.items():
            page.select_option(f"#explorer-{choice}", label=label)
        between(page, "explorer", "#why", "#explorer")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
