"""A Ray cluster of several nodes on this machine: the bytes of one process, also when a node is lost."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
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
from nlp_retrieval.encoders import cluster as room
from nlp_retrieval.encoders.cluster import cluster_pool, handlers_kept
from nlp_retrieval.encoders.passages import PassageTask, encoded_by
from nlp_retrieval.encoders.workers import WorkerPool
from nlp_retrieval.errors import ConfigurationError, DependencyError, WorkerError
from nlp_retrieval.retrievers import vectors as vectors_room

TEXTS = [f"passage {row} of the {row * 7} rivers" + (" now" if row == 13 else "") for row in range(60)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(vectors_room, "_BATCH", 4)


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    """Two nodes of one core."""
    with ray_cluster(cores_of_head=1, n_nodes=1) as nodes:
        yield nodes


def handlers() -> list[bytes]:
    """What happens at signals that end a process, as the system has it."""
    found = []
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGTERM):
        handler = ctypes.create_string_buffer(512)
        ctypes.CDLL(None).sigaction(int(number), None, handler)
        found.append(handler.raw[: ctypes.sizeof(ctypes.c_void_p)])
    return found


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


def test_an_actor_that_is_killed_is_replaced_and_its_block_is_done_again(cluster, tmp_path):
    log = tmp_path / "log"
    searcher = Searcher([FaissRetriever(Unlucky("killed", str(log), times=2, home=os.getpid()))])
    searcher.index(items_of(TEXTS), tmp_path / "cluster", ray=cluster.address, workers=2)
    assert len(log.read_text().split()) == 2
    searcher.index(items_of(TEXTS), tmp_path / "one")
    assert vectors_of(tmp_path / "one") == vectors_of(tmp_path / "cluster")


@pytest.mark.soak
def test_a_worker_with_another_model_is_found_before_the_work(cluster, tmp_path):
    encoder = Unlucky("other_model", str(tmp_path / "log"), home=os.getpid())
    with pytest.raises(WorkerError, match=r"process \d+ on node [\d.]+ has another encoder.model_fingerprint than"):
        Searcher([FaissRetriever(encoder)]).index(items_of(TEXTS), tmp_path / "index", ray=cluster.address)


@pytest.mark.soak
def test_a_node_that_is_lost_in_the_middle_changes_no_byte(cluster, monkeypatch):
    monkeypatch.setattr(room, "ROOM_SECONDS", 600.0)
    lost = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    encoder = HashedWords()
    batches = [TEXTS[first : first + 4] for first in range(0, 60, 4)] * 20
    pool = cluster_pool(cluster.address, None)
    try:
        assert pool.n_workers == 3
        made = []
        for texts, batch in encoded_by(pool, PassageTask(encoder), iter(batches)):
            made.append((texts, batch.rows.tobytes()))
            if len(made) == 20:
                _wait_for_three(pool)
                cluster.remove_node(lost)
    finally:
        pool.close()
    assert made == [(texts, encoder.encode_passages(texts).tobytes()) for texts in batches]


def _wait_for_three(pool: WorkerPool) -> None:
    while len(pool.opened) < 3:
        time.sleep(0.05)


@pytest.fixture
def as_it_was() -> Iterator[None]:
    """What happens at a fault of memory is afterwards what it was before, whatever Ray does."""
    with handlers_kept():
        yield


@pytest.mark.soak
@pytest.mark.usefixtures("as_it_was")
def test_a_cluster_without_a_free_core_is_an_error_that_says_so(cluster, tmp_path, monkeypatch):
    import ray

    monkeypatch.setattr(room, "ROOM_SECONDS", 2.0)
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        holders = [ray.remote(num_cpus=1)(Holder).remote() for _ in range(2)]
        ray.get([holder.held.remote() for holder in holders])
        with pytest.raises(WorkerError, match=r"no worker is left: a worker waited 2 seconds .* 0 of them free; see"):
            Searcher([FaissRetriever(HashedWords())]).index(items_of(TEXTS), tmp_path / "index", ray="auto")
        assert ray.is_initialized()
        with pytest.raises(WorkerError, match=r"is connected to the Ray cluster at .* already; call ray.shutdown"):
            cluster_pool("127.0.0.1:1", None)
    finally:
        ray.shutdown()


class Holder:
    """Has a core."""

    def held(self) -> bool:
        return True


def test_a_cluster_that_is_not_there_is_an_error_at_once(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(WorkerError, match=rf"there is no Ray cluster at {address} \(.*\); start one with 'ray start --head'"):
        cluster_pool(address, None)


@pytest.mark.parametrize("address", ["10.0.0.5", ":6379", "host:port", "ray://10.0.0.5:10001"])
def test_an_address_that_ray_would_misread_is_refused(address):
    with pytest.raises(ConfigurationError, match=r"ray="):
        cluster_pool(address, None)


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(DependencyError, match=r"a cluster needs ray .*: pip install 'nlp_retrieval\[ray\]'"):
        cluster_pool("auto", None)


def test_a_head_that_is_gone_ends_the_build_and_the_same_call_goes_on(cluster, tmp_path, monkeypatch):
    """The last test of the cluster."""
    monkeypatch.setattr(room, "LOOK_SECONDS", 0.2)
    log = tmp_path / "log"
    encoder = Unlucky("waits", str(log), home=os.getpid())
    searcher = Searcher([FaissRetriever(encoder)])
    ending = threading.Thread(target=_end_head_at, args=(cluster, log))
    ending.start()
    with pytest.raises(WorkerError, match=r"the head of the Ray cluster at .* is gone; restart it and repeat the call"):
        searcher.index(items_of(TEXTS), tmp_path / "index", ray=cluster.address, workers=1)
    ending.join()
    report = searcher.index(items_of(TEXTS), tmp_path / "index")
    assert report.resumed == 12
    searcher.index(items_of(TEXTS), tmp_path / "one")
    assert vectors_of(tmp_path / "one") == vectors_of(tmp_path / "index")


def _end_head_at(cluster: Any, log: Path) -> None:
    while not log.exists():
        time.sleep(0.05)
    cluster.head_node.kill_gcs_server()
