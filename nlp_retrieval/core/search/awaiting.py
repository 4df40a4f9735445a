"""Searching from an event loop: in a few threads of the process, so that the loop goes on meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TypeVar

from nlp_retrieval.core.cores import usable_cores

T = TypeVar("T")

AT_ONCE = min(8, max(2, usable_cores()))
"""How many searches run at once; engines use more threads of their own. Further ones wait in order."""


async def in_thread(work: Callable[[], T]) -> T:
    """Do some work in a thread of this process.

    Where the caller is cancelled, work that waits is not begun; what runs goes on to its end, because nothing can stop a
    thread, and keeps its place until then.

    Args:
        work: returns the result; sees the context variables of the caller.
    """
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), copy_context().run, work)


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked child has none of its parent's."""
    del process
    return ThreadPoolExecutor(AT_ONCE, "search")
