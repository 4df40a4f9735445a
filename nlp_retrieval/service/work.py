"""Threads for requests, with limits on their number, the queue, and the time of each request."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from threading import Event
from typing import Any, TypeVar

from nlp_retrieval.core.context import changed_context, search_context
from nlp_retrieval.core.progress_bars import DISPLAY
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.service.endpoints import RefusedError
from nlp_retrieval.service.settings import WRITING_SECONDS, ServiceSettings

T = TypeVar("T")


def stop_where_nobody_waits() -> None:
    """Stop the work of this thread if its time is up; for work of many steps, called between two of them.

    Raises:
        RefusedError: nobody waits for the answer any more.

    Examples:
        >>> for item in items:
        ...     stop_where_nobody_waits()
    """
    abandoned = search_context().abandoned
    if abandoned is not None and abandoned.is_set():
        raise RefusedError(504, "too_long", "the client no longer waits for this answer")


class WorkPool:
    """Threads with a bounded queue. To be used from one event loop."""

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self._threads = ThreadPoolExecutor(threads, "request")
        self._most, self._seconds = threads + waiting, seconds
        self._under_way: set[Future[Any]] = set()

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of a function that runs in a thread.

        Work that takes too long is refused, but keeps its thread until it ends or calls :func:`stop_where_nobody_waits`.
        """
        self._under_way = {running for running in self._under_way if not running.done()}
        if len(self._under_way) >= self._most:
            raise RefusedError(503, "overloaded", f"{len(self._under_way)} requests are waiting; try again in a second")
        abandoned = Event()

        def run() -> T:
            with changed_context(abandoned=abandoned, spans=_spans()):
                return work()

        future = self._threads.submit(copy_context().run, run)
        self._under_way.add(future)
        finished, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=self._seconds)
        if not finished:
            abandoned.set()
            future.cancel()
            raise RefusedError(504, "too_long", f"it took more than {self._seconds:g} seconds; ask for less at a time")
        return finished.pop().result()

    def close(self) -> None:
        """Stop the threads after their current work."""
        self._threads.shutdown(cancel_futures=True)


def work_pools(settings: ServiceSettings) -> tuple[WorkPool, WorkPool]:
    """Return the threads that read, and the one that writes."""
    return WorkPool(settings.threads, settings.waiting, settings.seconds), WorkPool(1, settings.waiting, WRITING_SECONDS)


def _spans() -> Callable[[str, Mapping[str, str]], AbstractContextManager[object]] | None:
    """Return what makes spans of stages and calls of models, without messages of errors, if OpenTelemetry runs here."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    tracer = trace.get_tracer("nlp_retrieval")
    return lambda name, attributes: tracer.start_as_current_span(
        name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
    )


def leave_notes_out() -> None:
    """Silence notes about single queries, and progress: they go to the client, not to a log, and Python stores each one."""
    DISPLAY.mode = "off"
    warnings.simplefilter("ignore", RetrievalWarning)
