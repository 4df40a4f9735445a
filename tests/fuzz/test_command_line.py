"""Whatever is written behind ``nlp-retrieval``: it ends with a code that means something, and says why in words."""

from __future__ import annotations

import random
import re
import shutil
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from soaking import Figures, mostly_soaked

from nlp_retrieval.lm import endpoint as calls

from .command_lines import GOOD, TYPED, Ended, command_line, ended, make_world

_LINES = 20
"""Command lines of each command, in the short run."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and a finished run beside what good and bad command lines name."""
    made = tmp_path_factory.mktemp("lines") / "a" / "b" / "world"
    made.mkdir(parents=True)
    make_world(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for words in (["index", "corpus.jsonl", "index", "-r", "bm25"], ["benchmark", "sweep.yaml", "--output", "run"]):
            done = ended(words)
            assert done.code == 0, done.err
    shutil.copy(made / "run" / "trec" / "bm25.trec", made / "other.trec")
    return made


def complaint(done: Ended) -> str:
    """What is wrong with how a command ended; empty where nothing is."""
    if done.code not in {0, 1, 2, 3, 4}:
        return f"the code {done.code}"
    for text in (done.out, done.err):
        if "Traceback (" in text or "error: unexpected" in text:
            return "a raw error"
    if found := re.search("[\x00-\x08\x0b-\x1f\x7f]", done.err):
        return f"{found[0]!r} on the terminal"
    shows_help = done.out.lstrip().startswith("Usage:")  # of a group of commands without a command
    return "" if done.code == 0 or done.err.strip() or shows_help else "a failure without a word"


@pytest.mark.parametrize("command", mostly_soaked(list(GOOD), ("search",)))
def test_a_hostile_command_line_is_told_in_words(
    command: str, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effort: int, figures: Figures
) -> None:
    here = tmp_path / "a" / "b" / "world"
    shutil.copytree(world, here, symlinks=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setattr(calls, "_sleep", lambda _: None)
    tried, chance = _LINES * effort, random.Random(f"lines of {command}")
    wrong = []
    for number in range(tried):
        if number % 20 == 19:  # what the commands before left of it
            shutil.rmtree(here)
            shutil.copytree(world, here, symlinks=True)
            monkeypatch.chdir(here)
        words, typed = command_line(command, chance), chance.choice(TYPED)
        done = ended(words, typed)
        if said := complaint(done):
            wrong.append(f"{said}: {words!r:.300}, typed {typed[:20]!r}\n  {done.err[-400:]}")
    figures.add("Fuzzing", f"command lines: {command}", tried, tried - len(wrong), "in one process")
    assert not wrong, "\n".join(wrong[:20])


def test_every_command_is_among_them() -> None:
    listed = re.findall(r"^│ (\w+)  ", ended(["--help"]).out, re.MULTILINE)
    added = {entry.name for entry in entry_points(group="nlp_retrieval.commands")}
    assert sorted(set(listed) - added) == sorted(GOOD)
