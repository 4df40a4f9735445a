"""What composing costs: dense search, a searcher around one retriever, a hybrid, and a graph, against the libraries by hand."""

from __future__ import annotations

from collections.abc import Callable

import bm25s
import faiss
import numpy as np
import Stemmer

from bench.common import Data, Row, at_least, at_most, best_of_each, median_ms, record_of
from nlp_retrieval import BeirLoader, Bm25Retriever, FaissRetriever, Searcher, SentenceTransformerEncoder
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.context import changed_context
from nlp_retrieval.core.index.generation import open_generation
from nlp_retrieval.core.search.retriever import Stages
from nlp_retrieval.encoders import Vectors


class RememberedQueries(Stages):
    """Query vectors that were computed before, ``[queries, dimension]``, so that what is timed is not the model."""

    def __init__(self, queries: list[str], vectors: Vectors) -> None:
        self.rows = {query: row for row, query in enumerate(queries)}
        self.vectors = vectors

    def encoded(self, encoder: Component, queries: list[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
        del encoder, encode
        found: Vectors = self.vectors[[self.rows[query] for query in queries]]
        return found


def measure(data: Data) -> list[Row]:
    """Dense search, a searcher's overhead, hybrid throughput and hybrid latency."""
    encoder = SentenceTransformerEncoder()
    dense, lexical = FaissRetriever(encoder), Bm25Retriever(backend="numba")
    path = data.work / "wiki-index"
    Searcher([lexical, dense]).index(BeirLoader(str(data.corpus)), path)
    questions = data.questions()
    vectors = encoder.encode_queries(questions)
    passages = np.load(record_of(path, dense)[1] / "vectors.npy")
    return [
        _dense(dense, encoder, passages, questions, str(path)),
        _overhead(Bm25Retriever(backend="numba"), questions, str(path)),
        *_hybrid(data, passages, vectors, questions, str(path)),
    ]


def _dense(
    retriever: FaissRetriever, encoder: SentenceTransformerEncoder, passages: Vectors, questions: list[str], path: str
) -> Row:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(encoder.folder.path), device="cpu")
    index = faiss.IndexFlatIP(passages.shape[1])
    index.add(passages)
    searcher = Searcher([retriever]).open(path)
    queries = questions[:500]

    def by_hand() -> None:
        index.search(model.encode(queries, batch_size=64, normalize_embeddings=True, show_progress_bar=False), 100)

    def ours() -> None:
        searcher.ranked(searcher.open_retrievers(), queries, [[query] for query in queries], 100, None)

    by_hand()
    ours()
    ours_s, hand_s = best_of_each(3, ours, by_hand)
    detail = f"{ours_s:.2f} s; by hand {hand_s:.2f} s; 500 queries, k=100, encoding counted"
    return at_most("dense search against encode + IndexFlatIP.search", 1.1, ours_s / hand_s, detail)


def _overhead(retriever: Bm25Retriever, questions: list[str], path: str) -> Row:
    searcher = Searcher([retriever]).open(path)
    processed = [[question] for question in questions]

    def alone() -> None:
        retriever.retrieve(processed, path, 20)

    def composed() -> None:
        searcher.search(questions, 20)

    alone()
    composed()
    composed_s, alone_s = best_of_each(9, composed, alone)
    detail = f"{composed_s:.3f} s; retriever alone {alone_s:.3f} s; bm25s, 1,000 queries, top 20"
    return at_most("Searcher around one retriever", 1.05, composed_s / alone_s, detail)


def _hybrid(data: Data, passages: Vectors, vectors: Vectors, questions: list[str], path: str) -> list[Row]:
    texts = data.texts()
    items = open_generation(path).items
    stemmer = Stemmer.Stemmer("porter")
    engine = bm25s.BM25(k1=0.9, b=0.4)
    engine.index(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)
    engine.activate_numba_scorer()
    index = faiss.IndexFlatIP(passages.shape[1])
    index.add(passages)
    searcher = Searcher([Bm25Retriever(backend="numba"), FaissRetriever()], depth=20).open(path)
    everything = items.items(np.arange(len(items)))

    def tokens(queries: list[str]) -> list[list[str]]:
        split = bm25s.tokenize(queries, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False)
        return [list(words) for words in split]

    def lexical_by_hand(queries: list[str], threads: int) -> np.ndarray:
        found: np.ndarray = engine.retrieve(
            tokens(queries), k=20, show_progress=False, backend_selection="numba", n_threads=threads
        ).documents
        return found

    def by_hand() -> list[list[object]]:
        lexical = lexical_by_hand(questions, 2)
        _, dense = index.search(vectors, 20)
        results: list[list[object]] = []
        for one, other in zip(lexical.tolist(), dense.tolist(), strict=True):
            scores: dict[int, float] = {}
            for ranking in (one, other):
                for rank, row in enumerate(ranking, start=1):
                    scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
            best = sorted(scores, key=lambda row: -scores[row])[:20]
            results.append([everything[row] for row in best])
        return results

    def ours() -> object:
        return searcher.search(questions, 20)

    with changed_context(stages=RememberedQueries(questions, vectors)):
        by_hand()
        ours()
        ours_s, hand_s = best_of_each(5, ours, by_hand)
        ours_ms = median_ms(lambda query: searcher.search([query], 20), questions[:200])
    rate, hand_rate = len(questions) / ours_s, len(questions) / hand_s
    detail = f"{rate:,.0f} queries/s; by hand {hand_rate:,.0f}; bm25s + flat FAISS + RRF, depth 20, items, signals"
    throughput = at_least("hybrid throughput, 1,000 questions in one call", 0.6, rate / hand_rate, detail)
    sample = questions[:200]
    lexical_ms = median_ms(lambda query: lexical_by_hand([query], 1), sample)
    dense_ms = median_ms(lambda number: index.search(vectors[number : number + 1], 20), range(len(sample)))
    detail = f"{ours_ms:.2f} ms; bm25s alone {lexical_ms:.2f}, FAISS alone {dense_ms:.2f}"
    single = at_most("the same, one query a call, without encoding", 1.25, ours_ms / (lexical_ms + dense_ms), detail)
    return [throughput, single]
