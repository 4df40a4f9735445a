"""How long it takes to score every chunk by several signals: ``python -m bench.policy.signals DATA [chunks ...]``.

DATA holds ``policy/``. Chunks are those of ``policy/cat`` and ``policy/ndc``; where more are asked for, halves of two of them
joined. Sentence vectors are random ones of 384 dimensions (what they say changes nothing about the time); word vectors of 100
dimensions are trained on the chunks of ``cat``. Times are of one question a call, top 10, evaluate-all: the median and the 95th
percentile of 40 questions after three others, and the median time of the processor, which depends less on what else runs; the
first question, which analyses all texts, is told apart.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.common import peak_bytes
from nlp_retrieval import BeirLoader, FaissRetriever, MultiSignalReranker, SearchableItem, Searcher, WordVectorEncoder
from nlp_retrieval.encoders import BaseEncoder, train_word_vectors
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.rerankers.multi_signal.features import SIGNALS

_DIMENSION = 384


class RandomVectors(BaseEncoder):
    """A random direction for each text, the same for the same text."""

    name = "random-vectors"

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        vectors = np.empty((len(passages), _DIMENSION), np.float32)
        for row, text in enumerate(passages):
            vectors[row] = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(_DIMENSION, np.float32)
            vectors[row] /= np.linalg.norm(vectors[row])
        return vectors

    def model_fingerprint(self) -> str:
        return "random"


def chunks(data: Path, n_chunks: int) -> Iterator[SearchableItem]:
    """Yield chunks, the same ones whenever as many are asked for."""
    texts = [item.content for name in ("cat", "ndc") for item in BeirLoader(data / "policy" / name).stream()]
    rng = np.random.default_rng(0)
    for number in range(n_chunks):
        content = texts[number % len(texts)]
        if n_chunks > len(texts):
            words, others = content.split(), texts[rng.integers(len(texts))].split()
            content = " ".join([*words[: len(words) // 2], *others[len(others) // 2 :]])
        yield SearchableItem(item_id=str(number), content=content)


def measure(data: Path, n_chunks: int, folder: Path) -> None:
    """Print the times of one collection: each signal alone, then all."""
    vectors = WordVectorEncoder(str(folder / "vectors"))
    queries = [query.text for query in BeirLoader(data / "policy" / "cat").queries()][:: 1000 // 44]
    settings = {name: {f"{other}_weight": float(other == name) for other in SIGNALS} for name in SIGNALS}
    for label, weights in (settings | {"all": {}}).items():
        reranker = MultiSignalReranker("climate", **weights, word_vectors=vectors)  # type: ignore[arg-type]
        searcher = Searcher([FaissRetriever(RandomVectors(), index="flat")], reranker=reranker, depth="all")
        searcher.index(chunks(data, n_chunks), folder / f"index-{n_chunks}")
        begin = time.perf_counter()
        searcher.search(queries[0], 10)
        first = time.perf_counter() - begin
        seconds, computed = [], []
        for query in queries[1:44]:
            begin, before = time.perf_counter(), time.process_time()
            searcher.search(query, 10)
            seconds.append(time.perf_counter() - begin)
            computed.append(time.process_time() - before)
        warm = np.array(seconds[3:]) * 1000
        peak = peak_bytes() / 2**20
        print(
            f"{n_chunks:>8,} chunks  {label:<13} median {np.median(warm):7.1f} ms  p95 {np.quantile(warm, 0.95):7.1f} ms  "
            f"of the processor {np.median(computed[3:]) * 1000:7.1f} ms  "
            f"first {first:6.2f} s  peak so far {peak:,.0f} MB",
            flush=True,
        )


def main(arguments: list[str]) -> int:
    """Measure 1,000 and 100,000 chunks, or as many as are named."""
    if not arguments:
        print(__doc__)
        return 2
    warnings.simplefilter("ignore")
    data = Path(arguments[0])
    with tempfile.TemporaryDirectory() as folder:
        train_word_vectors(BeirLoader(data / "policy" / "cat").stream(), Path(folder) / "vectors", dimension=100, epochs=2)
        for n_chunks in map(int, arguments[1:] or ("1000", "100000")):
            measure(data, n_chunks, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
