"""The tutorial is run as it is written, in an empty folder, and prints what it says that it prints."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from nlp_retrieval.cli.app import app, main

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs" / "TUTORIAL.md").read_text("utf-8")
BENCHMARKING = (ROOT / "docs" / "BENCHMARKING.md").read_text("utf-8")
COMMAND = "nlp-retrieval "
NETWORK = ("pip ", "wandb ")
WIDTH = "100"


def blocks(document: str) -> list[tuple[str, str]]:
    """Language and content of every block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)


def data_frames(document: str) -> list[tuple[str, str]]:
    """The blocks of the part about data frames."""
    return blocks(document.partition("\n## Data frames\n")[2].partition("\n## ")[0])


def statements(script: str) -> Iterator[str]:
    """The commands of a script, each with its continued lines and its here-document."""
    lines = iter(script.splitlines(keepends=True))
    for line in lines:
        statement = line
        while statement.endswith("\\\n"):
            statement += next(lines)
        if (opened := re.search(r"<<'(\w+)'", statement)) is not None:
            for following in lines:
                statement += following
                if following.strip() == opened[1]:
                    break
        if statement.strip():
            yield statement


def run_command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command line here, where the models are loaded once."""
    monkeypatch.setattr(sys, "argv", words)
    code: object = None
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert not code, f"{shlex.join(words)} ended with {code}"


def run_python(code: str, names: dict[str, object]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.parse(code), "document", "exec"), names)
    return printed.getvalue()


def lines_of(text: str) -> list[str]:
    """Lines without what differs from machine to machine: times, sizes, similarities, and the marks that times decide."""
    plain = re.sub(r"(?<![\d.])(?!\d\.\d{3}(?!\d))\d[\d.,]*", "0", re.sub("[◆─━]", " ", text))
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]


def test_the_tutorial_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", WIDTH)
    printed: set[str] = set()
    names: dict[str, object] = {"__name__": "tutorial"}
    for language, content in [*blocks(TUTORIAL), *data_frames(BENCHMARKING)]:
        if language == "sh":
            for statement in statements(content):
                if statement.startswith(COMMAND):
                    run_command(shlex.split(statement.replace("\\\n", " ")), monkeypatch)
                else:
                    subprocess.run(["sh", "-e", "-c", statement], check=True)
            captured = capsys.readouterr()
            printed |= set(lines_of(captured.out + captured.err))
        elif language == "python":
            printed |= set(lines_of(run_python(content, names)))
        elif not content.startswith(NETWORK):
            assert [line for line in lines_of(content) if line not in printed | {"..."}] == []
    assert (folder / "runs" / "first" / "report.html").exists()


def test_the_configurations_in_the_documents_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nlp_retrieval.benchmarks.cost.prices import read_prices
    from nlp_retrieval.benchmarks.grid.grid import read_grid

    found = [yaml.safe_load(content) for language, content in blocks(BENCHMARKING) if language == "yaml"]
    (grid,) = [one["grid"] for one in found if "grid" in one]
    assert len(read_grid(grid, 0, "grid").searchers) == 14
    (prices,) = [one["prices"] for one in found if "prices" in one]
    assert read_prices(prices, "prices").models


def test_the_commands_in_the_documents_have_the_options_that_are_named() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for path in (ROOT / "docs").glob("*.md"):
        for name, rest in re.findall(r"nlp-retrieval ([a-z]+)([^`\n]*)", path.read_text("utf-8")):
            command = commands[name]
            if hasattr(command, "commands"):  # a group: the next word is one of its commands
                command = command.commands.get(rest.split(" ")[1] if " " in rest else "", command)
            options = {one for parameter in command.params for one in (*parameter.opts, *parameter.secondary_opts)}
            assert set(re.findall(r"--[a-z-]+", rest)) <= {*options, "--help"}, f"{path.name}: nlp-retrieval {name}{rest}"


def anchors(path: Path) -> set[str]:
    """What the headings of a document can be linked by."""
    heads = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_links_of_the_documents_lead_somewhere() -> None:
    for path in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
            if target.startswith("http"):
                continue
            file, _, anchor = target.partition("#")
            linked = path.parent / file if file else path
            assert linked.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(linked), f"{path.name}: {target}"
