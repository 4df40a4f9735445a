"""Passages encoded by processes of this machine: the bytes of one process, and an index that goes on where one was lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hashed_tokens import HashedTokens
from hashed_words import HashedWords, items_of
from worker_encoders import Placed, Projecting, Unlucky

from nlp_retrieval import ColbertRetriever, FaissRetriever, Searcher
from nlp_retrieval.core.processes import threads_of
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


def workers_of(process: int) -> list[int]:
    """The worker processes that another process has started."""
    try:
        pids = [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
        return [pid for pid in pids if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    except OSError:
        return []


@pytest.mark.parametrize("retriever", [FaissRetriever(HashedWords()), ColbertRetriever(HashedTokens())], ids=lambda r: r.name)
def test_several_processes_make_the_bytes_of_one(retriever, tmp_path):
    for name, workers in (("one", None), ("several", 2)):
        Searcher([retriever]).index(items_of(TEXTS), tmp_path / name, workers=workers)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "several")


def test_workers_multiply_by_the_projection_of_the_index(tmp_path):
    retriever = ColbertRetriever(Projecting(24), bits=None)
    Searcher([retriever]).index(items_of(TEXTS), tmp_path / "projected", workers=2)
    plain = ColbertRetriever(HashedTokens(24), bits=None)
    Searcher([plain]).index(items_of(TEXTS), tmp_path / "plain")
    found, expected = (
        [[hit.score for hit in hits] for hits in one.retrieve([["passage of rivers"]], tmp_path / name, 5)]
        for one, name in ((retriever, "projected"), (plain, "plain"))
    )
    np.testing.assert_allclose(found, expected, atol=2e-3)  # the matrix is orthogonal


def test_the_same_call_goes_on_after_a_lost_worker(tmp_path):
    before = children()
    searcher = Searcher([FaissRetriever(Unlucky("killed", str(tmp_path / "log"), home=os.getpid()))])
    with pytest.raises(WorkerError, match=r"ended before its work was done .*; the same call goes on .* fewer workers"):
        searcher.index(items_of(SUDDEN), tmp_path / "index", workers=2)
    assert children() - before <= resource_tracker()
    searcher.index(items_of(SUDDEN), tmp_path / "index", workers=2)
    searcher.index(items_of(SUDDEN), tmp_path / "alone")
    assert files_of(tmp_path / "index") == files_of(tmp_path / "alone")


def resource_tracker() -> set[int]:
    """The process of multiprocessing that stays."""
    return {pid for pid in children() if b"resource_tracker" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.mark.parametrize(
    ("what", "error", "message"),
    [
        ("raises", WorkerError, r"^worker process \d+ on \S+ failed: RuntimeError: the weights are gone$"),
        ("refuses", ModelError, r"gave NaN, infinity .* for 4 of 4 texts \(the first: 'passage 12 of"),
        ("other_model", WorkerError, r"has another encoder.model_fingerprint than .* of a worker.* on all nodes"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_told_in_one_line(what, error, message, tmp_path):
    encoder = Unlucky(what, str(tmp_path / "log"), home=os.getpid())
    with pytest.raises(error, match=message) as raised:
        Searcher([FaissRetriever(encoder)]).index(items_of(SUDDEN), tmp_path / "index", workers=2)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "index" / "manifest.json").exists()


def test_an_encoder_that_no_other_process_can_import_is_refused(tmp_path):
    class Here(HashedWords):
        name = "here"

    with pytest.raises(ConfigurationError, match=r"workers cannot import .*Here, which is defined in .* move it into a module"):
        Searcher([FaissRetriever(Here())]).index(items_of(TEXTS), tmp_path / "index", workers=2)


def test_an_encoder_that_holds_a_secret_is_not_sent(tmp_path):
    searcher = Searcher([FaissRetriever(HashedWords(api_key="sk-abcdefghijklmnopqrstuvwxyz123456"))])
    with pytest.raises(ConfigurationError, match=r"api_key holds what looks like a secret, and is not pickled"):
        searcher.index(items_of(TEXTS), tmp_path / "index", workers=2)


@pytest.mark.parametrize(("device", "here"), [(None, False), ("cpu", False), ("cuda:1", True)])
def test_an_encoder_that_names_a_gpu_encodes_in_this_process(device, here, tmp_path):
    Searcher([FaissRetriever(Placed(device, str(tmp_path / "log")))]).index(items_of(TEXTS), tmp_path / "index", workers=2)
    assert (set((tmp_path / "log").read_text().split()) == {str(os.getpid())}) == here


SCRIPT = """
import sys
from hashed_words import items_of
from worker_encoders import Unlucky
from nlp_retrieval import FaissRetriever, Searcher
from nlp_retrieval.retrievers import vectors

vectors._BATCH = 4
def main():
    encoder = Unlucky("waits", "log", home=-1)
    items = items_of([f"passage {n} now" for n in range(30)])
    Searcher([FaissRetriever(encoder)]).index(items, sys.argv[1], workers=2)
if __name__ == "__main__": main()
"""


def running(folder: Path) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(SCRIPT)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "script.py", str(folder / "index")],
        cwd=folder,
        env=os.environ | threads_of(1) | {"PYTHONPATH": paths},
        text=True,
    )


def test_no_worker_outlives_the_process_that_asked_it(tmp_path):
    with running(tmp_path) as script:
        while not (tmp_path / "log").exists():
            time.sleep(0.05)
        workers = workers_of(script.pid)
        script.kill()
        script.wait(300)
        assert workers
        while any(Path(f"/proc/{pid}").exists() for pid in workers):
            time.sleep(0.05)
