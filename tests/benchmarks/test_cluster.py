"""A sweep over the nodes of a Ray cluster: the results of one process, also when a node is lost."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from failing_bm25 import UnluckyBm25, register
from ray_cluster import ray_cluster

from benchmarks.small_benchmark import benchmarker
from nlp_retrieval import Bm25Retriever, OverlapReranker, Searcher, write_run_files
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.core.components.registry import registered


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A head without cores, and two nodes of one; what their workers import and look up is found as this process finds it."""
    sys.path.insert(0, str(register(tmp_path_factory.mktemp("registered"))))
    registered.cache_clear()
    with ray_cluster(cores_of_head=0, n_nodes=2) as nodes:
        yield nodes
    sys.path.pop(0)
    registered.cache_clear()


def sweep(what: str, log: Path) -> dict[str, Searcher]:
    unlucky = UnluckyBm25(what, str(log), home=os.getpid())
    return {
        "unlucky": Searcher([unlucky]),
        "bm25": Searcher([Bm25Retriever(k1=1.2)]),
        "overlap": Searcher([unlucky, Bm25Retriever(k1=1.2)], reranker=OverlapReranker(), depth=12),
    }


def ran(folder: Path, searchers: dict[str, Searcher], **changed: Any) -> tuple[BenchmarkRun, dict[str, bytes]]:
    arguments = {"searchers": searchers, "stage_folder": folder / "stages"} | changed
    run = benchmarker(folder.parent / "index", **arguments).run()
    write_run_files(run, folder / "run")
    files = [folder / "run" / "results.json", *(folder / "run" / "trec").glob("*")]
    return run, {path.name: path.read_bytes() for path in files}


@pytest.mark.soak
def test_a_node_that_is_lost_in_the_middle_of_a_sweep_changes_no_byte(cluster: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    searchers = sweep("waits", log)
    losing = threading.Thread(target=_lose_node_of, args=(cluster, log))
    losing.start()
    run, spread = ran(tmp_path / "spread", searchers, ray=cluster.address)
    losing.join()
    assert run.report.failed == []
    assert run.report.manifest["searched_by"] == {"workers": None, "ray": cluster.address, "stages": 5, "here": {}}
    _, alone = ran(tmp_path / "alone", searchers)
    assert alone == spread


def _lose_node_of(cluster: Any, log: Path) -> None:
    """End the node whose worker has written into the log, with all its processes."""
    while not log.exists() or not log.read_text().endswith("\n"):
        time.sleep(0.05)
    above, pid = set(), int(log.read_text())
    while pid > 1:
        status = Path(f"/proc/{pid}/status").read_text()
        pid = int(status.partition("PPid:")[2].split()[0])
        above.add(pid)
    for node in list(cluster.worker_nodes):
        if any(told.process.pid in above for told in node.all_processes["raylet"]):
            cluster.remove_node(node, allow_graceful=False)
