"""Encoding the passages of an index: in batches that survive a killed build, in this process or by workers.

Every retriever that encodes its items does it here. A resumed build has the same batches as the build before: a model's vectors
depend on which texts are encoded together.

Workers are processes of one core each, on this machine or in a Ray cluster. A worker has no GPU, so that its results do not
depend on the number of workers, and keeps the models it has opened. A lost worker ends the call with an error, and the same
call goes on from the checkpoints; Ray does the blocks of a lost node again.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import platform
import signal
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from nlp_retrieval._version import __version__
from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.core.components.component import Component, Config, canonical_json, with_held
from nlp_retrieval.core.context import search_context
from nlp_retrieval.core.files.columns import Stream
from nlp_retrieval.core.index.build import EncodedBatch, resumed_batches
from nlp_retrieval.core.processes import FAULTS, Lock, kept_action, limit_cores, threads_of
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.encoders.base import (
    BaseEncoder,
    BaseSparseEncoder,
    BaseTokenEncoder,
    TermWeights,
    checked_terms,
    checked_tokens,
    checked_vectors,
    require_shape,
)
from nlp_retrieval.errors import ConfigurationError, DependencyError, RetrievalError, WorkerError, first_line, install

# Workers.

_AHEAD = 3
"""Blocks per worker that are out, or wait for an earlier one."""


class Task(Protocol):
    """A task that workers do block by block; it is sent with each block, and equal tasks are one."""

    def __hash__(self) -> int: ...

    def facts(self) -> dict[str, str]:
        """Return, by name, what must be the same wherever the task is done."""

    @property
    def do(self) -> Callable[[Any], Any]:
        """Does one block."""


class WorkerPool(ABC):
    """Workers, started with the first block."""

    n_workers: int

    def results(self, task: Task, works: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each block of work with its result, in order; blocks are read as workers become free."""
        facts, works = tuple(sorted(task.facts().items())), iter(works)
        waiting: deque[tuple[Any, Any]] = deque()
        while True:
            for work in islice(works, _AHEAD * self.n_workers - len(waiting)):
                waiting.append((work, self.submit(task, facts, work)))
            if not waiting:
                return
            oldest, answer = waiting.popleft()
            result = self.wait_for(answer)
            if isinstance(result, RetrievalError):
                raise result
            yield oldest, result

    @abstractmethod
    def submit(self, *what: Any) -> Any:
        """Let a worker call :func:`done`, and return at once."""

    @abstractmethod
    def wait_for(self, answer: Any) -> Any:
        """Wait for what :meth:`submit` returned."""

    @abstractmethod
    def close(self) -> None:
        """End all workers, even busy ones."""


def done(task: Task, facts: tuple[tuple[str, str], ...], work: Any) -> Any:
    """Do a block of a task in a worker, and return the result, or the error."""
    try:
        return _opened(task, facts).do(work)
    except RetrievalError as error:
        return error
    except Exception as error:  # any exception of a component; its class may be unknown to the process that asked
        return WorkerError(f"{_place()} failed: {type(error).__name__}: {first_line(error)}")


@lru_cache(maxsize=4)
def _opened(task: Task, facts: tuple[tuple[str, str], ...]) -> Task:
    """Return a task that is equal to this one and stays, with its models, once it has what the process that asked has."""
    limit_cores(1)
    DISPLAY.mode = "off"  # the process that asked reports
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # or all workers would put their models on the first GPU
    ours, theirs = task.facts(), dict(facts)
    for key in sorted(ours | theirs):
        if ours.get(key) != theirs.get(key):
            raise WorkerError(
                f"{_place()} has another {key} than the process that asked: {ours.get(key, 'none')} instead of "
                f"{theirs.get(key, 'none')}; install the same versions, models and code on all nodes"
            )
    return task


def _place() -> str:
    return f"worker process {os.getpid()} on {socket.gethostname()}"


