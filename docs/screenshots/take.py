"""The pictures of docs/REPORT.md: parts of the page of a run, in headless Chromium (Debian's package ``chromium``).

``python -m docs.screenshots.take runs/sweep/report.html``, in the repository's folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from PIL import Image

from bench.chromium import Chromium

WIDTH = 1280
HERE = Path(__file__).parent


def between(browser: Chromium, name: str, first: str, last: str) -> None:
    """Take a picture from the top of one element to the bottom of another, over the whole width."""
    top, bottom = browser.eval(
        f"[{json.dumps(first)}, {json.dumps(last)}].map((one, place) => {{"
        " const box = document.querySelector(one).getBoundingClientRect();"
        " return (place ? box.bottom : box.top) + scrollY; })"
    )
    browser.eval(
        "(() => { const box = document.getElementById('picture') ?? document.body.appendChild(document.createElement('div'));"
        " box.id = 'picture'; const to = (name, value) => box.style.setProperty(name, value);"
        " to('position', 'absolute'); to('left', 0); to('visibility', 'hidden');"
        f" to('width', '{WIDTH}px'); to('top', '{top - 16}px'); to('height', '{bottom - top + 24}px'); }})()"
    )
    path = HERE / f"{name}.png"
    browser.screenshot(path, "#picture")
    Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def main(page: Path) -> None:
    """Take all pictures of a page."""
    with Chromium() as browser:
        browser.look(WIDTH, 1000)
        browser.open(page.absolute().as_uri())
        browser.wait("!document.getElementById('explorer').hidden")
        browser.click("th[data-label='Recall @20'] button")
        between(browser, "table", "#results", "#comparison")
        between(browser, "differences", "#significance", "#verdicts")
        between(browser, "pairs", "#pairs", ".pairs")
        between(browser, "charts", "#charts", ".charts")
        browser.choose("#explorer-one", "bm25")
        browser.choose("#explorer-other", "both, sum, plain")
        browser.choose("#explorer-cutoff", "5")
        browser.choose("#explorer-measure", "recall@5")
        browser.choose("#explorer-order", "gains first")
        browser.click("#explorer-queries li")
        browser.eval(
            "[...document.querySelectorAll('#explorer-shown summary')]"
            ".find((one) => /gold/.test(one.textContent) && /entered/.test(one.textContent)).click()"
        )
        between(browser, "explorer", "#explorer-title", "#explorer")
        between(browser, "pool", "[id^=pool-]", ".pool")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
