"""One searcher, many threads: each finds what it finds alone, from the first search on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from core.engines import Brief, SplitAt
from damage.collection import QUERIES, pages, retrievers
from hashed_words import HashedWords
from soaking import Figures, mostly_soaked

from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    LinkGraphRetriever,
    RetrievalResult,
    Searcher,
)
from nlp_retrieval.core.processes import in_threads, usable_cores
from nlp_retrieval.retrievers import IVFPQ

from .forking import raced

THREADS = 8


def searchers() -> dict[str, Searcher]:
    """Every retriever alone, and compositions of them."""
    encoder = HashedWords(16)
    quantised = FaissRetriever(encoder, index=IVFPQ(nlist=4, pq_bytes=4))
    lexical, dense = Bm25Retriever(), FaissRetriever(encoder, index="flat")
    return {label: Searcher([one]) for label, one in retrievers().items()} | {
        "link graph over ivfpq": Searcher([LinkGraphRetriever([lexical, quantised], encoder=encoder, pagerank="exact")]),
        "hybrid": Searcher([lexical, dense]),
        "hybrid, reranked": Searcher([lexical, dense], reranker=Brief(blend="rank"), depth=20),
        "per sub-query": Searcher([lexical], processor=SplitAt(" "), reranker=Brief(), scope="per_subquery"),
    }


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("threads") / "index"
    for searcher in searchers().values():
        searcher.index(pages(), index)
    return index


def signals(results: list[list[RetrievalResult]]) -> list[list[tuple[str, float, str]]]:
    """Ids, scores and what led to them."""
    return [[(hit.item.item_id, hit.score, repr(sorted(hit.signals.items()))) for hit in hits] for hits in results]


@pytest.mark.filterwarnings("ignore:bm25 found nothing:nlp_retrieval.errors.RetrievalWarning")
@pytest.mark.parametrize("label", mostly_soaked(list(searchers()), ("bm25", "flat")))
def test_a_searcher_gives_every_thread_what_it_gives_one(label: str, path: Path, effort: int, figures: Figures) -> None:
    shared = searchers()[label].open(path)
    where = {"year": {"gte": 1950}, "old": True}

    def search(place: int) -> Callable[[], list[object]]:
        asked = QUERIES[place % len(QUERIES) :] + QUERIES[: place % len(QUERIES)]
        calls = [lambda: shared.search(asked, 10), lambda: shared.search(asked[:1], 7), lambda: shared.search(asked, 5, where)]
        turned = calls[place % 3 :] + calls[: place % 3]
        return lambda: [signals(call()) for call in turned * effort]

    together = raced([search(place) for place in range(THREADS)])
    for place, found in enumerate(together):
        assert found == search(place)(), f"thread {place}"
    searches = 3 * effort * THREADS
    figures.add("Concurrency", f"{label}: searched by {THREADS} threads", searches, searches, "answers as alone")


def test_a_task_of_many_parts_leaves_the_threads_to_others_between_them() -> None:
    class Parts(list[int]):
        taken = 0

        def __iter__(self) -> Iterator[int]:
            for self.taken in range(1000):
                yield self.taken

    parts = Parts(range(1000))

    def queued_behind(part: int) -> int:
        if part == 0:
            time.sleep(0.05)
        return parts.taken - part

    assert max(in_threads(queued_behind, parts)) <= 2 * usable_cores()
