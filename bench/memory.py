"""Peak memory of indexing, at the size of the corpus and at ten times that, each in a process of its own.

The larger corpus is the collection ten times over, each copy with its number put before the text. The dense retriever
is given a cheap encoder (feature hashing), so that what is measured is the indexing and not a model. For the link graph
each copy has names of its own, and once it has not: then each mention may mean ten passages, and links are many.
"""

from __future__ import annotations

import json
import re
import string
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from bench.common import Data, Row, aside, peak_bytes
from nlp_retrieval import SearchableItem
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.encoders import BaseEncoder, BaseTokenEncoder, Vectors

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


_JAVA = "-Xms192m -Xmx192m -XX:+AlwaysPreTouch"
"""A heap of a fixed size, taken at once: Java lets it grow to a quarter of the machine's memory before it cleans up."""

LINK_GRAPH = "link_graph over bm25s"
_SHARED_NAMES = f"{LINK_GRAPH}, each title ten times"
_LINKS = [f"link_graph*/{name}.npy" for name in ("neighbours", "weights", "types")]
_NAME = re.compile(r"\b[A-Z]\w*")

_HELD = {
    "faiss hnsw": ("the graph and its vectors", ["faiss*/index.faiss"]),
    "faiss sq8": ("the codes", ["faiss*/index.faiss"]),
    **dict.fromkeys((LINK_GRAPH, _SHARED_NAMES), ("the links once", _LINKS)),
}
"""What an engine builds in memory, and the files that it becomes there."""


def measure(data: Data) -> list[Row]:
    """One row per retriever."""
    return [_row(data, name) for name in retrievers_by_name()]


def _row(data: Data, name: str) -> Row:
    (small, held_then), (large, held) = (_peak(data, name, copies) for copies in (1, 10))
    notes = [f"{_shown(small, held_then)} at 31,857 items, {_shown(large, held)} at 318,570"]
    if name in _HELD:
        notes.append(f"held: {_HELD[name][0]}")
    if name == "pyserini":
        notes.append(f"Java with {_JAVA}; without a limit {_shown(*_peak(data, name, 10, java=''))}")
    budget = "at most 1.2 times, beyond what the engine holds"
    return Row(f"peak memory while indexing: {name}", budget, "; ".join(notes), large - held <= 1.2 * (small - held_then))


def _shown(peak: int, held: int) -> str:
    return f"{peak / 1e6:,.0f} MB" + (f" ({held / 1e6:,.0f} held)" if held else "")


def _peak(data: Data, name: str, copies: int, java: str = _JAVA) -> tuple[int, int]:
    """The most memory that indexing took, and how much of it the engine had to hold, in bytes."""
    peak, held = aside("bench.memory", name, copies, data.corpus, JAVA_TOOL_OPTIONS=java)
    return peak, held


def copied_items(corpus: Path, copies: int, first: int = 0, *, own_names: bool = False) -> Iterator[SearchableItem]:
    """The collection several times over; each copy after the first has its number before every text.

    Args:
        corpus: in BEIR's form.
        copies: up to this number, not included.
        first: from this number.
        own_names: a suffix of the copy's stands behind every word that begins with a capital letter, in titles and texts
            alike, so that no copy mentions the titles of another.
    """
    for copy, suffix in list(enumerate(string.ascii_lowercase))[first:copies]:
        with corpus.open(encoding="utf-8") as lines:
            for item in map(json.loads, lines):
                title, text = item["title"], f"{copy} {item['text']}" if copy else item["text"]
                if own_names:
                    title, text = (_NAME.sub(rf"\g<0>q{suffix}", one) for one in (title, text))
                yield SearchableItem(item_id=f"{copy}-{item['_id']}", content=text, metadata={"title": title})


def retrievers_by_name() -> dict[str, Callable[[], list[BaseRetriever]]]:
    """What is measured: each with an encoder that costs next to nothing, where it has one."""
    from nlp_retrieval import Bm25Retriever, ColbertRetriever, FaissRetriever, LinkGraphRetriever, PyseriniRetriever

    return {
        "items alone": list,
        "bm25s": lambda: [Bm25Retriever()],
        "pyserini": lambda: [PyseriniRetriever()],
        "faiss flat": lambda: [FaissRetriever(HashingEncoder(), index="flat")],
        "faiss hnsw": lambda: [FaissRetriever(HashingEncoder(), index="hnsw")],
        "faiss sq8": lambda: [FaissRetriever(HashingEncoder(), index="sq8")],
        "colbert": lambda: [ColbertRetriever(HashingTokens())],
        LINK_GRAPH: lambda: [LinkGraphRetriever([Bm25Retriever()])],
        _SHARED_NAMES: lambda: [LinkGraphRetriever([Bm25Retriever()])],
    }


def _index(name: str, copies: int, corpus: Path) -> tuple[int, int]:
    """Index in this process."""
    from nlp_retrieval.core.index.build import build_index
    from nlp_retrieval.core.search.retriever import with_parts

    _, patterns = _HELD.get(name, ("", []))
    with tempfile.TemporaryDirectory() as folder:
        items = copied_items(corpus, copies, own_names=name == LINK_GRAPH)
        build_index(items, folder, with_parts(retrievers_by_name()[name]()))
        held = sum(path.stat().st_size for pattern in patterns for path in Path(folder).glob(pattern))
    return peak_bytes(), held


if __name__ == "__main__":
    print(json.dumps(_index(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))))
