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
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.common import Data, Row
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.encoders.base import BaseEncoder, Vectors

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


def measure(data: Data) -> list[Row]:
    """One row per retriever."""
    rows = []
    for name in ("items alone", "faiss", "bm25s", "pyserini"):
        small, large = (_peak(data, name, copies) for copies in (1, 10))
        held = {
            "bm25s": "; it sorts all postings in memory",
            "pyserini": "; the Java heap grows as it may (a quarter of the machine's memory)",
        }.get(name, "")
        measured = f"{small / 1e6:,.0f} MB at 31,857 items, {large / 1e6:,.0f} MB at 318,570{held}"
        met = large <= 1.2 * small if not held else None
        rows.append(Row(f"peak memory while indexing: {name}", "bounded by a batch", measured, met))
    return rows


def _peak(data: Data, name: str, copies: int) -> int:
    command = [sys.executable, "-m", "bench.memory", name, str(copies), str(data.corpus)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def _items(corpus: Path, copies: int) -> Iterator[SearchableItem]:
    for copy in range(copies):
        with corpus.open(encoding="utf-8") as lines:
            for item in map(json.loads, lines):
                text = f"{copy} {item['text']}" if copy else item["text"]
                yield SearchableItem(item_id=f"{copy}-{item['_id']}", content=text, metadata={"title": item["title"]})


def _index(name: str, copies: int, corpus: Path) -> int:
    """Index, and return the peak of this process in bytes."""
    from nlp_retrieval.core.index_store import build_index
    from nlp_retrieval.core.retriever import BaseRetriever
    from nlp_retrieval.retrievers.bm25s import Bm25sRetriever
    from nlp_retrieval.retrievers.faiss import FaissRetriever
    from nlp_retrieval.retrievers.pyserini import PyseriniRetriever

    retrievers: dict[str, list[BaseRetriever]] = {
        "items alone": [],
        "faiss": [FaissRetriever(HashingEncoder(), index_type="flat")],
        "bm25s": [Bm25sRetriever()],
        "pyserini": [PyseriniRetriever()],
    }
    with tempfile.TemporaryDirectory() as folder:
        build_index(_items(corpus, copies), folder, [retriever.builder() for retriever in retrievers[name]])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(_index(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
