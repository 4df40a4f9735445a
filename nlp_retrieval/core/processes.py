"""This process: its cores, threads and signals, and what a fork leaves of them."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from signal import SIGBUS, SIGFPE, SIGILL, SIGSEGV
from typing import TypeVar
from weakref import WeakSet

from nlp_retrieval.errors import ForkError

Part = TypeVar("Part")
Result = TypeVar("Result")

FAULTS = (SIGSEGV, SIGBUS, SIGILL, SIGFPE)
"""Signals of a fault of the processor."""

_SETTERS = {"faiss": "omp_set_num_threads", "torch": "set_num_threads"}

_NUMBERS = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    *("NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS"),
)

_most: int | None = None


def usable_cores() -> int:
    """Return how many cores this process may use: fewer than the machine has if a container, ``taskset`` or a limit says so."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_cores if _most is None else min(n_cores, _most)


def limit_cores(n: int) -> None:
    """Limit this process to this many cores from now on, including for modules imported later."""
    global _most  # noqa: PLW0603 -- it is the process that is limited
    _most = n
    os.environ.update(threads_of(n))
    set_threads(n, _SETTERS)


def set_threads(n: int, packages: Collection[str]) -> None:
    """Limit FAISS and torch to this many threads if they are among the packages and already imported."""
    for name, setter in _SETTERS.items():
        set_number = getattr(sys.modules.get(name), setter, None) if name in packages else None
        if set_number is not None:
            set_number(n)


def threads_of(n: int) -> dict[str, str]:
    """The environment in which native libraries start no more than ``n`` threads."""
    return dict.fromkeys(_NUMBERS, str(n)) | {"TOKENIZERS_PARALLELISM": "false"}


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Return the results of parts of one task, computed in shared threads; a few are queued at a time, for others' sake."""
    if len(parts) <= 1:
        return list(map(work, parts))
    threads, most = _shared_threads(os.getpid()), 2 * usable_cores()
    begun: list[Future[Result]] = []
    try:
        for number, part in enumerate(parts):
            if number >= most:
                begun[number - most].result()
            begun.append(threads.submit(work, part))
        return [future.result() for future in begun]
    finally:
        for future in begun:
            future.cancel()


@cache
def _shared_threads(process: int) -> ThreadPoolExecutor:
    """One thread for each core; a forked child does not inherit its parent's."""
    del process
    return ThreadPoolExecutor(usable_cores(), "nlp_retrieval-search")


def kept_action(number: int) -> Callable[[], object]:
    """Return a function that restores what this process does now at a signal: libraries change it unknown to Python."""
    sigaction, action = ctypes.CDLL(None).sigaction, ctypes.create_string_buffer(512)  # more bytes than the struct has
    sigaction(number, None, action)
    return partial(sigaction, number, action, None)


_inherited: frozenset[str] = frozenset()


class Lock:
    """A reentrant lock, free in a forked child even if another thread held it: its data must be valid at every moment.

    Examples:
        >>> lock = Lock()
        >>> with lock:
        ...     shared = {"opened": 1}
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_locks: WeakSet[Lock] = WeakSet()


def inherited(module: str) -> bool:
    """Return whether this process was forked from one that had imported a module."""
    return module in _inherited


def use_one_thread_after_fork() -> None:
    """In a forked child, make FAISS and torch compute in the calling thread, if they were imported before the fork."""
    if _inherited:
        set_threads(1, _inherited)


def forked(what: str, process: int | None = None) -> ForkError:
    """Return the error for something that does not survive a fork."""
    return ForkError(
        f"{what} was opened in process {process or os.getppid()} and does not survive its fork into process {os.getpid()}: "
        "start processes by the methods 'spawn' or 'forkserver' of multiprocessing, or open it in the children and not in the "
        "process that forks"
    )


def _begin_child() -> None:
    global _inherited  # noqa: PLW0603 -- a process is forked once
    _inherited = frozenset(sys.modules)
    for lock in _locks:  # one that is held by a thread that does not exist in this process
        if lock._lock.acquire(blocking=False):
            lock._lock.release()
        else:
            lock._lock = threading.RLock()


os.register_at_fork(after_in_child=_begin_child)
