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

ITEMS = corpus(40)
KILLS = 10

EXTRACT = """
import signal, sys
from nlp_retrieval import JsonlLoader, LanguageModel
from nlp_retrieval.hipporag import KnowledgeExtractor, KnowledgeStore, extract_knowledge
from nlp_retrieval.lm import ModelEndpoint

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
lm = LanguageModel("openai/small", sys.argv[1], endpoint=ModelEndpoint(calls_at_once=3))
with KnowledgeStore("store.db", create=True) as store:
    extract_knowledge(JsonlLoader("corpus.jsonl").stream(), store, KnowledgeExtractor(lm), commit_every=3)
"""


class Killer:
    """Answers by the rule; after a number of calls it ends the process that asks, and answers no more until the next run."""

    def __init__(self, server: ChatServer, sent: signal.Signals) -> None:
        self.server, self.sent, self.at, self.told = server, sent, 0, False
        self.process: subprocess.Popen[bytes] | None = None
        server.answer = self.answer

    def answer(self, body):
        if self.at and self.server.calls >= self.at and self.process is not None:
            if not self.told:
                self.told = True
                self.process.send_signal(self.sent)
            return 30.0
        return by_the_rule(body)

    def run(self, folder: Path, cache: str, after: int = 0) -> int:
        """Extract, and end that after so many calls; return the exit code."""
        environment = os.environ | {"XDG_CACHE_HOME": str(folder / cache)}
        self.at, self.told = (self.server.calls + after if after else 0), False
        self.process = subprocess.Popen([sys.executable, "-c", EXTRACT, self.server.url], cwd=folder, env=environment)
        return self.process.wait(timeout=300)


def written(folder: Path) -> Path:
    rows = ({"id": item.item_id, "content": item.content} for item in ITEMS)
    folder.mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def stored(folder: Path) -> dict[str, list]:
    with KnowledgeStore(str(folder / "store.db")) as store:
        return rows_of(store)


@pytest.mark.soak
def test_ten_kills_and_a_last_run_equal_one_run(tmp_path, server):
    """Without the answers on disk, so that what counts is the store; each run asks for little more than what is missing."""
    killer = Killer(server, signal.SIGKILL)
    whole = written(tmp_path / "whole")
    assert killer.run(whole, "cache") == 0
    folder, begin = written(tmp_path / "killed"), server.calls
    codes = [killer.run(folder, f"cache{number}", after=1 + number % 6) for number in range(KILLS)]
    assert codes == [-signal.SIGKILL] * KILLS
    assert killer.run(folder, "cache") == 0
    assert stored(folder) == stored(whole)
    assert server.calls - begin <= len(ITEMS) + KILLS * (2 + 3 + 2)
