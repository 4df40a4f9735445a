"""Work that nobody waits for any more is given up where it says that it can be."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from nlp_retrieval.service.endpoints import RefusedError
from nlp_retrieval.service.work import WorkPool, stop_where_nobody_waits


def asked(pool, work):
    return asyncio.run(pool.run(work))


def test_work_whose_answer_came_too_late_ends(request):
    threads = ThreadPoolExecutor(1)
    pool = WorkPool(1, 0, 0.05)
    pool._threads = threads

    def endless():
        while True:
            stop_where_nobody_waits()

    with pytest.raises(RefusedError, match=r"more than 0\.05 seconds"):
        asked(pool, endless)
    assert threads.submit(lambda: "the thread is free").result() == "the thread is free"
    assert asked(pool, lambda: stop_where_nobody_waits() or "waited for") == "waited for"
