"""One writer at a time: the second is told to wait, and a dead one holds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nlp_retrieval.errors import IndexLockedError

from .generations import QUERIES, corpus, generation_of, searcher
from .test_readers import TESTS, folders_in_use


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


@contextmanager
def another_process(index: Path, number: int) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun to write a generation."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "concurrency.generations", str(index), str(number)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=TESTS
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        try:
            yield process
        finally:
            process.kill()


def left_over(index: Path) -> set[str]:
    """What lies in an index directory beside what its manifest names."""
    return {path.name for path in index.iterdir()} - folders_in_use(index) - {"manifest.json", ".lock"}


def test_of_two_processes_the_second_is_told_to_wait_and_readers_go_on(index: Path) -> None:
    searcher().index(corpus(1), index)
    with another_process(index, 2) as process:
        with pytest.raises(IndexLockedError, match=f"another process is writing to {index}; wait"):
            searcher().index(corpus(3), index, replace=True)
        assert generation_of(searcher().open(index).search(QUERIES)) == 1
        assert process.communicate("\n", timeout=300)[0] == "done\n"
    assert generation_of(searcher().open(index).search(QUERIES)) == 2
    assert left_over(index) == set()
