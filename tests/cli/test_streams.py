"""Full devices, closed pipes and closed streams: what cannot be written is told, and nothing else is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .commands import COMMAND, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus and an index of it."""
    made = tmp_path_factory.mktemp("streams")
    rows = [{"id": str(n), "content": f"red fox number {n} " + "word " * 30} for n in range(200)]
    (made / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("index", "corpus.jsonl", "index", "-r", "bm25", folder=made)
    assert done.returncode == 0, done.stderr
    return made


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, in which ``@`` is the command."""
    line = "set -o pipefail; " + line.replace("@", COMMAND)
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", ["search index fox", "components"])
def test_a_full_device_is_one_line_and_code_1(words: str, folder: Path) -> None:
    done = shell(f"@ {words} > /dev/full", folder)
    assert done.returncode == 1
    assert done.stderr == "error: standard output could not be written (No space left on device); files and indexes are whole\n"


@pytest.mark.parametrize("words", ["search index fox -k 200", "components"])
def test_a_reader_that_has_what_it_wanted_is_no_error(words: str, folder: Path) -> None:
    done = shell(f"@ {words} | head -c 1", folder)
    assert (done.returncode, len(done.stdout), done.stderr) == (0, 1, "")


INTERRUPTIBLE = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
"""A job in the background of a shell inherits that interruptions are ignored."""


def test_a_file_that_ends_early_and_an_interruption_are_told_in_one_line(folder: Path) -> None:
    os.mkfifo(folder / "slow.jsonl")
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, COMMAND, "index", "slow.jsonl", "interrupted", "-r", "bm25"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    with (folder / "slow.jsonl").open("w") as writer:  # waits until the command reads
        writer.write('{"id": "a", "content": "red fox"}\n')
        writer.flush()
        while not (folder / "interrupted").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    assert said == "interrupted; there is no index in interrupted yet\n"
    assert not (folder / "interrupted").exists()