class LocalPool(WorkerPool):
    """Processes of this machine, started as new ones and never forked: torch and FAISS do not survive a fork."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._executor = ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn"), _begin)

    def submit(self, *what: Any) -> Future[Any]:
        ForkingPickler.dumps(what[0])  # what cannot be sent is refused here, and not in a thread of the pool
        with _all_there(), _of_one_thread():  # any block may start one more process
            return self._executor.submit(done, *what)

    def wait_for(self, answer: Future[Any]) -> Any:
        with _all_there():
            return answer.result()

    def close(self) -> None:
        for process in list((self._executor._processes or {}).values()):
            process.kill()
        self._executor.shutdown(cancel_futures=True)


@contextmanager
def _all_there() -> Iterator[None]:
    try:
        yield
    except (BrokenProcessPool, OSError) as error:  # an OSError would be taken for one of the index folder
        raise WorkerError(
            f"a worker process was not started, or ended before its work was done ({first_line(error)}); the same call goes on "
            'from there. If memory ran out, use fewer workers. A script that starts workers needs if __name__ == "__main__": '
            "around what it does"
        ) from None


_environment_lock = Lock()


@contextmanager
def _of_one_thread() -> Iterator[None]:
    """Start processes with variables that libraries read as they are imported."""
    variables = threads_of(1)
    with _environment_lock:
        before = {name: os.environ[name] for name in variables if name in os.environ}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name in variables:
                os.environ.pop(name)
            os.environ.update(before)


def _begin() -> None:
    """End with the parent, and leave Ctrl-C to it."""

    def end_with(parent: Any) -> None:
        parent.join()
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=[multiprocessing.parent_process()], daemon=True).start()


class ClusterPool(WorkerPool):
    """Workers of a Ray cluster; every block is a task of Ray's."""

    def __init__(self, address: str) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise Ray reports usage to its makers
        try:
            import ray
        except ImportError as error:
            raise DependencyError(f"a cluster needs ray ({error}): {install('ray')}") from error
        host, _, port = address.rpartition(":")
        if address != "auto" and (not host or "://" in address or not port.isdecimal()):
            raise ConfigurationError(f"ray={address!r}: pass 'auto', or host:port on a machine of the cluster: '10.0.0.5:6379'")
        self._ray: Any = ray
        self._connected_here = not ray.is_initialized()
        try:
            if self._connected_here and address != "auto":  # or Ray would try for minutes, and then end this process
                socket.create_connection((host, int(port)), 5.0).close()
            if self._connected_here:
                with _handlers_kept():
                    self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # a RuntimeError for other versions, and undocumented exceptions
            raise WorkerError(
                f"the Ray cluster at {address} cannot be used ({first_line(error)}); start one with 'ray start --head'"
            ) from error
        self.n_workers = int(self._ray.cluster_resources().get("CPU", 0))
        if self.n_workers < 1:
            self.close()
            raise WorkerError(f"the Ray cluster at {address} has no core for a worker; start a node with --num-cpus")
        self._done = self._ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(done)

    def submit(self, *what: Any) -> Any:
        return self._done.remote(*what)

    def wait_for(self, answer: Any) -> Any:
        try:
            return self._ray.get(answer)
        except Exception as error:  # of Ray: errors of a task are results
            raise WorkerError(
                f"the Ray cluster did not finish a block ({first_line(error)}); see 'ray status', and call again"
            ) from None

    def close(self) -> None:
        if self._connected_here:
            with _handlers_kept():
                self._ray.shutdown()


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep what this process does at signals that end it, which Ray changes without Python's knowledge."""
    with ExitStack() as at_end:
        for number in (*FAULTS, signal.SIGABRT, signal.SIGTERM):
            at_end.callback(kept_action(number))
        yield


def pool_at_hand() -> WorkerPool | None:
    """Return the workers of the current call; None if it encodes in this process."""
    workers = search_context().workers
    if workers is None:
        return None
    return cast(WorkerPool, workers.pool(lambda wanted: ClusterPool(wanted.ray) if wanted.ray else LocalPool(wanted.n or 1)))


def names_gpu(component: Component) -> bool:
    """Return whether a component or a part of it is set to compute on another device than a CPU, which workers do not have."""
    devices = [getattr(part, "device", None) for part in with_held(component)]
    return any(device is not None and not str(device).startswith("cpu") for device in devices)


# The task of encoding.

_COMPUTING = ("numpy", "sentence-transformers", "tokenizers", "torch", "transformers", "onnxruntime", "model2vec")
_ROUNDING = frozenset({"batch_size", "device"})
"""Parameters that are no part of an index, and yet decide the last bits of vectors."""


@dataclass(frozen=True)
class PassageTask:
    """Encodes batches of passages, and checks the result."""

    encoder: BaseEncoder | BaseTokenEncoder | BaseSparseEncoder
    dimension: int | None = None  # required of vectors
    digest: str | None = None  # of the matrix that the encoder multiplies by

    def do(self, texts: list[str]) -> EncodedBatch:
        """Encode one batch."""
        match self.encoder:
            case BaseTokenEncoder() as encoder:
                matrices = checked_tokens(encoder.encode_passages(texts), texts, encoder)
                counts = np.array([len(matrix) for matrix in matrices], np.uint32)
                rows = np.concatenate([*matrices, np.zeros((0, encoder.dimension), np.float32)])
            case BaseSparseEncoder() as encoder:
                offsets, terms, weights = checked_terms(encoder.encode_passages(texts), texts, encoder)
                counts = np.diff(offsets).astype(np.uint32)
                rows = np.stack([terms.astype(np.float32), weights], axis=1)
            case BaseEncoder() as encoder:
                rows = checked_vectors(encoder.encode_passages(texts), texts, encoder, self.dimension)
                counts = np.ones(len(texts), np.uint32)
        return EncodedBatch(rows, counts, self.encoder.cut_passages(texts))

    def facts(self) -> dict[str, str]:
        """Return versions and the identity of the model, which is not opened."""
        versions = {f"version of {name}": number for name, number in _computed_by().items()}
        identity = {f"encoder.{key}": canonical_json(value) for key, value in self.encoder.identity.items()}
        return versions | {"version of nlp_retrieval": __version__} | identity


