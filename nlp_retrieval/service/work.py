"""Threads that do the work of requests: so many at once, so many waiting, each for so long."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.service.refusal import RefusedError

__all__ = ["WorkPool", "leave_notes_out", "stop_where_nobody_waits"]

T = TypeVar("T")


@dataclass
class _Waiting:
    """Whether somebody waits still for what a thread does."""

    still: bool = True


_waiting: ContextVar[_Waiting | None] = ContextVar("waiting", default=None)


def stop_where_nobody_waits() -> None:
    """End the work of this thread where its answer came too late already; for work of many steps, between two of them.

    Raises:
        RefusedError: nobody waits for it.
    """
    waiting = _waiting.get()
    if waiting is not None and not waiting.still:
        raise RefusedError(504, "too_long", "nobody waits for this answer any more")


class WorkPool:
    """Threads with a queue that has an end. To be used from one event loop.

    Args:
        threads: how many.
        waiting: how much work may wait for a thread.
        seconds: how long to wait for an answer, the time in the queue included.
    """

    def __init__(self, threads: int, waiting: int, seconds: float) -> None:
        self._threads = ThreadPoolExecutor(threads, "request")
        self._most, self._seconds = threads + waiting, seconds
        self._under_way: set[Future[Any]] = set()

    async def run(self, work: Callable[[], T]) -> T:
        """Do some work in a thread.

        What takes too long goes on, because nothing can stop a thread, and keeps its place until it ends, or until it calls
        :func:`stop_where_nobody_waits`.

        Args:
            work: returns the answer.

        Raises:
            RefusedError: too much is waiting, or it took too long.
        """
        self._under_way = {one for one in self._under_way if not one.done()}
        if len(self._under_way) >= self._most:
            raise RefusedError(
                503, "overloaded", f"{len(self._under_way)} requests are waiting; try again in a second", {"retry-after": "1"}
            )
        waiting = _Waiting()

        def awaited() -> T:
            _waiting.set(waiting)
            return work()

        future = self._threads.submit(awaited)
        self._under_way.add(future)
        done, _ = await asyncio.wait([asyncio.wrap_future(future)], timeout=self._seconds)
        if not done:
            waiting.still = False
            future.cancel()
            raise RefusedError(504, "too_long", f"it took more than {self._seconds:g} seconds; ask for less at a time")
        return done.pop().result()

    def close(self) -> None:
        """End the threads, after what they are doing."""
        self._threads.shutdown(cancel_futures=True)


def leave_notes_out() -> None:
    """Silence the notes about single queries: they go to the client, not to a log, and Python remembers each one."""
    warnings.simplefilter("ignore", RetrievalWarning)
