"""The page about comparing is run as it is written, in an empty folder, and prints what it says that it prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from documents.blocks import blocks, lines_of, run_python, run_script
from typer.main import get_command

from nlp_retrieval.cli.app import app

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "COMPARE.md").read_text("utf-8")
NETWORK = ("pip ", "wandb ")
WIDTH = "100"


def test_the_page_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", WIDTH)
    printed: set[str] = set()
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(PAGE):
        language, content = block.language, block.content
        if language == "sh":
            run_script(content, monkeypatch)
            captured = capsys.readouterr()
            printed |= set(lines_of(captured.out + captured.err))
        elif language == "python":
            printed |= set(lines_of(run_python(content, names)))
        elif not content.startswith(NETWORK):
            assert [line for line in lines_of(content) if line not in printed | {"..."}] == []
    assert (folder / "runs" / "first" / "report.html").exists()


def test_the_commands_in_the_documents_have_the_options_that_are_named() -> None:
    group: Any = get_command(app)
    added = {"words"}  # of the plug-in that a page shows
    for path in (ROOT / "docs").glob("*.md"):
        for name, rest in re.findall(r"nlp-retrieval ([a-z]+)([^`\n]*)", path.read_text("utf-8")):
            if name in added:
                continue
            command = group.get_command(None, name)
            if hasattr(command, "get_command"):  # a group: the next word is one of its commands
                command = command.get_command(None, rest.split(" ")[1] if " " in rest else "") or command
            options = {one for parameter in command.params for one in (*parameter.opts, *parameter.secondary_opts)}
            assert set(re.findall(r"--[a-z-]+", rest)) <= {*options, "--help"}, f"{path.name}: nlp-retrieval {name}{rest}"