@cache
def _computed_by() -> dict[str, str]:
    """Versions of the packages that compute vectors."""
    versions = {"machine": platform.machine()}
    for package in _COMPUTING:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


def _encoded(
    task: PassageTask, pool: WorkerPool | None, batches: Iterator[list[str]]
) -> Iterator[tuple[list[str], EncodedBatch]]:
    """Encode batches, and yield each with its texts, in order."""
    if pool is None:
        for texts in batches:
            yield texts, task.do(texts)
        return
    for part in with_held(task.encoder):
        if type(part).__module__ == "__main__" or "<locals>" in type(part).__qualname__:
            raise ConfigurationError(
                f"workers cannot import {type(part).__qualname__}, which is defined in a script, notebook or function; move it "
                "into a module"
            )
    yield from pool.results(task, batches)


# Passages of an index.


def write_passages(
    encoder: BaseEncoder,
    batches: Iterator[list[str]],
    n_passages: int,
    path: Path,
    dimension: int | None = None,
    part: str = "",
) -> tuple[int | None, int]:
    """Encode passages into a ``.npy`` file, ``[passages, dimension]`` float32, a batch in memory at a time.

    Args:
        encoder: of the passages.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: number of passages in them; without any, no file is written.
        path: of the file.
        dimension: required of the vectors; None for any.
        part: of the segment, if these are not its passages.

    Returns:
        The dimension, None without any passage; and how many passages are longer than the encoder reads.

    Raises:
        ModelError: vectors that cannot be searched, or two batches of different dimensions.

    Examples:
        >>> encoder = StaticEncoder("minishlab/potion-base-8M")
        >>> write_passages(encoder, iter([["It hunts."]]), 1, Path("vectors.npy"))  # doctest: +SKIP
    """
    n_cut, stream = 0, None
    with ExitStack() as opened:
        for batch in _resumed(PassageTask(encoder, dimension), batches, n_passages, part):
            require_shape(batch.rows, len(batch.counts), encoder, dimension)
            if stream is None:
                dimension = batch.rows.shape[1]
                stream = opened.enter_context(Stream(path, np.float32, dimension))
            stream.write(batch.rows)
            n_cut += batch.n_cut
    return dimension, n_cut


def encoded_tokens(encoder: BaseTokenEncoder, batches: Iterator[list[str]], n_passages: int) -> Iterator[EncodedBatch]:
    """Encode passages token by token, and yield ``[tokens, dimension]`` of each batch, float32 or float16."""
    matrix = encoder.projection_matrix()
    digest = None if matrix is None else hashlib.sha256(np.ascontiguousarray(matrix).data).hexdigest()
    return _resumed(PassageTask(encoder, digest=digest), batches, n_passages, dtype=np.float16)


def encoded_terms(
    encoder: BaseSparseEncoder, batches: Iterator[list[str]], n_passages: int
) -> Iterator[tuple[TermWeights, int]]:
    """Encode passages, and yield the weights of each batch, and how many of it are longer than the encoder reads."""
    for batch in _resumed(PassageTask(encoder), batches, n_passages):
        terms, weights = batch.rows.T
        weighed = TermWeights(offsets_of(batch.counts.astype(np.int64)), terms.astype(np.int32), weights)
        yield checked_terms(weighed, [""] * len(batch.counts), encoder), batch.n_cut  # it may be a checkpoint's


def _resumed(
    task: PassageTask,
    batches: Iterator[list[str]],
    n_passages: int,
    part: str = "",
    dtype: type[np.floating] = np.float32,
) -> Iterator[EncodedBatch]:
    """Encode batches, or find them in checkpoints, which are named by what decides the vectors down to their last bits."""
    encoder, first = task.encoder, next(batches, [])
    all_batches = chain([first] if first else [], batches)
    if len(first) >= n_passages:  # a checkpoint of a single batch would be written only when it is done
        return map(task.do, all_batches)
    pool = pool_at_hand() if encoder.in_workers and not names_gpu(encoder) else None
    kinds = {BaseTokenEncoder: "tokens", BaseSparseEncoder: "terms"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(encoder, cls)), "vectors")
    rounding = {key: value for key, value in encoder.config.items() if key in _ROUNDING}
    settings: Config = {"encoder": encoder.identity, "kind": kind, "rounding": rounding, "projection_matrix": task.digest}
    settings |= {"computed_by": _computed_by(), "part": part}
    return resumed_batches(settings, all_batches, partial(_encoded, task, pool), dtype)
