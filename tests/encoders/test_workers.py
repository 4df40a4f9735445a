"""Passages encoded by processes of this machine: the same bytes as by one, whatever becomes of the processes."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hashed_tokens import HashedTokens
from hashed_words import HashedWords, items_of
from soaking import mostly_soaked
from worker_encoders import Placed, Surroundings, Unlucky

from nlp_retrieval import ColbertRetriever, FaissRetriever, Searcher
from nlp_retrieval.core.blocks import EncodedBatch, EncodedBlock, WorkBlock
from nlp_retrieval.core.processes import threads_of
from nlp_retrieval.encoders import workers as workers_room
from nlp_retrieval.encoders.passages import PassageTask, encoded_by
from nlp_retrieval.encoders.workers import (
    Confirmed,
    Failure,
    NoRoomError,
    ProcessWorker,
    Worker,
    WorkerPool,
    _Call,
    local_pool,
)
from nlp_retrieval.errors import ConfigurationError, ModelError, WorkerError
from nlp_retrieval.retrievers import vectors as vectors_room
from nlp_retrieval.retrievers.colbert import retriever as colbert_room

TEXTS = [f"passage {row} of the {row * 7} rivers" for row in range(30)]
SUDDEN = [text + (" now" if row == 13 else "") for row, text in enumerate(TEXTS)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(vectors_room, "_BATCH", 4)
    monkeypatch.setattr(colbert_room, "_BATCH", 4)


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of an index but for its items and its manifest, which tells the time that it took."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "manifest.json" and "items-" not in str(file)
    }


def children() -> set[int]:
    """The processes that this one has started and that have not been waited for."""
    return {int(pid) for pid in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()}


@pytest.mark.parametrize("retriever", [FaissRetriever(HashedWords()), ColbertRetriever(HashedTokens())], ids=lambda r: r.name)
def test_several_processes_make_the_bytes_of_one(retriever, tmp_path):
    for name, workers in (("one", None), ("several", 3)):
        Searcher([retriever]).index(items_of(TEXTS), tmp_path / name, workers=workers)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "several")


def test_a_worker_that_is_killed_is_replaced_and_its_block_is_done_again(tmp_path):
    log, before = tmp_path / "log", children()
    encoder = Unlucky("killed", str(log), times=2, home=os.getpid())
    Searcher([FaissRetriever(encoder)]).index(items_of(SUDDEN), tmp_path / "index", workers=2)
    assert len(log.read_text().split()) == 2
    Searcher([FaissRetriever(encoder)]).index(items_of(SUDDEN), tmp_path / "alone")
    assert files_of(tmp_path / "index") == files_of(tmp_path / "alone")
    assert children() <= before


def test_a_block_that_kills_every_worker_ends_the_build_and_the_next_one_goes_on(tmp_path):
    log = tmp_path / "log"
    encoder = Unlucky("killed", str(log), times=3, home=os.getpid())
    searcher = Searcher([FaissRetriever(encoder)])
    with pytest.raises(WorkerError, match=r"3 workers were lost over passages 12 to 15, the last: .*SIGKILL; where the system"):
        searcher.index(items_of(SUDDEN), tmp_path / "index", workers=2)
    report = searcher.index(items_of(SUDDEN), tmp_path / "index", workers=2)
    assert report.resumed == 12
    searcher.index(items_of(SUDDEN), tmp_path / "alone")
    assert files_of(tmp_path / "index") == files_of(tmp_path / "alone")


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("raises", WorkerError, r"^worker process \d+ failed at passages 12 to 15: RuntimeError: the weights are gone$"),
        ("refuses", ModelError, r"gave NaN or infinity for 4 of 4 texts \(the first: 'passage 12 of"),
        ("other_model", WorkerError, r"has another encoder.model_fingerprint than this process: .* of a worker.* on all nodes"),
        ("other_vectors", WorkerError, r"process \d+ computes other vectors than process \d+ for the same texts"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_told_in_one_line(what, error, message, tmp_path):
    encoder = Unlucky(what, str(tmp_path / "log"), home=os.getpid())
    with pytest.raises(error, match=message) as raised:
        Searcher([FaissRetriever(encoder)]).index(items_of(SUDDEN), tmp_path / "index", workers=2)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "index" / "manifest.json").exists()


@pytest.mark.parametrize(("room", "refused"), [(subprocess, "Popen"), (socket, "socketpair"), (workers_room, "TemporaryFile")])
@pytest.mark.parametrize("reason", mostly_soaked([errno.EAGAIN, errno.EMFILE]))
def test_a_process_that_the_system_does_not_start_is_no_fault_of_the_index(reason, room, refused, tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(room, refused, refuse)
    message = rf"^a worker process cannot be started: {os.strerror(reason)}; use fewer workers, or allow this user more"
    with pytest.raises(WorkerError, match=message):
        Searcher([FaissRetriever(HashedWords())]).index(items_of(TEXTS), tmp_path / "index", workers=2)


@pytest.mark.parametrize("workers", [0, -1, True, "two", 2.5, 10**9])
def test_a_number_of_workers_that_is_none_is_refused(workers, tmp_path):
    with pytest.raises(ConfigurationError, match=r"workers=.*expected a whole number from 1"):
        Searcher([FaissRetriever(HashedWords())]).index(items_of(TEXTS), tmp_path / "index", workers=workers)


@pytest.mark.parametrize("address", ["", "  ", 6379])
def test_an_address_that_is_none_is_refused(address, tmp_path):
    with pytest.raises(ConfigurationError, match=r"ray=.*expected 'auto', or the address"):
        Searcher([FaissRetriever(HashedWords())]).index(items_of(TEXTS), tmp_path / "index", ray=address)


def test_an_encoder_that_no_other_process_can_import_is_refused(tmp_path):
    class Here(HashedWords):
        name = "here"

    with pytest.raises(ConfigurationError, match=r"workers cannot import .*Here, which is defined in .* move it into a module"):
        Searcher([FaissRetriever(Here())]).index(items_of(TEXTS), tmp_path / "index", workers=2)


def test_an_encoder_that_holds_a_secret_is_not_sent(tmp_path):
    searcher = Searcher([FaissRetriever(HashedWords(api_key="sk-abcdefghijklmnopqrstuvwxyz123456"))])
    with pytest.raises(ConfigurationError, match=r"api_key holds what looks like a secret, and is not sent to workers"):
        searcher.index(items_of(TEXTS), tmp_path / "index", workers=2)


def test_a_worker_has_one_core_and_sees_no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    worker, task = ProcessWorker(), Surroundings()
    try:
        assert isinstance(worker.ask(task.key, task), Confirmed)
        told = {name: worker.do(task.key, name) for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")}
    finally:
        worker.close()
    assert told == {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(("device", "here"), [(None, False), ("cpu", False), ("cuda:1", True), ("mps", True)])
def test_an_encoder_that_names_a_gpu_encodes_in_this_process(device, here, tmp_path, monkeypatch):
    asked, do = [], ProcessWorker.do

    def told(worker: ProcessWorker, doing: str, work: object) -> object:
        asked.append(work)
        return do(worker, doing, work)

    monkeypatch.setattr(ProcessWorker, "do", told)
    Searcher([FaissRetriever(Placed(device))]).index(items_of(TEXTS), tmp_path / "index", workers=2)
    assert (asked == []) == here


def test_passages_are_read_only_as_workers_become_free():
    read = 0

    def batches() -> Iterator[list[str]]:
        nonlocal read
        for row in range(1000):
            read = row + 1
            yield [f"passage {row}"]

    before, pool = children(), local_pool(2)
    encoded = encoded_by(pool, PassageTask(HashedWords()), batches())
    texts, batch = next(encoded)
    assert (texts, read) == (["passage 0"], 6)
    np.testing.assert_array_equal(batch.rows, HashedWords().encode_passages(texts))
    encoded.close()
    pool.close()
    assert children() <= before


def test_what_a_worker_sends_is_believed_only_if_it_is_whole_and_of_the_texts():
    batch = EncodedBatch(np.ones((2, 3), np.float32), np.ones(2, np.uint32))
    sent = EncodedBlock.of(batch, ["a", "b"])
    block = WorkBlock(0, 0, ["a", "b"])
    assert block.fits(sent)
    assert not block.fits(EncodedBlock.of(batch, ["ab", ""]))
    other = EncodedBatch(np.full((2, 3), 2, np.float32), np.ones(2, np.uint32))
    assert not block.fits(EncodedBlock(other, sent.texts, sent.vectors))
    fewer = EncodedBatch(np.ones((1, 3), np.float32), np.ones(1, np.uint32))
    assert not block.fits(EncodedBlock.of(fewer, ["a", "b"]))


class Untrue(Worker):
    """A worker whose answers are made up, with checksums that fit them."""

    def __init__(self, told: object) -> None:
        self.told = told

    def ask(self, doing: str, task: PassageTask) -> Confirmed | Failure:
        return task.confirmed("here") if isinstance(self.told, dict) else self.told

    def do(self, doing: str, texts: list[str]) -> object:
        if "instead" in self.told:
            return self.told["instead"]
        made = {"rows": np.ones((len(texts), 32), np.float32), "counts": np.ones(len(texts), np.uint32), "n_cut": 0}
        return EncodedBlock.of(EncodedBatch(**made | self.told), texts)

    def close(self) -> None:
        """Nothing is open."""


UNTRUE: dict[str, object] = {
    "nothing": {"instead": None},
    "a task": {"instead": Confirmed("here", {})},
    "NaN": {"rows": np.full((2, 32), np.nan, np.float32)},
    "another dimension": {"rows": np.ones((2, 31), np.float32)},
    "one number": {"rows": np.float32(2)},
    "objects": {"rows": np.full((2, 32), None)},
    "text": {"rows": np.full((2, 32), "1")},
    "fewer rows": {"rows": np.ones((1, 32), np.float32)},
    "signed counts": {"counts": np.array([3, -1])},
    "more cut than there are": {"n_cut": 3},
    "fewer cut than none": {"n_cut": -1},
    "nothing for a task": None,
    "no facts": ["facts"],
}


@pytest.mark.parametrize("told", UNTRUE)
def test_what_a_worker_makes_up_is_not_believed_though_its_checksums_fit(told):
    pool = WorkerPool(lambda: Untrue(UNTRUE[told]), 1, "use others")
    task = PassageTask(HashedWords(32), 32)
    with pytest.raises(WorkerError, match=r"3 workers were lost .* a worker sent an unexpected answer"):
        list(encoded_by(pool, task, iter([["a", "b"]])))
    pool.close()


class Roomless(Worker):
    """A worker that finds no room, once the other one of two has been started as well."""

    def __init__(self, started: threading.Barrier) -> None:
        self._started = started

    def ask(self, doing: str, task: PassageTask) -> Confirmed | Failure:
        self._started.wait(300)
        raise NoRoomError("no core is free")

    def do(self, doing: str, work: object) -> object:
        raise AssertionError("asked without having taken up a task")

    def close(self) -> None:
        """Nothing is open."""


def test_the_last_two_workers_do_not_rely_on_each_other_where_both_find_no_room(monkeypatch):
    started, left = threading.Barrier(2), threading.Barrier(2)
    leave = _Call._give_up_worker

    def together(call: _Call, why: str) -> None:
        try:
            leave(call, why)
        finally:
            left.wait(300)

    monkeypatch.setattr(_Call, "_give_up_worker", together)
    pool, raised = WorkerPool(lambda: Roomless(started), 2, "free a core"), []

    def encode() -> None:
        try:
            list(encoded_by(pool, PassageTask(HashedWords()), iter([["a"], ["b"]])))
        except WorkerError as error:
            raised.append(str(error))

    encoding = threading.Thread(target=encode, daemon=True)
    encoding.start()
    encoding.join(300)
    assert raised == ["no worker is left: no core is free; free a core"]


SCRIPT = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
from hashed_words import items_of
from worker_encoders import Unlucky
from nlp_retrieval import FaissRetriever, Searcher
from nlp_retrieval.encoders import workers
from nlp_retrieval.retrievers import vectors

vectors._BATCH = 4
result = workers._Call.result
def shown(call, future):
    while {seconds} and len(call._pool.workers) < 2:
        time.sleep(0.01)
    print(*(worker._process.pid for worker in call._pool.workers.values()), flush=True)
    time.sleep({seconds})
    return result(call, future)
workers._Call.result = shown
encoder = Unlucky("nothing", "log", home=os.getpid())
report = Searcher([FaissRetriever(encoder)]).index(items_of([f"passage {{n}}" for n in range(30)]), sys.argv[1], workers=2)
print(report.built)
"""


def running(script: str, folder: Path) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(script)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "script.py", str(folder / "index")],
        cwd=folder,
        env=os.environ | threads_of(1) | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_script_needs_no_guard_around_what_it_does(tmp_path):
    with running(SCRIPT.format(seconds=0), tmp_path) as script:
        out, faults = script.communicate(timeout=300)
    assert (script.returncode, faults) == (0, "")
    assert out.splitlines()[-1] == "['faiss']"


@pytest.mark.parametrize("how", mostly_soaked(["kill", "interrupt"]))
def test_no_worker_outlives_the_process_that_asked_it(how, tmp_path):
    with running(SCRIPT.format(seconds=60), tmp_path) as script:
        assert script.stdout is not None
        workers = [int(pid) for pid in script.stdout.readline().split()]
        if how == "kill":
            script.kill()
        else:
            script.send_signal(2)
        script.wait(300)
        assert workers
        deadline = time.monotonic() + 300
        while any(Path(f"/proc/{pid}").exists() for pid in workers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
        if how == "interrupt":
            assert script.stderr is not None
            assert "KeyboardInterrupt" in script.stderr.read()
