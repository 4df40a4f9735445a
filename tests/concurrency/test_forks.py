"""A child that a fork makes: it finds what its parent finds, or is told why it cannot; it never waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from damage.collection import QUERIES, WORDS, pages, retrievers
from hashed_words import HashedWords
from soaking import mostly_soaked

from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    OverlapReranker,
    PyseriniRetriever,
    RetrievalResult,
    Searcher,
)
from nlp_retrieval.errors import ForkError
from nlp_retrieval.retrievers.faiss import exact as exact_search

from .forking import forked

ASKED = [f"{one} {other}" for one in WORDS for other in QUERIES]
WHERE = {"year": {"gte": 1950}}

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def told(results: list[list[RetrievalResult]]) -> list[list[list[object]]]:
    return [[[hit.item.item_id, round(hit.score, 4)] for hit in hits] for hits in results]


def searchers() -> dict[str, Searcher]:
    """Every retriever that needs no Java, and compositions."""
    lexical, dense = Bm25Retriever(), FaissRetriever(HashedWords(16), index="hnsw")
    return {label: Searcher([one]) for label, one in retrievers().items()} | {
        "hybrid, reranked": Searcher([lexical, dense], reranker=OverlapReranker(), depth=20)
    }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("forks") / "index"
    for one in searchers().values():
        one.index(pages(), index)
    return index


@pytest.mark.parametrize("label", mostly_soaked(list(searchers()), ("flat",)))
def test_a_child_finds_what_its_parent_finds(label: str, path: Path) -> None:
    opened = searchers()[label].open(path)
    whole, filtered = told(opened.search(ASKED, 10)), told(opened.search(QUERIES, 10, WHERE))
    assert forked(lambda: [told(opened.search(ASKED, 10)), told(opened.search(QUERIES, 10, WHERE))]) == [whole, filtered]
    assert told(opened.search(ASKED, 10)) == whole, "and the parent goes on"


def test_lucene_is_refused_in_a_child_of_a_process_that_ran_java(tmp_path: Path) -> None:
    opened = Searcher([PyseriniRetriever()])
    opened.index(pages(), tmp_path / "index")
    alone = PyseriniRetriever()
    whole = told(opened.search(QUERIES, 5))
    assert alone.retrieve([[query] for query in QUERIES], tmp_path / "index", 5)

    def refused(call: Callable[[], object]) -> str:
        with pytest.raises(ForkError) as caught:
            call()
        return str(caught.value)

    messages = forked(
        lambda: [
            refused(lambda: opened.search(QUERIES, 5)),
            refused(lambda: alone.retrieve([QUERIES], tmp_path / "index", 5)),
            refused(lambda: Searcher([PyseriniRetriever()]).open(tmp_path / "index")),
            refused(lambda: Searcher([PyseriniRetriever()]).index(pages(), tmp_path / "other")),
        ]
    )
    assert isinstance(messages, list)
    assert all("spawn" in message and "does not survive" in message for message in messages)
    assert told(opened.search(QUERIES, 5)) == whole


def test_a_lock_that_another_thread_held_is_free_in_the_child(path: Path) -> None:
    lock = exact_search._multiplying
    opened = Searcher([Bm25Retriever(), FaissRetriever(HashedWords(16), index="flat")]).open(path)
    whole = told(opened.search(QUERIES, 5))
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            done.wait()

    def work() -> object:
        with lock:
            pass
        return told(opened.open(path).search(QUERIES, 5))

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert forked(work) == whole
    finally:
        done.set()
        thread.join()
