"""Peak memory of indexing, at the size of the corpus and at ten times that, each in a process of its own.

The larger corpus is the collection ten times over, each copy with its number put before the text. The dense retriever
is given a cheap encoder (feature hashing), so that what is measured is the indexing and not a model.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench.common import Data, Row
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.retriever import BaseRetriever
from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.encoders.multi_vector_base import BaseTokenEncoder

_DIMENSION = 384


class HashingEncoder(BaseEncoder):
    """Words hashed into 384 dimensions."""

    name = "hashing"

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        vectors = np.zeros((len(passages), _DIMENSION), np.float32)
        for row, passage in enumerate(passages):
            for word in passage.split()[:30]:
                vectors[row, zlib.crc32(word.encode()) % _DIMENSION] += 1
        return vectors

    def model_fingerprint(self) -> str:
        return "hashing"


class HashingTokens(BaseTokenEncoder):
    """The first 20 words of a text, each one of 4,096 random directions."""

    name = "hashing-tokens"

    _DIRECTIONS = np.random.default_rng(0).standard_normal((4096, 32)).astype(np.float32)
    _DIRECTIONS /= np.linalg.norm(_DIRECTIONS, axis=1, keepdims=True)

    @property
    def dimension(self) -> int:
        return 32

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return [self._DIRECTIONS[[zlib.crc32(word.encode()) % 4096 for word in query.split()[:20]]] for query in queries]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return self.encode_queries(passages)

    def model_fingerprint(self) -> str:
        return "hashing tokens"


_HELD = {
    "bm25s": "the vocabulary, and a length per item",
    "pyserini": "Java's heap, which grows as it may, and Lucene's buffer of 256 MB",
    "faiss hnsw": "the graph and its vectors: FAISS builds them in memory",
    "faiss sq8": "the codes: FAISS builds them in memory",
    "colbert": "a sample of up to 500,000 tokens to train on, and a number per item",
    "link_graph over bm25s": "titles, terms and links",
}


def measure(data: Data) -> list[Row]:
    """One row per retriever."""
    rows = []
    for name in retrievers_by_name():
        small, large = (_peak(data, name, copies) for copies in (1, 10))
        held = f"; the engine holds {_HELD[name]}" if name in _HELD else ""
        measured = f"{small / 1e6:,.0f} MB at 31,857 items, {large / 1e6:,.0f} MB at 318,570{held}"
        met = True if large <= 1.2 * small else None if held else False
        rows.append(
            Row(f"peak memory while indexing: {name}", "at most 1.2 times, beyond what the engine holds", measured, met)
        )
    return rows


def _peak(data: Data, name: str, copies: int) -> int:
    command = [sys.executable, "-m", "bench.memory", name, str(copies), str(data.corpus)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def copied_items(corpus: Path, copies: int, first: int = 0) -> Iterator[SearchableItem]:
    """The collection several times over; each copy after the first has its number before every text.

    Args:
        corpus: in BEIR's form.
        copies: up to this number, not included.
        first: from this number.
    """
    for copy in range(first, copies):
        with corpus.open(encoding="utf-8") as lines:
            for item in map(json.loads, lines):
                text = f"{copy} {item['text']}" if copy else item["text"]
                yield SearchableItem(item_id=f"{copy}-{item['_id']}", content=text, metadata={"title": item["title"]})


def retrievers_by_name() -> dict[str, Callable[[], list[BaseRetriever]]]:
    """What is measured: each with an encoder that costs next to nothing, where it has one."""
    from nlp_retrieval.retrievers.bm25s import Bm25sRetriever
    from nlp_retrieval.retrievers.colbert import ColbertRetriever
    from nlp_retrieval.retrievers.faiss import FaissRetriever
    from nlp_retrieval.retrievers.link_graph import LinkGraphRetriever
    from nlp_retrieval.retrievers.pyserini import PyseriniRetriever

    return {
        "items alone": list,
        "bm25s": lambda: [Bm25sRetriever()],
        "pyserini": lambda: [PyseriniRetriever()],
        "faiss flat": lambda: [FaissRetriever(HashingEncoder(), index_type="flat")],
        "faiss hnsw": lambda: [FaissRetriever(HashingEncoder(), index_type="hnsw")],
        "faiss sq8": lambda: [FaissRetriever(HashingEncoder(), index_type="sq8")],
        "colbert": lambda: [ColbertRetriever(HashingTokens())],
        "link_graph over bm25s": lambda: [LinkGraphRetriever([Bm25sRetriever()])],
    }


def _index(name: str, copies: int, corpus: Path) -> int:
    """Index, and return the peak of this process in bytes."""
    from nlp_retrieval.core.index_store import build_index
    from nlp_retrieval.core.retriever import builders_of

    with tempfile.TemporaryDirectory() as folder:
        build_index(copied_items(corpus, copies), folder, builders_of(retrievers_by_name()[name]()))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(_index(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
