"""Calls under way at once, so that the next begins when one ends, and none that is stuck keeps the process from ending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from queue import Queue, SimpleQueue
from threading import Thread
from typing import TypeVar

__all__ = ["worked_on"]

T = TypeVar("T")
R = TypeVar("R")


def worked_on(tasks: Iterable[T], work: Callable[[T], R], n_workers: int) -> Iterator[tuple[T, R]]:
    """Yield tasks with what came of them, as they are done, in whatever order.

    Of the tasks, two more than are under way are taken at most. When the caller stops, or is interrupted, no further task is
    begun; what is under way goes on in threads that end with the process.

    Args:
        tasks: taken one by one, in the caller's thread.
        work: done in threads, each with a copy of the caller's context.
        n_workers: how many tasks are worked on at once.

    Raises:
        Exception: what ``work`` raises first.
    """
    waiting: Queue[T | None] = Queue()
    done: SimpleQueue[tuple[T, R] | BaseException] = SimpleQueue()

    def run() -> None:
        while (task := waiting.get()) is not None:
            try:
                done.put((task, work(task)))
            except BaseException as error:  # told by the caller's thread
                done.put(error)

    contexts = [copy_context() for _ in range(n_workers)]
    threads = [Thread(target=context.run, args=(run,), name="nlp_retrieval-extract", daemon=True) for context in contexts]
    for thread in threads:
        thread.start()
    under_way = 0
    try:
        for task in tasks:
            waiting.put(task)
            under_way += 1
            while under_way > n_workers + 1:
                yield _result(done)
                under_way -= 1
        for _ in range(under_way):
            yield _result(done)
    finally:
        while not waiting.empty():
            _drop(waiting)
        for _ in threads:
            waiting.put(None)


def _result(done: SimpleQueue[tuple[T, R] | BaseException]) -> tuple[T, R]:
    result = done.get()
    if isinstance(result, BaseException):
        raise result
    return result


def _drop(waiting: Queue[T | None]) -> None:
    from queue import Empty

    try:
        waiting.get_nowait()
    except Empty:
        return
