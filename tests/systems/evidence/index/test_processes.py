"""Several processes at one project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from systems.evidence.index.sources import lexical, told, two_sources

TESTS = Path(__file__).parents[3]


def started(task, project, name, count):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
    command = [sys.executable, str(Path(__file__).with_name("workers.py")), task, str(project), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_processes_that_add_at_once_lose_nothing(tmp_path):
    workers = [started("add", tmp_path, name, 15) for name in ("one", "two")]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    for worker in workers:
        worker.stdout.close()
    index = lexical(tmp_path)
    wanted = {
        f"https://{name}.example/{part}{number}" for name in ("one", "two") for part in ("", "shared/") for number in range(15)
    }
    assert {source.url for source in index.sources()} == wanted
    assert index.stats()["document_count"] == 45
    assert told(index)["document_count"] == 45


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_uses_a_connection_of_its_own(tmp_path):
    index = two_sources(tmp_path)
    index.search("lake")
    child = os.fork()
    if child == 0:
        try:
            index.search("lake")
            os._exit(0 if len(index.sources()) == 2 else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert index.stats()["total_queries"] == 2
