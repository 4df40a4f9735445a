"""Several processes at one project."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from systems.evidence.index.sources import lexical, told

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
