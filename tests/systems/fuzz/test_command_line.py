"""Whatever is written behind a command of a system: it ends with a code that means something, and says why in words."""

from __future__ import annotations

from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from fuzz.command_lines import command_line
from fuzz.test_command_line import check_told, made_world
from soaking import Figures, mostly_soaked

from .command_lines import ALWAYS, GOOD, MORE, make_world

_LINES = {"hover optimize": 10}
_OTHERS = 15
"""Command lines of each command, in the short run."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index, a finished run and a project beside what good and bad command lines name."""
    project = ["evidence", "add", "project", "sources.jsonl", "-r", "bm25"]
    return made_world(tmp_path_factory.mktemp("lines"), make_world, project)


@pytest.mark.parametrize("command", mostly_soaked(list(GOOD), ("evidence",)))
def test_a_hostile_command_line_is_told_in_words(
    command: str, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effort: int, figures: Figures
) -> None:
    lines = partial(command_line, command, good=GOOD, more=MORE.get(command, []), always=ALWAYS.get(command, []))
    check_told(command, lines, world, tmp_path, monkeypatch, _LINES.get(command, _OTHERS) * effort, figures)


def test_every_group_of_a_system_is_among_them() -> None:
    systems = {entry.name for entry in entry_points(group="nlp_retrieval.systems")}
    assert {command.split()[0] for command in GOOD} == systems | {"serve"}
