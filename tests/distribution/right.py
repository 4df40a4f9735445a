"""A program that uses the package as its documentation says."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from nlp_retrieval import (
    Benchmarker,
    BenchmarkReport,
    Bm25Retriever,
    FaissRetriever,
    Gold,
    JsonlLoader,
    OverlapReranker,
    Query,
    ReciprocalRankFusion,
    RetrievalResult,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core import BaseUserQueryProcessor, RankedLists
from nlp_retrieval.core.tables import RankedList


class Lowercase(BaseUserQueryProcessor):
    """Searches for the query in lower case."""

    name = "lowercase"

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [[nlq.lower()] for nlq in nlqs]


def search(corpus: Path) -> RetrievalResult:
    searcher = Searcher(
        [Bm25Retriever(k1=1.2), FaissRetriever()],
        processor=Lowercase(),
        fusion=ReciprocalRankFusion(k=60),
        reranker=OverlapReranker(blend="rank"),
    )
    searcher.index(JsonlLoader(corpus, id_field="docid"), "indexes/mine")
    searcher.add([SearchableItem(item_id="new", content="A new ferry.", metadata={"year": 2024})])
    found = searcher.search(["one", "two"], k=5, where={"year": {"gte": 2020}})
    assert_type(found, RankedLists)
    assert_type(found[0], RankedList)
    hit = found[0][0]
    assert_type(hit.item.item_id, str)
    assert_type(hit.score, float)
    return hit


def compare(searchers: dict[str, Searcher], corpus: Path) -> BenchmarkReport:
    queries = [Query(query_id="1", text="When does the ferry leave?")]
    gold = [Gold(query_id="1", relevance={"new": 1})]
    report = Benchmarker(searchers, JsonlLoader(corpus), queries, gold, [5, 10], index_path="indexes/mine").run().report
    assert_type(report.configurations[0].measures["recall@5"], float)
    return report


def table(index: Path) -> list[str]:
    searcher = Searcher.open(index)
    return [f"{hit.item.title} {hit.signals['bm25.rank']:.0f}" for hit in searcher.search("ferry")[0]]
