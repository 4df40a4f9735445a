"""Runs that are killed at any moment, and taken up again, leave what one run leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import ChatServer

from nlp_retrieval.systems.hipporag.store import KnowledgeStore
from systems.hipporag.knowledge.databases import rows_of
from systems.hipporag.knowledge.reading_model import by_the_rule, corpus

ITEMS = corpus(80)
KILLS = 10


INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from nlp_retrieval.cli.app import main; main()"
)
"""A job in the background of a shell inherits that interruptions are ignored."""


class Killer:
    """Answers by the rule, and ends the process that asks when it has asked so often.

    Args:
        server: whose answers it decides.
        sent: the signal.
    """

    def __init__(self, server: ChatServer, sent: signal.Signals) -> None:
        self.server, self.sent = server, sent
        self.process: subprocess.Popen[str] | None = None
        self.at, self.told = 0, False
        server.answer = self.answer

    def answer(self, body):
        """Reply; once the process was told to end, as slowly as if it were not to be answered any more."""
        if self.at and self.server.calls >= self.at and self.process is not None:
            if not self.told:
                self.told = True
                self.process.send_signal(self.sent)
            return 30.0
        return by_the_rule(body)

    def run(self, folder: Path, cache: str, after: int = 0) -> tuple[int, str]:
        """Run the command, and end it after so many calls; return its exit code and what it said."""
        command = [
            *(sys.executable, "-c", INTERRUPTIBLE, "hipporag", "extract", "corpus.jsonl", "store.db"),
            *("--lm", "openai/small", "--lm-base-url", self.server.url, "--commit-every", "2", "--calls-at-once", "3"),
        ]
        environment = os.environ | {"XDG_CACHE_HOME": str(folder / cache)}
        self.at, self.told = (self.server.calls + after if after else 0), False
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        said = self.process.communicate(timeout=300)[1]
        return self.process.returncode, said


def written(folder: Path) -> Path:
    rows = ({"id": item.item_id, "content": item.content} for item in ITEMS)
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The rows of one run, as a function of a killer that has no one to kill."""
    rows = {}

    def of(killer):
        if not rows:
            folder = written(tmp_path_factory.mktemp("whole"))
            assert killer.run(folder, "cache")[0] == 0
            with KnowledgeStore(str(folder / "store.db")) as store:
                rows.update(rows_of(store))
        return rows

    return of


@pytest.mark.soak
def test_ten_kills_and_a_last_run_equal_one_run(tmp_path, server, uninterrupted):
    """Without the answers on disk, so that what counts is the store; each run asks for little more than what is missing."""
    killer = Killer(server, signal.SIGKILL)
    expected = uninterrupted(killer)
    folder, begin = written(tmp_path / "killed"), server.calls
    codes = [killer.run(folder, f"cache{number}", after=1 + number % 9)[0] for number in range(KILLS)]
    assert codes == [-signal.SIGKILL] * KILLS
    code, said = killer.run(folder, "cache")
    assert code == 0, said
    with KnowledgeStore(str(folder / "store.db")) as store:
        assert rows_of(store) == expected
    assert server.calls - begin <= len(ITEMS) + KILLS * (2 + 3 + 2)


def test_ctrl_c_ends_at_once_and_leaves_what_was_answered(tmp_path, server, uninterrupted):
    killer = Killer(server, signal.SIGINT)
    expected = uninterrupted(killer)
    folder, begin = written(tmp_path / "interrupted"), server.calls
    code, said = killer.run(folder, "cache", after=10)
    assert code == 130
    assert "interrupted" in said
    with KnowledgeStore(str(folder / "store.db")) as store:
        assert 1 <= len(rows_of(store)["passages"]) <= 9
    assert killer.run(folder, "cache")[0] == 0
    with KnowledgeStore(str(folder / "store.db")) as store:
        assert rows_of(store) == expected
    assert server.calls - begin <= len(ITEMS) + 2 * 3
