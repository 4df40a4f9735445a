"""A process whose threads start Java at the same moment: ``python -m concurrency.first_use INDEX``."""

from __future__ import annotations

import sys

from concurrency.generations import QUERIES, told
from concurrency.racing import raced
from nlp_retrieval import PyseriniRetriever, Searcher

THREADS = 6


def main(index: str) -> None:
    """Search with as many searchers as threads, then with one searcher from all threads, and compare."""

    def opened_and_searched() -> object:
        return told(Searcher([PyseriniRetriever()]).open(index).search(QUERIES, 5))

    first = raced([opened_and_searched] * THREADS)
    shared = Searcher([PyseriniRetriever()]).open(index)
    together = raced([lambda: told(shared.search(QUERIES, 5)), lambda: told(shared.search(QUERIES[::-1], 5))[::-1]] * THREADS)
    feedback = Searcher([PyseriniRetriever(document_vectors=True, rm3=True)]).open(index)
    fed = raced([lambda: told(feedback.search(QUERIES, 5))] * 3)
    alone = told(shared.search(QUERIES, 5))
    assert len(alone[0]) == 5
    assert all(found == alone for found in [*first, *together])
    assert all(found == told(feedback.search(QUERIES, 5)) for found in fed)
    sys.stdout.write(f"{len(first) + len(together) + len(fed)} right\n")


if __name__ == "__main__":
    main(sys.argv[1])
