"""Corpora of which every text, id and field carries one number, so that an answer tells which generation it is from.

``python -m concurrency.generations INDEX GENERATION`` writes one: it says "writing" once it has begun, and goes on when a line
comes on standard input.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator

from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever, FaissRetriever, RetrievalResult, SearchableItem, Searcher

WORDS = "fox whale tree river bridge castle novel film director painter island queen album singer orbit harbour".split()
QUERIES = ["novel director", "whale island orbit", "castle queen", "river bridge tree fox"]
SIZE = 60


def corpus(number: int) -> list[SearchableItem]:
    """Items ``d0``, ``d1``, ... of a generation; their texts differ from those of another in more than the number."""
    draw = random.Random(number)
    return [
        SearchableItem(
            item_id=f"d{row}",
            content=f"generation{number} {' '.join(draw.choices(WORDS, k=6))}",
            metadata={"generation": number},
        )
        for row in range(SIZE)
    ]


def searcher() -> Searcher:
    """Two engines that need neither Java nor a model."""
    return Searcher([Bm25Retriever(backend="numpy"), FaissRetriever(HashedWords(16), index="flat")], depth=20)


def told(results: list[list[RetrievalResult]]) -> list[list[tuple[str, str, float]]]:
    """What a search found, as plain values that can be compared."""
    return [[(hit.item.item_id, hit.item.content, hit.score) for hit in hits] for hits in results]


def generation_of(results: list[list[RetrievalResult]]) -> int:
    """The one generation that all results of a search belong to."""
    numbers = {int(re.findall(r"generation(\d+) ", hit.item.content)[0]) for hits in results for hit in hits}
    numbers |= {hit.item.metadata["generation"] for hits in results for hit in hits}
    assert len(numbers) == 1, f"one search found items of the generations {sorted(numbers)}"
    assert all(results), "a query found nothing"
    return numbers.pop()


def halting(number: int) -> Iterator[SearchableItem]:
    """The items of a corpus, with a halt in the middle."""
    items = corpus(number)
    yield from items[:30]
    sys.stdout.write("writing\n")
    sys.stdout.flush()
    sys.stdin.readline()
    yield from items[30:]


if __name__ == "__main__":
    searcher().index(halting(int(sys.argv[2])), sys.argv[1], replace=True)
    sys.stdout.write("done\n")
