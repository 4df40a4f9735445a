"""Links at the size of a large collection: ``python -m bench.million [PASSAGES [LINKS]]`` prints what a walk and a query take.

Two graphs: random links of the kind that :mod:`bench.links` describes, which only a walk sees; and made-up passages, 1,000,000
unless said otherwise, of which each mentions ten others by their titles, indexed and searched as a user would. Their words are
drawn so that some are common and most are rare. Seeds are BM25 alone, or with words that are hashed into vectors as well
(``dense``). ``python -m bench.million walk [NODES ENTRIES]`` does the first alone, by default over 97,000 nodes.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench.common import best_of_each, seconds_of
from bench.links import random_graph, random_restarts
from bench.memory import HashingEncoder
from nlp_retrieval import Bm25Retriever, FaissRetriever, LinkGraphRetriever, SearchableItem, Searcher
from nlp_retrieval.core import BaseLoader, BaseRetriever
from nlp_retrieval.retrievers import TitleMentions
from nlp_retrieval.retrievers.link_graph.walk import local_pagerank, pagerank

_DAMPING, _QUERIES = 0.5, 20
_WORDS, _SENTENCE = 50_000, 30
_PROMISED_S, _EXACT_MS = 2.0, 40.0
_LEAST = 10_000


class MadeUpPassages(BaseLoader):
    """Passages of drawn words, each with a name of its own and the names of others in its text.

    Args:
        count: how many.
        mentions: how many others each names.
    """

    name = "made-up"

    def __init__(self, count: int, mentions: int) -> None:
        self.count = count
        self.mentions = mentions

    def stream(self) -> Iterator[SearchableItem]:
        """Yield the items."""
        draw = np.random.default_rng(0)
        for row in range(self.count):
            words = [f"w{word}" for word in (_WORDS * draw.random(_SENTENCE) ** 3).astype(int).tolist()]
            near = (row + draw.integers(-50, 50, self.mentions)) % self.count
            named = [_title(int(other)) for other in near]
            text = f"{_title(row)} is {' '.join(words)}. It knows {', '.join(named)}."
            yield SearchableItem(item_id=str(row), content=text, metadata={"title": _title(row)})


def _title(row: int) -> str:
    """A name of two words that no other row has."""
    return f"Ab{row % 1000:03d} Cd{row // 1000:06d}"


def walks(nodes: int, entries: int) -> bool:
    """Print what exact and local PageRank take for one query; return whether the exact one keeps its promise."""
    with tempfile.TemporaryDirectory() as folder:
        graph = random_graph(Path(folder) / "graph", nodes, entries)
        restarts = [random_restarts(graph, seed) for seed in range(_QUERIES)]
        pagerank(graph, restarts[0], _DAMPING, backend="numba"), local_pagerank(graph, restarts[0], _DAMPING, backend="numba")
        calls = [partial(pagerank, graph, one, _DAMPING, backend="numba") for one in restarts]
        exact = 1000 * float(np.median(best_of_each(3, *calls)))
        local_calls = [partial(local_pagerank, graph, one, _DAMPING, backend="numba") for one in restarts]
        local = 1000 * float(np.median(best_of_each(3, *local_calls)))
    promise = f"; promised {_EXACT_MS:.0f} ms" if nodes < 100_000 else ""
    print(f"{nodes:,} nodes, {len(graph.graph.neighbours):,} entries: exact {exact:.1f} ms{promise}; local {local:.2f} ms")
    return nodes >= 100_000 or exact <= _EXACT_MS


def queries(count: int, mentions: int, *, dense: bool) -> bool:
    """Print what an index over made-up passages and its queries take; return whether a query keeps its promise."""
    loader = MadeUpPassages(count, mentions)
    seeds: list[BaseRetriever] = [Bm25Retriever(), *([FaissRetriever(HashingEncoder())] if dense else [])]
    searcher = Searcher([LinkGraphRetriever(seeds, links=[TitleMentions()])])
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        searcher.index(loader, Path(folder) / "index")
        print(f"{count:,} passages indexed in {time.perf_counter() - begin:.0f} s", flush=True)
        opened = searcher.open_retrievers().retrievers["link_graph"]
        print(", ".join(f"{links:,} {kind}" for kind, links in opened._graph.graph.n_links.items()), flush=True)  # type: ignore[attr-defined]
        draw = np.random.default_rng(1)
        asked = [
            f"what does {_title(int(row))} know of w{int(draw.integers(_WORDS))} and w{int(draw.integers(100))}?"
            for row in draw.integers(count, size=_QUERIES)
        ]
        searcher.search(asked[:2], 10)
        seconds = [seconds_of(partial(searcher.search, [query], 10)) for query in asked]
    median, worst = float(np.median(seconds)), max(seconds)
    print(f"a query: median {1000 * median:.0f} ms, at most {1000 * worst:.0f} ms; promised {_PROMISED_S:.0f} s")
    return worst <= _PROMISED_S


def main(arguments: list[str]) -> int:
    """Measure, and end with 1 where a promise is broken."""
    warnings.simplefilter("ignore")
    words = [word for word in arguments if not word.isdigit()]
    numbers = [int(word) for word in arguments if word.isdigit()]
    if len(numbers) > 2 or set(words) - {"walk", "dense"} or min(numbers[:1], default=_LEAST) < _LEAST:
        print("usage: python -m bench.million [walk | dense] [PASSAGES [LINKS]]   (at least 10,000; walk: [NODES [ENTRIES]])")
        return 2
    if "walk" in words:
        return 0 if walks(*(numbers + [97_000, 1_400_000][len(numbers) :])) else 1
    count, mentions = numbers + [1_000_000, 10][len(numbers) :]
    kept = [walks(count, 2 * count * mentions), queries(count, mentions, dense="dense" in words)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
