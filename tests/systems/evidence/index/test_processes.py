"""Several processes at one project, and processes that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from soaking import mostly_soaked

from systems.evidence.index.sources import lexical, told, two_sources
from systems.evidence.index.test_searching import held_ids
from systems.evidence.index.workers import fill

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


@pytest.mark.soak
def test_processes_that_build_at_once_wait_for_each_other(tmp_path):
    workers = [started("work", tmp_path, name, 3) for name in ("one", "two")]
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    for worker in workers:
        worker.stdout.close()
    index = lexical(tmp_path)
    assert len(index.sources()) == 4
    assert all(source.searchable for source in index.sources())
    assert len(held_ids(index)) == 4


@pytest.mark.soak
def test_the_searches_of_all_readers_are_counted(tmp_path):
    two_sources(tmp_path).close()
    workers = [started("ask", tmp_path, name, 20) for name in ("one", "two")]
    index = lexical(tmp_path)
    threads = [threading.Thread(target=lambda: [index.search("lake freezes") for _ in range(20)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [worker.wait(timeout=300) for worker in workers] == [0, 0]
    for worker in workers:
        worker.stdout.close()
    assert lexical(tmp_path).stats()["total_queries"] == 100


@pytest.mark.parametrize("lines", mostly_soaked([4, 1, 8]))
def test_a_killed_process_leaves_what_it_said_and_the_next_build_makes_all_right(tmp_path, lines):
    """It is killed in the middle of what comes after its last line: of an addition, a deletion or a build."""
    worker = started("work", tmp_path, "one", 1000)
    said = [worker.stdout.readline().split() for _ in range(lines)]
    threading.Event().wait(0.002 * lines)
    worker.kill()
    said += [line.split() for line in worker.stdout.read().splitlines()]
    worker.stdout.close()
    worker.wait()
    added = {int(number) for what, number in said if what == "added"}
    deleted = {int(number) for what, number in said if what == "deleted"}
    index = lexical(tmp_path)
    found = {int(source.url.rpartition("/")[2]) for source in index.sources()}
    last = max(added, default=-1)
    assert added - deleted - {last - 2} <= found <= (added - deleted) | {last + 1}
    index.build_index()
    texts = {index.text(source.key): source for source in index.sources()}
    assert texts.keys() == {f"Text {number} of one." for number in found}
    assert all(source.searchable for source in texts.values())
    assert len(held_ids(index)) == len(found)
    assert json.loads(index.metadata_path.read_text())["document_count"] == len(found)
    assert not list((tmp_path / "10_graph").glob(".gone-*"))


def test_every_document_hash_alias_and_statistic_outlives_the_process(tmp_path):
    worker = started("hold", tmp_path / "killed", "one", 4)
    assert worker.stdout.readline() == "filled\n"
    worker.kill()
    worker.communicate()
    fill(tmp_path / "whole", "one", 4)
    killed, whole = lexical(tmp_path / "killed"), lexical(tmp_path / "whole")
    assert killed.sources() == whole.sources()
    assert len(killed.sources()) == 7
    for source in whole.sources():
        assert killed.versions(source.url) == whole.versions(source.url)
        assert killed.text(source.key) == whole.text(source.key)
    assert killed.was_deleted("https://one.example/0")
    assert killed.metadata() == whole.metadata()
    assert killed.metadata()["retrieval_stats"]["total_queries"] == 4
    counted = [{key: value for key, value in one.stats().items() if key != "bytes"} for one in (killed, whole)]
    assert counted[0] == counted[1]
    assert killed.search("changed text 2") == whole.search("changed text 2")


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
