"""Threads for requests, with limits on their number, the queue, and the time of each request."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from threading import Event
from typing import Any, TypeVar

from nlp_retrieval.core.context import changed_context, search_context
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.lm.counting import record_calls
from nlp_retrieval.service.endpoints import RefusedError
from nlp_retrieval.service.metrics import Metrics

__all__ = ["WorkPool", "leave_notes_out", "stop_where_nobody_waits"]

T = TypeVar("T")

_log = logging.getLogger(__name__)


def stop_where_nobody_waits() -> None:
    """Stop the work of this thread if its time is up; for work of many steps, called between two of them.

    Raises:
        RefusedError: nobody waits for the answer any more.

    Examples:
        >>> def count_words(texts: list[str]) -> int:
        ...     total = 0
        ...     for text in texts:
        ...         stop_where_nobody_waits()
        ...         total += len(text.split())
        ...     return total
        >>> count_words([item.content for item in items])
        19
    """
    abandoned = search_context().abandoned
    if abandoned is not None and abandoned.is_set():
        raise RefusedError(504, "too_long", "the client no longer waits for this answer")


class WorkPool:
    """Threads with a bounded queue. To be used from one event loop.

    Args:
        threads: number of threads.
        waiting: maximum number of requests waiting for a thread.
        seconds: time limit for an answer, including the time in the queue.
        name: of the pool, in figures.
        metrics: where its queue and the calls of models are counted; None for nowhere.
    """

    def __init__(
        self, threads: int, waiting: int, seconds: float, name: str = "requests", metrics: Metrics | None = None
    ) -> None:
        self._threads = ThreadPoolExecutor(threads, "request")
        self._most, self._seconds = threads + waiting, seconds
        self._under_way: set[Future[Any]] = set()
        self._name, self._metrics = name, metrics

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in a thread.

        Work that takes too long continues, because a thread cannot be stopped, and keeps its thread until it ends or calls
        :func:`stop_where_nobody_waits`.

        Args:
            work: returns the answer.

        Raises:
            RefusedError: the queue is full, or the time limit was exceeded.
        """
        self._under_way = {running for running in self._under_way if not running.done()}
        if len(self._under_way) >= self._most:
            self._reject("overloaded")
            raise RefusedError(
                503, "overloaded", f"{len(self._under_way)} requests are waiting; try again in a second", {"retry-after": "1"}
            )
        abandoned = Event()

        def awaited() -> T:
            self._wait(-1)
            with changed_context(abandoned=abandoned), self._calls_counted():
                return work()

        self._wait(1)
        future = self._threads.submit(copy_context().run, awaited)
        self._under_way.add(future)
        finished, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=self._seconds)
        if not finished:
            abandoned.set()
            if future.cancel():
                self._wait(-1)
            self._reject("too_long")
            raise RefusedError(504, "too_long", f"it took more than {self._seconds:g} seconds; ask for less at a time")
        return finished.pop().result()

    def _wait(self, change: int) -> None:
        if self._metrics is not None:
            self._metrics.waiting.labels(self._name).inc(change)

    def _reject(self, reason: str) -> None:
        if self._metrics is not None:
            self._metrics.rejected.labels(self._name, reason).inc()

    @contextmanager
    def _calls_counted(self) -> Iterator[None]:
        """Count the models' calls of the block, also if it fails, and log how many questions got no usable answer."""
        with record_calls() as counter:
            try:
                yield
            finally:
                if degraded := counter.counts.degraded:
                    _log.warning(
                        "questions without a usable answer from a language model: %d (%s)", degraded, counter.last_failure
                    )
                if self._metrics is not None:
                    self._metrics.count_calls(counter)

    def close(self) -> None:
        """Stop the threads after their current work."""
        self._threads.shutdown(cancel_futures=True)


def leave_notes_out() -> None:
    """Silence notes about single queries, and progress: they go to the client, not to a log, and Python stores each one."""
    DISPLAY.mode = "off"
    warnings.simplefilter("ignore", RetrievalWarning)
