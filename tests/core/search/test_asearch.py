"""Awaited searches find what searches find, let the event loop go on, and leave nothing behind when nobody waits."""

from __future__ import annotations

import asyncio
import os
import threading
from contextvars import ContextVar
from typing import ClassVar

import pytest
from concurrency.forking import forked

from core.engines import TermCount, documents
from nlp_retrieval import Searcher
from nlp_retrieval.core.candidates import Hits, Mask

TEXTS = [f"red fox {number} {'whale' * (number % 3)}" for number in range(50)]
asked_by: ContextVar[str] = ContextVar("asked_by", default="nobody")


class Held(TermCount):
    """Searches only when it may, and lists who is inside."""

    name = "held_terms"
    may = threading.Event()
    inside: ClassVar[list[str]] = []

    def search_batch(self, queries: list[str], k: int, allowed: Mask | None) -> Hits:
        Held.inside.append(asked_by.get())
        assert Held.may.wait(300)
        try:
            return super().search_batch(queries, k, allowed)
        finally:
            Held.inside.pop()


@pytest.fixture
def held(tmp_path):
    Held.may.clear()
    Held.inside = []
    searcher = Searcher([Held()])
    searcher.index(documents(TEXTS), tmp_path / "held")
    yield searcher
    Held.may.set()


@pytest.fixture
def searcher(tmp_path):
    made = Searcher(["bm25"])
    made.index(documents(TEXTS), tmp_path / "index")
    return made


def test_many_at_once_find_what_one_after_the_other_finds(searcher):
    queries = [f"fox {number} whale" for number in range(200)]

    async def all_of_them():
        return await asyncio.gather(*(searcher.asearch(query, 5) for query in queries))

    assert asyncio.run(all_of_them()) == [searcher.search(query, 5) for query in queries]


async def _until(true) -> None:
    for _ in range(6000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not come to that")


def test_the_event_loop_goes_on_while_several_search(held):
    async def several():
        tasks = [asyncio.create_task(held.asearch("fox", 3)) for _ in range(3)]
        await _until(lambda: len(Held.inside) == 3)  # which the loop sees, while all are searching
        assert not any(task.done() for task in tasks)
        Held.may.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(several()) == [held.search("fox", 3)] * 3


def test_a_search_may_be_given_up_for_a_timeout(held):
    async def impatient():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(held.asearch("fox"), 0.05)
        Held.may.set()
        return await held.asearch("fox", 3)

    assert asyncio.run(impatient()) == held.search("fox", 3)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_searches_in_threads_of_its_own(searcher):
    def ids():
        return [os.getpid() != parent, [hit.item.item_id for hit in asyncio.run(searcher.asearch("fox 7", 5))[0]]]

    parent = os.getpid()
    mine = ids()
    assert forked(ids) == [True, mine[1]]
