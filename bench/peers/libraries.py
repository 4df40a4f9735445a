"""Hybrid search by one library, in a process of its own; run by ``bench.peers``, in a venv apart for all but ours.

``python libraries.py NAME FOLDER``: the folder holds ``texts.json``, ``questions.json``, and unit vectors of both,
``passages.npy`` and ``questions.npy``, so that no library encodes anything. Each takes 100 candidates by BM25 and 100 by
vectors, fuses them by reciprocal rank with a constant of 60 where it can, and returns 10; how it splits words and all else
is its default.

Prints JSON: the rows that it finds for each question, and seconds of importing, indexing, 250 questions in each call (or as the
library does many) and of each of the first 200 alone, as many as two minutes allow; peak memory in MB before indexing, with all
data loaded, and at the end.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEPTH, K, CONSTANT = 100, 10, 60
ALONE, AT_ONCE, LONGEST = 200, 250, 120
Lists = list[list[int]]
Many = Callable[[list[str]], Lists]


class Vectors:
    """The vector of each text, as if a model had made it."""

    def __init__(self, folder: Path) -> None:
        import numpy as np

        self.texts: list[str] = json.loads((folder / "texts.json").read_text("utf-8"))
        self.questions: list[str] = json.loads((folder / "questions.json").read_text("utf-8"))
        self.passages, asked = np.load(folder / "passages.npy"), np.load(folder / "questions.npy")
        self._of = dict(zip(self.texts, self.passages, strict=True)) | dict(zip(self.questions, asked, strict=True))

    def __call__(self, texts: list[str]) -> Any:
        import numpy as np

        return np.stack([self._of[text] for text in texts])


def nlp_retrieval() -> Callable[[Vectors, Path], Many]:
    """Searcher over Bm25Retriever and FaissRetriever."""
    from nlp_retrieval import Bm25Retriever, FaissRetriever, SearchableItem, Searcher
    from nlp_retrieval.encoders import BaseEncoder

    def made(vectors: Vectors, folder: Path) -> Many:
        class Lookup(BaseEncoder):
            name = "lookup"
            dimension = vectors.passages.shape[1]

            def encode_passages(self, passages: list[str]) -> Any:
                return vectors(passages)

            encode_queries = encode_passages

            def model_fingerprint(self) -> str:
                return "vectors of the measurement"

        searcher = Searcher([Bm25Retriever(), FaissRetriever(Lookup())])
        searcher.index(
            (SearchableItem(item_id=str(row), content=text) for row, text in enumerate(vectors.texts)), folder / "index"
        )
        return lambda texts: [[int(hit.item.item_id) for hit in hits] for hits in searcher.search(texts, K)]

    return made


def langchain() -> Callable[[Vectors, Path], Many]:
    """EnsembleRetriever over BM25Retriever (rank_bm25) and FAISS."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS
    from langchain_core.embeddings import Embeddings

    class Lookup(Embeddings):
        def __init__(self, vectors: Vectors) -> None:
            self.vectors = vectors

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [list(map(float, row)) for row in self.vectors(texts)]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    def made(vectors: Vectors, _: Path) -> Many:
        rows = [{"row": row} for row in range(len(vectors.texts))]
        dense = FAISS.from_embeddings(
            zip(vectors.texts, vectors.passages.tolist(), strict=True), Lookup(vectors), metadatas=rows
        )
        both = EnsembleRetriever(
            retrievers=[
                BM25Retriever.from_texts(vectors.texts, metadatas=rows, k=DEPTH),
                dense.as_retriever(search_kwargs={"k": DEPTH}),
            ],
            weights=[0.5, 0.5],
            c=CONSTANT,
        )
        return lambda texts: [[one.metadata["row"] for one in found[:K]] for found in both.batch(texts)]

    return made


def llama_index() -> Callable[[Vectors, Path], Many]:
    """QueryFusionRetriever over BM25Retriever (bm25s) and FaissVectorStore."""
    import faiss
    from llama_index.core import StorageContext, VectorStoreIndex
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever
    from llama_index.vector_stores.faiss import FaissVectorStore

    class Lookup(BaseEmbedding):
        vectors: Any

        def _get_text_embedding(self, text: str) -> list[float]:
            return list(map(float, self.vectors([text])[0]))

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    def made(vectors: Vectors, _: Path) -> Many:
        nodes = [
            TextNode(text=text, id_=str(row), embedding=vector)
            for row, (text, vector) in enumerate(zip(vectors.texts, vectors.passages.tolist(), strict=True))
        ]
        store = FaissVectorStore(faiss_index=faiss.IndexFlatIP(vectors.passages.shape[1]))
        context = StorageContext.from_defaults(vector_store=store)
        dense = VectorStoreIndex(nodes, storage_context=context, embed_model=Lookup(vectors=vectors))
        lexical = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=DEPTH)
        both = QueryFusionRetriever(
            [lexical, dense.as_retriever(similarity_top_k=DEPTH)],
            llm=MockLLM(),
            mode="reciprocal_rerank",
            similarity_top_k=K,
            num_queries=1,
            use_async=False,
        )
        return lambda texts: [[int(one.node.node_id) for one in both.retrieve(text)] for text in texts]

    return made


