"""Readers while a writer publishes: no error, and every answer is of exactly one generation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from soaking import Figures, mostly_soaked

from nlp_retrieval import Searcher, verify_index

from .generations import QUERIES, corpus, generation_of, searcher

TESTS = Path(__file__).parent.parent


def replaced(writer: Searcher, path: Path, number: int) -> None:
    writer.index(corpus(number), path, replace=True)


def updated(writer: Searcher, path: Path, number: int) -> None:
    writer.update(corpus(number))
    if number % 4 == 0:
        writer.compact()


def folders_in_use(path: Path) -> set[str]:
    return set(re.findall('"folder":"([^"]+)"', (path / "manifest.json").read_text()))


Publish = Callable[[Searcher, Path, int], None]


def check_readers(tmp_path: Path, publish: Publish, processes: int, threads: int, generations: int) -> int:
    """Let processes read while a writer publishes; returns how many searches they made."""
    index, stop = tmp_path / "index", tmp_path / "stop"
    writer = searcher()
    writer.index(corpus(1), index)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "concurrency.readers", str(index), str(threads), str(stop)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(processes)]
    try:
        for process in readers:
            assert process.stdout is not None
            assert process.stdout.readline() == "reading\n"
        for number in range(2, generations + 1):
            publish(writer, index, number)
            assert generation_of(writer.search(QUERIES)) == number
    finally:
        stop.touch()
        told_by = [process.communicate(timeout=300)[0] for process in readers]
    assert [process.returncode for process in readers] == [0] * processes
    for first, *others in map(json.loads, told_by):
        assert set(first[1]) == {1}, "the first reader of each process keeps what it opened"
        assert {seen[-1] for _, seen in others} == {generations}, "a last refresh() takes up the newest"
    assert verify_index(index) == []
    del writer
    searcher().index(corpus(1), index, replace=True)  # comes back for what was held
    assert {folder.name for folder in index.iterdir() if folder.is_dir()} <= folders_in_use(index)
    return sum(rounds for told_of in told_by for rounds, _ in json.loads(told_of))


@pytest.mark.parametrize("publish", mostly_soaked([replaced, updated]))
def test_every_answer_belongs_to_one_generation(tmp_path: Path, publish: Publish, effort: int, figures: Figures) -> None:
    processes, threads, generations = (2, 3, 5) if effort == 1 else (4, 25, 20)
    searches = check_readers(tmp_path, publish, processes, threads, generations)
    assert searches > 0
    note = f"{processes * threads} readers, {generations} generations: each answer of one generation"
    figures.add("Concurrency", f"searches while items are {publish.__name__}", searches, searches, note)
