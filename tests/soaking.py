"""The long part of the tests (``make soak``), and the figures that it leaves in ``bench/RELIABILITY.md``.

A test that kills, damages or attacks takes ``effort``, a multiplier of how often, and tells ``figures`` what it tried. Without
``--soak`` the effort is 1, tests marked ``soak`` do not run, and nothing is written.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

_FOLDER = Path(__file__).parent.parent / "bench"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_BEGIN, _END = "<!-- figures: written by make soak -->", "<!-- end of figures -->"
_SOAKING = 10


class Figures:
    """What was tried, and what of it went as it should."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, list[str]]] = {}

    def add(self, part: str, what: str, tried: int, passed: int, note: str = "") -> None:
        """Note a row of the report."""
        self.rows.setdefault(part, {})[what] = [f"{tried:,}", f"{passed:,}", note]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run the long part, and write its figures to bench/RELIABILITY.md")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: takes minutes; runs only with --soak")
    config.addinivalue_line("markers", "browser: runs only where there is a Chromium on the path")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    without = [] if config.getoption("--soak") else ["soak"]
    without += [] if any(map(shutil.which, _BROWSERS)) else ["browser"]
    left_out = {item for item in items if any(map(item.get_closest_marker, without))}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def mostly_soaked(names: Sequence[Any], short: Collection[Any] | int = 1) -> list[Any]:
    """Return parameters of which the short run takes a few, and a soak all."""
    kept = names[:short] if isinstance(short, int) else short
    return [name if name in kept else pytest.param(name, marks=pytest.mark.soak) for name in names]


@pytest.fixture(scope="session")
def effort(pytestconfig: pytest.Config) -> int:
    """How many times as much as in the short run is to be tried."""
    return _SOAKING if pytestconfig.getoption("--soak") else 1


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Iterator[Figures]:
    """Takes down what was tried; written at the end of a soak."""
    noted = Figures()
    yield noted
    if pytestconfig.getoption("--soak"):
        _write(noted)


def _write(noted: Figures) -> None:
    """Put the rows into the report; rows of parts that did not run stay."""
    kept = _FOLDER / "reliability.json"
    rows: dict[str, dict[str, list[str]]] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    for part, found in noted.rows.items():
        rows.setdefault(part, {}).update(found)
    kept.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    lines = [_BEGIN]
    for part, found in rows.items():
        lines += ["", f"## {part}", "", "| what | tried | right | |", "|---|---:|---:|---|"]
        lines += [f"| {what} | {' | '.join(values)} |" for what, values in found.items()]
    page = _FOLDER / "RELIABILITY.md"
    text = page.read_text("utf-8")
    before, after = text.split(_BEGIN)[0], text.split(_END)[1]
    page.write_text(before + "\n".join([*lines, "", _END]) + after, "utf-8")
