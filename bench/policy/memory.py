"""What a search that scores every chunk keeps in memory: ``python -m bench.policy.memory DATA [CHUNKS ...]``.

DATA holds ``policy/``; chunks, vectors and signals are those of ``bench.policy.signals``, 100,000 chunks where nothing is said.
One process indexes them, another opens the index and asks 40 questions, top 10, all four signals of every chunk. Its peak
counts all that it holds, the interpreter and files that it has mapped included, but no encoder of sentences: vectors are
random. The budget is 500 MB.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.common import aside, peak_bytes
from bench.policy.signals import RandomVectors, chunks
from nlp_retrieval import BeirLoader, FaissRetriever, MultiSignalReranker, Searcher, WordVectorEncoder
from nlp_retrieval.encoders import train_word_vectors

BUDGET, QUESTIONS = 500, 40


def searcher_in(folder: Path) -> Searcher:
    """What is measured, with its files in a folder."""
    reranker = MultiSignalReranker("climate", word_vectors=WordVectorEncoder(str(folder / "vectors")))
    return Searcher([FaissRetriever(RandomVectors(), index="flat")], reranker=reranker, depth="all")


def build(data: Path, n_chunks: int, folder: Path) -> None:
    """Train word vectors, and index."""
    train_word_vectors(BeirLoader(data / "policy" / "cat").stream(), folder / "vectors", dimension=100, epochs=2)
    searcher_in(folder).index(chunks(data, n_chunks), folder / "index")


def search(data: Path, folder: Path) -> None:
    """Open the index and ask."""
    queries = [query.text for query in BeirLoader(data / "policy" / "cat").queries()][:: 1000 // QUESTIONS][:QUESTIONS]
    searcher = searcher_in(folder).open(folder / "index")
    seconds = []
    for query in queries:
        begin = time.perf_counter()
        searcher.search(query, 10)
        seconds.append(time.perf_counter() - begin)
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())
    measured = {
        "peak": peak_bytes() / 2**20,
        "files": int(status["RssFile"].split()[0]) / 1024,
        "median_ms": 1000 * statistics.median(seconds[3:]),
    }
    sys.stdout.write(json.dumps(measured) + "\n")


def main(arguments: list[str]) -> int:
    """Print a line for each number of chunks; parts of it run in processes of their own."""
    if arguments[:1] == ["build"]:
        build(Path(arguments[1]), int(arguments[2]), Path(arguments[3]))
        sys.stdout.write("{}\n")
    elif arguments[:1] == ["search"]:
        search(Path(arguments[1]), Path(arguments[2]))
    elif not arguments:
        sys.stdout.write("usage: python -m bench.policy.memory DATA [CHUNKS ...]   (DATA holds the folder policy)\n")
        return 2
    else:
        for n_chunks in map(int, arguments[1:] or ["100000"]):
            with tempfile.TemporaryDirectory() as folder:
                aside("bench.policy.memory", "build", arguments[0], n_chunks, folder)
                found = aside("bench.policy.memory", "search", arguments[0], folder)
            verdict = "within" if found["peak"] <= BUDGET else "above"
            sys.stdout.write(
                f"{n_chunks:,} chunks: peak {found['peak']:,.0f} MB, {verdict} the budget of {BUDGET} (mapped files at the end "
                f"{found['files']:,.0f} MB); {found['median_ms']:.0f} ms a question\n"
            )
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
