"""A Ray cluster of two nodes on this machine: the bytes of one process, also when a node is lost."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hashed_words import HashedWords, items_of
from ray_cluster import ray_cluster
from worker_encoders import Unlucky

from nlp_retrieval import FaissRetriever, Searcher
from nlp_retrieval.encoders.passages import ClusterPool
from nlp_retrieval.errors import WorkerError
from nlp_retrieval.retrievers import vectors as vectors_room

TEXTS = [f"passage {row} of the {row * 7} rivers" + (" now" if row == 13 else "") for row in range(60)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(vectors_room, "_BATCH", 4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head without cores and two nodes of one."""
    with ray_cluster(cores_of_head=0, n_nodes=2) as nodes:
        yield nodes


def handlers() -> dict[int, bytes]:
    """What happens at signals that end a process, as the system has it."""
    numbers = map(int, (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGTERM))
    buffers = {number: ctypes.create_string_buffer(512) for number in numbers}
    for number, buffer in buffers.items():
        ctypes.CDLL(None).sigaction(number, None, buffer)
    return {number: buffer.raw[: ctypes.sizeof(ctypes.c_void_p)] for number, buffer in buffers.items()}


def vectors_of(folder: Path) -> bytes:
    return next(folder.glob("faiss-*/vectors.npy")).read_bytes()


def test_a_cluster_makes_the_bytes_of_one_process(cluster, tmp_path):
    import ray

    searcher = Searcher([FaissRetriever(HashedWords())])
    searcher.index(items_of(TEXTS), tmp_path / "one")
    before = handlers()
    searcher.index(items_of(TEXTS), tmp_path / "cluster", ray=cluster.address)
    assert vectors_of(tmp_path / "one") == vectors_of(tmp_path / "cluster")
    assert not ray.is_initialized()
    assert handlers() == before  # Java's among them, where it runs: without its own it ends the process


@pytest.mark.soak
def test_a_node_that_is_lost_changes_no_byte(cluster, tmp_path):
    """The last test of the cluster."""
    log = tmp_path / "log"
    searcher = Searcher([FaissRetriever(Unlucky("waits", str(log), home=os.getpid()))])
    losing = threading.Thread(target=_lose_node_of, args=(cluster, log))
    losing.start()
    searcher.index(items_of(TEXTS), tmp_path / "cluster", ray=cluster.address)
    losing.join()
    searcher.index(items_of(TEXTS), tmp_path / "one")
    assert vectors_of(tmp_path / "one") == vectors_of(tmp_path / "cluster")


def _lose_node_of(cluster: Any, log: Path) -> None:
    """End the node whose worker has written into the log, with all its processes."""
    while not log.exists() or not log.read_text().endswith("\n"):
        time.sleep(0.05)
    above, pid = set(), int(log.read_text())
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/status").read_text().partition("PPid:")[2].split()[0])
        above.add(pid)
    for node in list(cluster.worker_nodes):
        if any(told.process.pid in above for told in node.all_processes["raylet"]):
            cluster.remove_node(node, allow_graceful=False)


def test_a_cluster_that_is_not_there_is_an_error_at_once():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(WorkerError, match=rf"the Ray cluster at {address} cannot be used \(.*refused"):
        ClusterPool(address)
