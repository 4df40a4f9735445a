"""Safe use of locks, threads and native libraries in a forked process.

A child has one thread, the one that forked; the work of the parent's other threads is never finished there.
Therefore

- locks of this package that they held are free in the child (:class:`Lock`);
- pools of native threads are gone, and OpenMP (FAISS, torch on the CPU) would wait for them forever, so a child computes
  in one thread (:func:`use_one_thread_after_fork`);
- anything that cannot be used at all (Java, a model on a GPU) is refused with a :class:`ForkError` (:func:`forked`).
"""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from weakref import WeakSet

from nlp_retrieval.core.cores import set_threads
from nlp_retrieval.errors import ForkError

_inherited: frozenset[str] = frozenset()


class Lock:
    """A reentrant lock that is free in a forked child even if another thread of the parent held it.

    The data it guards must be valid at every moment, or be recreated if it is not: nothing in the child completes it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.free()

    def try_acquire(self) -> bool:
        """Take the lock if no other thread holds it, and return whether it was taken; release it with :meth:`free`."""
        return self._lock.acquire(blocking=False)

    def free(self) -> None:
        """Release the lock."""
        self._lock.release()

    def reset_in_child(self) -> None:
        """Release the lock if it is held by a thread that does not exist in this process."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: WeakSet[Lock] = WeakSet()


def inherited(module: str) -> bool:
    """Return whether this process was forked from one that had imported a module."""
    return module in _inherited


def use_one_thread_after_fork() -> None:
    """In a forked child, make FAISS and torch compute in the calling thread, if they were imported before the fork.

    To be called before anything that computes with them. It costs nothing in a process that was not forked.
    """
    if _inherited:
        set_threads(1, _inherited)


def forked(what: str, process: int | None = None) -> ForkError:
    """Return the error for something that does not survive a fork.

    Args:
        what: what does not survive the fork.
        process: process in which it was opened; None for the parent.
    """
    return ForkError(
        f"{what} was opened in process {process or os.getppid()} and does not survive its fork into process {os.getpid()}: "
        "start processes by the methods 'spawn' or 'forkserver' of multiprocessing, or open it in the children and not in the "
        "process that forks"
    )


def _begin_child() -> None:
    global _inherited  # noqa: PLW0603 -- a process is forked once
    _inherited = frozenset(sys.modules)
    for lock in _locks:
        lock.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
