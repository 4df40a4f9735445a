"""The package on the plug-in page is whole: installed as it stands, its component is found by name and its tests pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli.commands import refused
from cli.commands import run as command

from .registering import write_entry_points

PAGE = (Path(__file__).parents[2] / "docs" / "OWN_COMPONENT.md").read_text("utf-8")
FILES = dict(re.findall(r"^`([\w.]+)`\n\n```\w+\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE))


(WORD_COUNTS,) = re.findall(r"^```python\n(import typer\n.*?)```", PAGE, re.DOTALL | re.MULTILINE)


def run(folder: Path, *module: str) -> subprocess.CompletedProcess[str]:
    paths = [str(folder / "installed"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "XDG_CACHE_HOME": str(folder / "cache")}
    return subprocess.run(
        [sys.executable, "-m", *module], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's files, installed without a network."""
    folder = tmp_path_factory.mktemp("plugin")
    for name, content in FILES.items():
        (folder / name).write_text(content, "utf-8")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target", "installed"]
    done = run(folder, "pip", "install", *options, ".")
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "trigram_retriever.py").unlink()  # what is installed is what is run
    return folder


def test_the_tests_of_the_package_pass(package: Path) -> None:
    done = run(package, "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "test_trigram_retriever.py")
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 30
    assert "skipped" not in done.stdout


def test_the_package_is_found_by_its_name(package: Path) -> None:
    done = command("components", "retrievers", "trigrams", PYTHONPATH=str(package / "installed"))
    assert done.returncode == 0, done.stderr
    assert "trigrams (retriever): Ranks items by the share" in done.stdout
    assert "from trigram_retriever import TrigramRetriever" in done.stdout


def test_commands_of_a_package_join_those_of_the_library(tmp_path: Path) -> None:
    (tmp_path / "word_counts.py").write_text(WORD_COUNTS, "utf-8")
    entries = {"commands": {"words": "word_counts:app", "lost": "no_such_module:app"}}
    installed = str(write_entry_points(tmp_path, entries))
    helped = command("--help", PYTHONPATH=installed)
    assert re.search(r"^│ words +Count words\. +│$", helped.stdout, re.MULTILINE)
    assert re.search(r"^│ lost +Cannot be loaded: ModuleNotFoundError", helped.stdout, re.MULTILINE), "it breaks no other"
    assert command("words", "count", "one two three", PYTHONPATH=installed).stderr == "3 words\n"
    refused(command("lost", PYTHONPATH=installed), 4, "no_such_module:app cannot be loaded")
