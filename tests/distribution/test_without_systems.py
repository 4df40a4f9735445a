"""The library stands without its systems: a copy that has none of them shows what is left, and its own tests pass."""

from __future__ import annotations

import configparser
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest

from nlp_retrieval.cli.app import main

from .conftest import ROOT

SYSTEMS = {entry.name for entry in entry_points(group="nlp_retrieval.systems")}
OF_THE_WHOLE = ("documents", "notebooks", "distribution", "test_documentation.py", "test_compare_page.py")
"""Tests of the repository's documents and of what is published, which are about the systems too."""


@dataclass(frozen=True)
class Library:
    """A copy of the repository without systems, and a Python that has it installed.

    Args:
        root: of the copy.
        python: of an environment with this copy's entry points; what it depends on is this environment's.
    """

    root: Path
    python: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a module in the copy."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [str(self.python), "-m", *words]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)

    def test(self, *words: str) -> None:
        """Run tests in the copy; they pass."""
        done = self.run("pytest", "-q", "-p", "no:cacheprovider", *words)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def _is_of_a_system(folder: str, names: list[str]) -> set[str]:
    """Return what is left out of the copy, of the entries of a folder."""
    inside = Path(folder).relative_to(ROOT)
    system = {f"{name}.py" for name in SYSTEMS} if inside == Path("nlp_retrieval") else set()
    hidden = {name for name in names if name.startswith(".")} if inside == Path() else set()
    built = {name for name in names if name.endswith(".egg-info")} | {"__pycache__", "build", "dist"}
    return {name for name in names if name in system | hidden | built | {"systems"}}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("apart")
    root, environment = folder / "repository", folder / "environment"
    shutil.copytree(ROOT, root, ignore=_is_of_a_system, symlinks=True)
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "setup.cfg")
    points = settings["options.entry_points"]
    for group, entries in [*points.items()]:
        points[group] = "\n".join(line for line in entries.splitlines() if "nlp_retrieval.systems" not in line)
        if not points[group].strip():
            del points[group]
    written = io.StringIO()
    settings.write(written)
    (root / "setup.cfg").write_text(written.getvalue(), "utf-8")

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    packages = environment / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    metadata = packages / f"nlp_retrieval-{distribution('nlp_retrieval').version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(distribution("nlp_retrieval").read_text("METADATA") or "", "utf-8")
    text = "".join(f"[{group}]\n{entries}\n\n" for group, entries in points.items())
    (metadata / "entry_points.txt").write_text(text, "utf-8")
    (packages / "others.pth").write_text(f"{root}\n{sysconfig.get_path('purelib')}\n", "utf-8")
    command = environment / "bin" / "nlp-retrieval"
    python = environment / "bin" / "python"
    command.write_text(f"#!{python}\nfrom {main.__module__} import main\nmain()\n", "utf-8")
    command.chmod(0o755)
    return Library(root, python)


def test_the_command_shows_what_is_left(library: Library) -> None:
    done = library.run("nlp_retrieval", "--help")
    assert done.returncode == 0, done.stderr
    shown = set(re.findall(r"^\W*([a-z]+)  ", done.stdout, re.MULTILINE))
    added = {entry.name for entry in entry_points(group="nlp_retrieval.commands")}
    assert {"index", "search", "benchmark", "serve"} <= shown
    assert shown & added == set()
    assert "nlp_retrieval.systems" not in library.run("nlp_retrieval", "components").stdout


@pytest.mark.soak
def test_all_tests_of_the_library_pass(library: Library) -> None:
    library.test("tests", *(f"--ignore=tests/{name}" for name in OF_THE_WHOLE))
