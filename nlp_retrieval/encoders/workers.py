"""Workers: processes of one core each, on this machine or in a Ray cluster, that do the blocks of a task in order.

A worker has no GPU, so that its results do not depend on the number of workers, and keeps the models it has opened. The first
worker that is lost ends the call with an error; what was done by then is in a checkpoint, and the same call goes on from there.
Ray does the blocks of a lost node again by itself (Moritz et al., OSDI 2018, https://arxiv.org/abs/1712.05889).
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import threading
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache, lru_cache
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

from nlp_retrieval.core.context import Workers
from nlp_retrieval.core.processes import Lock, limit_cores, threads_of
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.errors import (
    ConfigurationError,
    DependencyError,
    RetrievalError,
    RetrievalWarning,
    WorkerError,
    first_line,
    install,
)

_AHEAD = 3
"""Blocks per worker that are out, or wait for an earlier one."""

_REACHED_SECONDS = 5.0


class Task(Protocol):
    """A task that workers do block by block; sent to them with each block."""

    def __hash__(self) -> int:
        """Be equal to the same task, sent before."""

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
        for work in works:
            waiting.append((work, self.submit(task, facts, work)))
            if len(waiting) == _AHEAD * self.n_workers:
                yield self._oldest(waiting)
        while waiting:
            yield self._oldest(waiting)

    def _oldest(self, waiting: deque[tuple[Any, Any]]) -> tuple[Any, Any]:
        work, answer = waiting.popleft()
        result, messages = self.wait_for(answer)
        for message in messages:
            warnings.warn(message, RetrievalWarning, stacklevel=3)
        if isinstance(result, RetrievalError):
            raise result
        return work, result

    @abstractmethod
    def submit(self, *what: Any) -> Any:
        """Let a worker call :func:`done`, and return at once."""

    @abstractmethod
    def wait_for(self, answer: Any) -> tuple[Any, list[str]]:
        """Wait for what :meth:`submit` returned."""

    @abstractmethod
    def close(self) -> None:
        """End all workers, even busy ones."""


# Inside a worker.


def done(task: Task, facts: tuple[tuple[str, str], ...], work: Any) -> tuple[Any, list[str]]:
    """Do a block of a task, and return the result, or the error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RetrievalWarning)
        try:
            result = _opened(task, facts).do(work)
        except RetrievalError as error:
            result = error
        except Exception as error:  # any exception of a component; its class may be unknown to the process that asked
            result = WorkerError(f"{_place()} failed: {type(error).__name__}: {first_line(error)}")
    return result, [str(warning.message) for warning in caught if issubclass(warning.category, RetrievalWarning)]


@lru_cache(maxsize=4)
def _opened(task: Task, facts: tuple[tuple[str, str], ...]) -> Task:
    """Return a task that is equal to this one and stays, with its models, once it has what the process that asked has."""
    _settle()
    ours, theirs = task.facts(), dict(facts)
    for key in sorted(ours | theirs):
        if ours.get(key) != theirs.get(key):
            raise WorkerError(
                f"{_place()} has another {key} than the process that asked: {ours.get(key, 'none')} instead of "
                f"{theirs.get(key, 'none')}; install the same versions, models and code on all nodes"
            )
    return task


@cache
def _settle() -> None:
    limit_cores(1)
    DISPLAY.mode = "off"  # the process that asked reports
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # or all workers would put their models on the first GPU


def _place() -> str:
    return f"worker process {os.getpid()} on {socket.gethostname()}"


# Processes of this machine, started as new ones and never forked: torch and FAISS do not survive a fork.


class LocalPool(WorkerPool):
    """Processes of this machine."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self._executor = ProcessPoolExecutor(n_workers, multiprocessing.get_context("spawn"), _begin)

    def submit(self, *what: Any) -> Future[tuple[Any, list[str]]]:
        ForkingPickler.dumps(what[0])  # what cannot be sent is refused here, and not in a thread of the pool
        try:
            with _environment(threads_of(1) | {"CUDA_VISIBLE_DEVICES": ""}):  # any block may start one more process
                return self._executor.submit(done, *what)
        except OSError as error:  # a build would take it for a file of the index folder
            raise WorkerError(
                f"worker processes cannot be started: {error.strerror or error}; use fewer workers, or allow this user more "
                "processes, open files and memory (see ulimit -a)"
            ) from error
        except BrokenProcessPool:
            raise _lost() from None

    def wait_for(self, answer: Future[tuple[Any, list[str]]]) -> tuple[Any, list[str]]:
        try:
            return answer.result()
        except BrokenProcessPool:
            raise _lost() from None

    def close(self) -> None:
        for process in list((self._executor._processes or {}).values()):
            process.kill()
        self._executor.shutdown(cancel_futures=True)


def _lost() -> WorkerError:
    return WorkerError(
        "a worker process ended before its work was done; the same call goes on from what was done. If the system killed it "
        "for memory, use fewer workers, or an encoder with a smaller batch_size. A script that starts workers needs "
        'if __name__ == "__main__": around what it does'
    )


def _begin() -> None:
    """End with the parent, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


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


# The nodes of a Ray cluster. Every block is a task of Ray's, which does it again if its node is lost.


class ClusterPool(WorkerPool):
    """Workers of a Ray cluster."""

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
        elif address not in ("auto", connected := ray.get_runtime_context().gcs_address):
            raise WorkerError(f"this process is connected to the Ray cluster at {connected} already; call ray.shutdown() first")
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

    def wait_for(self, answer: Any) -> tuple[Any, list[str]]:
        try:
            result: tuple[Any, list[str]] = self._ray.get(answer)
        except Exception as error:  # of Ray: errors of a task are results
            reason = " ".join(str(error).split())[:300]
            raise WorkerError(f"the Ray cluster did not finish a block ({reason}); see 'ray status', and call again") from None
        return result

    def close(self) -> None:
        if self._connected_here:
            with handlers_kept():
                self._ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    host, _, port = address.rpartition(":")
    if address != "auto" and (not host or "://" in address or not port.isdecimal() or int(port) > 65535):
        raise ConfigurationError(
            f"ray={address!r}: pass 'auto', or host:port on a machine of the cluster, such as '10.0.0.5:6379'; Ray's client "
            "(ray://) is not supported"
        )
    try:
        if address != "auto":  # or Ray itself would try for minutes, and then end this process
            socket.create_connection((host, int(port)), _REACHED_SECONDS).close()
        with handlers_kept():
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (OSError, ConnectionError) as error:
        raise WorkerError(
            f"there is no Ray cluster at {address} ({first_line(error)}); start one with 'ray start --head', or check it"
        ) from None
    except Exception as error:  # a RuntimeError for other versions, and undocumented exceptions
        raise WorkerError(f"the Ray cluster at {address} cannot be used: {' '.join(str(error).split())}") from error


_SIGNALS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT, signal.SIGTERM)
_LARGEST_ACTION = 512
"""Bytes, more than a ``struct sigaction`` has on any platform."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the handlers of signals that end a process: Ray replaces them, and Java, which Lucene runs in, needs its own."""
    library = ctypes.CDLL(None)
    handlers = {number: ctypes.create_string_buffer(_LARGEST_ACTION) for number in _SIGNALS}
    saved = [number for number, handler in handlers.items() if library.sigaction(int(number), None, handler) == 0]
    try:
        yield
    finally:
        for number in saved:
            library.sigaction(int(number), handlers[number], None)


def pool_of(wanted: Workers) -> WorkerPool:
    """Return the workers that a call asks for."""
    return LocalPool(wanted.n or 1) if wanted.ray is None else ClusterPool(wanted.ray, wanted.n)
