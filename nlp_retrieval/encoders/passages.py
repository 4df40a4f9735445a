"""Encoding the passages of an index: in batches that survive a killed build, in this process or by workers.

Every retriever that encodes its items does it here, so that all encoders are checked and resumed alike, and retrievers that are
built together encode shared passages once. A resumed build has the same batches as the build before: a model's vectors depend
on which texts are encoded together.

Workers are processes of one core each, on this machine or in a Ray cluster. A worker has no GPU, so that its results do not
depend on the number of workers, and keeps the models it has opened. The first worker that is lost ends the call with an error;
what was done by then is in a checkpoint, and the same call goes on from there. Ray does the blocks of a lost node again.
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
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from nlp_retrieval._version import __version__
from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.core.components.component import Component, Config, canonical_json, with_held
from nlp_retrieval.core.context import Workers, search_context
from nlp_retrieval.core.files.columns import Stream
from nlp_retrieval.core.index.build import EncodedBatch, resumed_batches
from nlp_retrieval.core.processes import FAULTS, Lock, limit_cores, set_signal_actions, signal_actions, threads_of
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.encoders.base import (
    BaseEncoder,
    BaseSparseEncoder,
    BaseTokenEncoder,
    TermWeights,
    Vectors,
    checked_terms,
    checked_tokens,
    checked_vectors,
    require_shape,
)
from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    RetrievalError,
    WorkerError,
    first_line,
    install,
)

# Workers.

_AHEAD = 3
"""Blocks per worker that are out, or wait for an earlier one."""

_REACHED_SECONDS = 5.0


class Task(Protocol):
    """A task that workers do block by block; it is sent with each block, and equal tasks are one."""

    def __hash__(self) -> int:
        """Be that of the same task, sent before."""

    def facts(self) -> dict[str, str]:
        """Return, by name, what must be the same wherever the task is done."""

    @property
    def do(self) -> Callable[[Any], Any]:
        """Does one block."""


class WorkerPool(ABC):
    """Workers, started with the first block."""

    n_workers: int

    def results(self, task: Task, works: Iterable[Any]) -> Generator[tuple[Any, Any], None, None]:
        """Yield each block of work with its result, in order; blocks are read as workers become free."""
        facts = tuple(sorted(task.facts().items()))
        waiting: deque[tuple[Any, Any]] = deque()
        for work in chain(works, [None]):
            if work is not None:
                waiting.append((work, self.submit(task, facts, work)))
            while waiting and (work is None or len(waiting) == _AHEAD * self.n_workers):
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
        with _all_there(), _environment(threads_of(1)):  # any block may start one more process
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
            "from what was done. If the system killed it for memory, use fewer workers, or a smaller batch_size. A script that "
            'starts workers needs if __name__ == "__main__": around what it does'
        ) from None


_environment_lock = Lock()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Start processes with these variables, which libraries read as they are imported."""
    with _environment_lock:
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                os.environ.update({} if value is None else {name: value})


