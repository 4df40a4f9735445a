"""One searcher asked by several threads at once, one query a call: queries per second.

Vectors are hashed words, of MiniLM's size: what is measured is the searcher and not a model, so the texts need not be encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.common import Data, Row, noted, seconds_of
from bench.memory import HashingEncoder
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, PyseriniRetriever, Searcher

THREADS = (1, 2, 4, 8)
QUERIES = 400
TOP = 10


def measure(data: Data) -> list[Row]:
    """Throughput of lexical, dense and hybrid searchers over the wiki collection; the encoder costs next to nothing."""
    questions = data.questions()[:QUERIES]
    lexical, dense, lucene = Bm25Retriever(backend="numba"), FaissRetriever(HashingEncoder()), PyseriniRetriever()
    path = data.work / "hashed-wiki-index"
    Searcher([lexical, dense, lucene]).index(BeirLoader(str(data.corpus)), path)
    searchers = {
        "bm25s": Searcher([lexical]),
        "faiss, flat": Searcher([dense]),
        "pyserini": Searcher([lucene]),
        "hybrid: bm25s + faiss + RRF, depth 20": Searcher([lexical, dense], depth=20),
    }
    return [_row(name, searcher.open(path), questions) for name, searcher in searchers.items()]


def _row(name: str, searcher: Searcher, questions: Sequence[str]) -> Row:
    for question in questions[:20]:
        searcher.search(question, TOP)
    rates = [max(_rate(searcher, questions, threads) for _ in range(3)) for threads in THREADS]
    measured = ", ".join(f"{rate:,.0f} from {threads}" for rate, threads in zip(rates, THREADS, strict=True))
    return noted(f"{name}: queries/s of one searcher, by threads", f"{measured} (one query a call, top {TOP}, items)")


def _rate(searcher: Searcher, questions: Sequence[str], threads: int) -> float:
    with ThreadPoolExecutor(threads) as pool:
        return len(questions) / seconds_of(lambda: list(pool.map(lambda question: searcher.search(question, TOP), questions)))
