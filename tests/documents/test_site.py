"""The documentation site is built strictly, every link in it leads somewhere, and a page asks no other host for anything."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

import nlp_retrieval
from nlp_retrieval._public_names import modules_of

from .blocks import ROOT

pytestmark = pytest.mark.soak  # links between the pages themselves: tests/test_documentation.py

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


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


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in pages(site):
        for tag, attribute in LOADED.items():
            for one in parsed(page).find_all(tag, **{attribute: True}):
                address = urlsplit(str(one[attribute]))
                assert not address.netloc, f"{page.relative_to(site)}: {one}"
                assert address.scheme in ("", "data"), f"{page.relative_to(site)}: {one}"
    for style in (site / "_static").rglob("*.css"):
        text = style.read_text("utf-8")
        assert "@import" not in text, style.name
        assert "url(http" not in text.replace('"', "").replace("'", ""), style.name


def test_the_reference_describes_every_public_name(site: Path) -> None:
    described = set().union(*(anchors(page) for page in (site / "docs/site/reference").glob("*.html")))
    assert {f"nlp_retrieval.{name}" for name in nlp_retrieval.__all__ if name != "__version__"} <= described
    for system in entry_points(group="nlp_retrieval.systems"):
        assert {f"nlp_retrieval.{system.name}.{name}" for name in modules_of(system.value)} <= described


def test_names_in_the_pages_lead_to_their_description(site: Path) -> None:
    described = "site/reference/searching.html#nlp_retrieval.core.BaseRetriever"
    assert parsed(site / "docs/COMPONENTS.html").find("a", href=described) is not None


def test_the_commands_are_described(site: Path) -> None:
    page = parsed(site / "docs/site/reference/command_line.html").get_text()
    for words in ("Usage: nlp-retrieval benchmark", "Usage: nlp-retrieval evidence audit", "--dry-run"):
        assert words in page


def test_all_reports_of_measurements_are_in_the_navigation(site: Path) -> None:
    home = parsed(site / "docs" / "site" / "index.html")
    led_to = {str(link["href"]) for link in home.select(".sidebar-tree a[href]")}
    assert {f"../../bench/{path.stem}.html" for path in (ROOT / "bench").glob("[A-Z]*.md")} <= led_to
    assert {f"../{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} <= led_to
