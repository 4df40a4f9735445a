"""Processes of the tests: one adds sources, one asks, one adds and builds until it is killed.

Usage: ``python workers.py TASK PROJECT NAME COUNT``; each prints a line for whatever it has finished.
"""

from __future__ import annotations

import signal
import sys
import warnings
from pathlib import Path

from nlp_retrieval.errors import RetrievalWarning
from systems.evidence.index.sources import lexical


def add(project: Path, name: str, count: int) -> None:
    """Add sources, and the same aliases as everybody else."""
    index = lexical(project)
    for number in range(count):
        index.add_document(f"Text {number} of {name}.", f"https://{name}.example/{number}")
        index.add_document(f"Shared text {number}.", f"https://{name}.example/shared/{number}")
        say(number)


def ask(project: Path, name: str, count: int) -> None:
    """Search."""
    index = lexical(project)
    for number in range(count):
        index.search(f"lake {name} {number}")
        say(number)


def work(project: Path, name: str, count: int) -> None:
    """Add, replace, delete and build, for ever."""
    index = lexical(project)
    for number in range(count):
        index.add_document(f"Text {number} of {name}.", f"https://{name}.example/{number}")
        say(f"added {number}")
        if number % 3 == 2:
            index.delete(f"https://{name}.example/{number - 2}")
            say(f"deleted {number - 2}")
        index.build_index()
        say(f"built {number}")


def hold(project: Path, name: str, count: int) -> None:
    """Fill a project, search it, and wait to be killed."""
    fill(project, name, count)
    say("filled")
    signal.pause()


def fill(project: Path, name: str, count: int) -> None:
    """Add sources with aliases and versions, delete one, build, and search."""
    index = lexical(project)
    for number in range(count):
        url = f"https://{name}.example/{number}"
        index.add_document(f"Text {number} of {name}.", url, f"Title {number}", "B", "2026-01-01")
        index.add_document(f"Text {number} of {name}.", f"https://mirror.example/{number}", "", "A", "2026-01-02")
        index.add_document(f"Changed text {number}.", url, "", "C", "2026-01-03")
    index.delete(f"https://{name}.example/0")
    index.build_index()
    for number in range(count):
        index.search(f"changed text {number}")


def say(what: object) -> None:
    """Tell the test."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    warnings.simplefilter("ignore", RetrievalWarning)
    task, where, who, times = sys.argv[1:]
    {"add": add, "ask": ask, "work": work, "hold": hold}[task](Path(where), who, int(times))
