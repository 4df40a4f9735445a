"""The documentation site is built strictly, every link in it leads somewhere, and a page asks no other host for anything."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from .blocks import ROOT

pytestmark = pytest.mark.soak  # links between the pages themselves: tests/test_documentation.py


@cache
def parsed(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf-8"), "lxml")


@cache
def anchors(path: Path) -> set[str]:
    return {str(one["id"]) for one in parsed(path).find_all(id=True)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``make docs`` builds it: any warning is an error, so a page that nothing leads to is one too."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-W", "--keep-going", "--quiet", "-b", "html", "-c", str(ROOT / "docs" / "site")]
    command = [sys.executable, "-W", "ignore", "-m", "sphinx", *options, str(ROOT), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def pages(site: Path) -> list[Path]:
    return [path for path in site.rglob("*.html") if "_static" not in path.parts]


def test_every_link_and_anchor_of_the_site_leads_somewhere(site: Path) -> None:
    broken = []
    for page in pages(site):
        for link in parsed(page).find_all("a", href=True):
            target = urlsplit(str(link["href"]))
            if target.scheme or target.netloc:
                continue
            path = (page.parent / unquote(target.path)).resolve() if target.path else page
            anchored = target.fragment and path.suffix == ".html"
            if not path.exists() or (anchored and unquote(target.fragment) not in anchors(path)):
                broken.append(f"{page.relative_to(site)}: {link['href']}")
    assert broken == []