def haystack() -> Callable[[Vectors, Path], Many]:
    """A pipeline of InMemoryBM25Retriever, InMemoryEmbeddingRetriever and DocumentJoiner."""
    from haystack import Document, Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    def made(vectors: Vectors, _: Path) -> Many:
        store = InMemoryDocumentStore()
        store.write_documents(
            [
                Document(id=str(row), content=text, embedding=vector)
                for row, (text, vector) in enumerate(zip(vectors.texts, vectors.passages.tolist(), strict=True))
            ]
        )
        both = Pipeline()
        both.add_component("lexical", InMemoryBM25Retriever(store, top_k=DEPTH))
        both.add_component("dense", InMemoryEmbeddingRetriever(store, top_k=DEPTH))
        both.add_component("joined", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=K))
        both.connect("lexical", "joined")
        both.connect("dense", "joined")

        def one(text: str) -> list[int]:
            asked = {"lexical": {"query": text}, "dense": {"query_embedding": vectors([text])[0].tolist()}}
            return [int(document.id) for document in both.run(asked)["joined"]["documents"]]

        return lambda texts: [one(text) for text in texts]

    return made


def txtai() -> Callable[[Vectors, Path], Many]:
    """Embeddings with hybrid=True; it weighs scores by halves, not ranks."""
    from txtai import Embeddings

    def made(vectors: Vectors, _: Path) -> Many:
        def transform(texts: list[str]) -> Any:  # it takes functions alone
            return vectors(texts)

        both = Embeddings(method="external", transform=transform, hybrid=True, content=False)
        both.index((row, text, None) for row, text in enumerate(vectors.texts))
        return lambda texts: [[row for row, _ in found] for found in both.batchsearch(texts, K)]

    return made


def lancedb() -> Callable[[Vectors, Path], Many]:
    """A table with a vector column, searched exactly, and a full-text index; RRFReranker."""
    import lancedb as library
    from lancedb.rerankers import RRFReranker

    def made(vectors: Vectors, folder: Path) -> Many:
        rows = [
            {"row": row, "text": text, "vector": vector}
            for row, (text, vector) in enumerate(zip(vectors.texts, vectors.passages, strict=True))
        ]
        table = library.connect(folder / "lance").create_table("passages", rows)
        table.create_fts_index("text")
        table.wait_for_index(["text_idx"])
        reranker = RRFReranker(CONSTANT)

        def one(text: str) -> list[int]:
            query = table.search(query_type="hybrid").vector(vectors([text])[0]).text(text).distance_type("dot")
            return [found["row"] for found in query.limit(DEPTH).rerank(reranker).to_list()[:K]]

        return lambda texts: [one(text) for text in texts]

    return made


def pyterrier() -> Callable[[Vectors, Path], Many]:
    """RRFusion over PisaIndex.bm25 and FlexIndex (pyterrier-pisa, pyterrier-dr)."""
    from pandas import DataFrame
    from pyterrier_alpha.fusion import RRFusion
    from pyterrier_dr import FlexIndex
    from pyterrier_pisa import PisaIndex

    def made(vectors: Vectors, folder: Path) -> Many:
        lexical, dense = PisaIndex(str(folder / "pisa"), text_field="text"), FlexIndex(folder / "flex", verbose=False)
        lexical.index({"docno": str(row), "text": text} for row, text in enumerate(vectors.texts))
        dense.index({"docno": str(row), "doc_vec": vector} for row, vector in enumerate(vectors.passages))
        parts = lexical.bm25(num_results=DEPTH), dense.np_retriever(num_results=DEPTH, drop_query_vec=True)
        both = RRFusion(*parts, k=CONSTANT, num_results=K)

        def many(texts: list[str]) -> Lists:
            names = [str(number) for number in range(len(texts))]
            found = both.transform(DataFrame({"qid": names, "query": texts, "query_vec": list(vectors(texts))}))
            lists = {name: rows["docno"].astype(int).tolist() for name, rows in found.groupby("qid")}
            return [lists.get(name, []) for name in names]

        return many

    return made


LIBRARIES = {one.__name__: one for one in (nlp_retrieval, langchain, llama_index, haystack, txtai, lancedb, pyterrier)}


def peak() -> float:
    """The most memory that this process has had, in MB; ``ru_maxrss`` would take over that of what started it."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


def asked(many: Many, parts: list[list[str]]) -> tuple[Lists, list[float]]:
    """What is found for the questions of as many parts as there is time for, and the seconds of each part."""
    found, seconds = [], []
    for part in parts:
        begin = time.perf_counter()
        found.extend(many(part))
        seconds.append(time.perf_counter() - begin)
        if sum(seconds) > LONGEST:
            break
    return found, seconds


def main(name: str, folder: Path) -> dict[str, Any]:
    """Measure one library."""
    begin = time.perf_counter()
    make = LIBRARIES[name]()
    imported = time.perf_counter() - begin
    vectors = Vectors(folder)
    before = peak()
    with tempfile.TemporaryDirectory() as place:
        begin = time.perf_counter()
        many = make(vectors, Path(place))
        built = time.perf_counter() - begin
        many(vectors.questions[-2:])  # what is opened or compiled at first
        _, alone = asked(many, [[question] for question in vectors.questions[:ALONE]])
        found, together = asked(
            many, [vectors.questions[first : first + AT_ONCE] for first in range(0, len(vectors.questions), AT_ONCE)]
        )
    seconds = {"import": imported, "build": built, "alone": alone, "together": together}
    return {"rows": found, "seconds": seconds, "before": before, "peak": peak()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]))))