def _begin() -> None:
    """End with the parent, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class ClusterPool(WorkerPool):
    """Workers of a Ray cluster; every block is a task of Ray's."""

    def __init__(self, address: str, n_workers: int | None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise Ray reports usage to its makers
        try:
            import ray
        except ImportError as error:
            raise DependencyError(f"a cluster needs ray ({error}): {install('ray')}") from error
        self._ray = ray
        self._connected_here = not ray.is_initialized()
        if self._connected_here:
            _connect(ray, address)
        n_cores = int(ray.cluster_resources().get("CPU", 0))  # type: ignore[no-untyped-call]
        if n_cores < 1:
            self.close()
            raise WorkerError(f"the Ray cluster at {address} has no core for a worker; start a node with --num-cpus")
        self.n_workers = min(n_workers or n_cores, n_cores)
        self._done = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(done)
        self._running: deque[Any] = deque()

    def submit(self, *what: Any) -> Any:
        if len(self._running) == self.n_workers:  # more tasks would take more cores
            _, running = self._ray.wait(list(self._running), num_returns=1)
            self._running = deque(running)
        self._running.append(self._done.remote(*what))
        return self._running[-1]

    def wait_for(self, answer: Any) -> Any:
        try:
            return self._ray.get(answer)
        except Exception as error:  # of Ray: errors of a task are results
            reason = " ".join(str(error).split())[:300]
            raise WorkerError(f"the Ray cluster did not finish a block ({reason}); see 'ray status', and call again") from None

    def close(self) -> None:
        if self._connected_here:
            with _handlers_kept():
                self._ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    host, _, port = address.rpartition(":")
    if address != "auto" and (not host or "://" in address or not port.isdecimal()):
        raise ConfigurationError(f"ray={address!r}: pass 'auto', or host:port on a machine of the cluster: '10.0.0.5:6379'")
    try:
        if address != "auto":  # or Ray itself would try for minutes, and then end this process
            socket.create_connection((host, int(port)), _REACHED_SECONDS).close()
        with _handlers_kept():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # a RuntimeError for other versions, and undocumented exceptions
        raise WorkerError(
            f"the Ray cluster at {address} cannot be used ({' '.join(str(error).split())}); start one with 'ray start --head'"
        ) from error


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Restore the handlers of signals that end a process, which Ray replaces."""
    actions = signal_actions((*FAULTS, signal.SIGABRT, signal.SIGTERM))
    try:
        yield
    finally:
        set_signal_actions(actions)


def pool_at_hand() -> WorkerPool | None:
    """Return the workers of the current call, started with its first blocks; None if it encodes in this process."""
    workers = search_context().workers
    return None if workers is None else cast(WorkerPool, workers.pool(_pool_of))


def _pool_of(wanted: Workers) -> WorkerPool:
    return LocalPool(wanted.n or 1) if wanted.ray is None else ClusterPool(wanted.ray, wanted.n)


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
    """Encodes batches of passages, and checks the result: vectors of a dimension, or tokens after a projection, if given."""

    encoder: BaseEncoder | BaseTokenEncoder | BaseSparseEncoder
    dimension: int | None = None
    digest: str | None = None
    """Of the projection: tasks that differ only there are two."""
    projection: Vectors | None = field(default=None, compare=False)

    def do(self, texts: list[str]) -> EncodedBatch:
        """Encode one batch."""
        match self._opened:
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
        return EncodedBatch(rows, counts, self._opened.cut_passages(texts))

    @cached_property
    def _opened(self) -> BaseEncoder | BaseTokenEncoder | BaseSparseEncoder:
        if isinstance(self.encoder, BaseTokenEncoder) and self.projection is not None:
            return self.encoder.with_projection(self.projection)
        return self.encoder

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


Encoded = Generator[tuple[list[str], EncodedBatch], None, None]


def encoded_by(pool: WorkerPool, task: PassageTask, batches: Iterator[list[str]]) -> Encoded:
    """Let workers encode batches, and yield each with its texts, in order."""
    for part in with_held(task.encoder):
        if type(part).__module__ == "__main__" or "<locals>" in type(part).__qualname__:
            raise ConfigurationError(
                f"workers cannot import {type(part).__qualname__}, which is defined in the script or notebook that runs, "
                "or in a function; move it into a module"
            )
    with closing(pool.results(task, batches)) as results:
        yield from results


def encoded_here(task: PassageTask, batches: Iterator[list[str]]) -> Encoded:
    """Encode batches in this process, and yield each with its texts."""
    for texts in batches:
        yield texts, task.do(texts)


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
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: number of passages in them; without any, no file is written.
        path: path of the file.
        dimension: required of the vectors; None for any.
        part: the part of the segment that they are, if not its passages.

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
        for batch in _resumed(PassageTask(encoder, dimension), part, batches, n_passages, np.float32):
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
    return _resumed(PassageTask(encoder, encoder.dimension, digest, matrix), "", batches, n_passages, np.float16)


def encoded_terms(
    encoder: BaseSparseEncoder, batches: Iterator[list[str]], n_passages: int
) -> Iterator[tuple[TermWeights, int]]:
    """Encode passages, and yield the weights of each batch, and how many of it are longer than the encoder reads."""
    for batch in _resumed(PassageTask(encoder, 2), "", batches, n_passages, np.float32):
        terms, weights = batch.rows.T
        weighed = TermWeights(offsets_of(batch.counts.astype(np.int64)), terms.astype(np.int32), weights)
        yield checked_terms(weighed, [""] * len(batch.counts), encoder), batch.n_cut  # it may be a checkpoint's


def _resumed(
    task: PassageTask, part: str, batches: Iterator[list[str]], n_passages: int, dtype: type[np.floating]
) -> Iterator[EncodedBatch]:
    """A single batch is encoded here without a checkpoint, which would be written only when it is done."""
    first = next(batches, [])
    all_batches = chain([first] if first else [], batches)
    if len(first) >= n_passages:
        return (batch for _, batch in encoded_here(task, all_batches))
    pool = pool_at_hand() if task.encoder.in_workers and not names_gpu(task.encoder) else None
    encode = partial(encoded_here, task) if pool is None else partial(encoded_by, pool, task)
    return resumed_batches(_settings_of(task) | {"part": part}, all_batches, encode, dtype)


def _settings_of(task: PassageTask) -> Config:
    """What decides the vectors, down to their last bits."""
    encoder = task.encoder
    kinds = {BaseTokenEncoder: "tokens", BaseSparseEncoder: "terms"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(encoder, cls)), "vectors")
    rounding = {key: value for key, value in encoder.config.items() if key in _ROUNDING}
    settings = {"encoder": encoder.identity, "kind": kind, "rounding": rounding, "projection_matrix": task.digest}
    return settings | {"computed_by": _computed_by()}
