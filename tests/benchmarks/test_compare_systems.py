"""Several systems compared in one call, and benchmarks that are given lists, tables and dicts."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pandas
import pytest

from nlp_retrieval import Benchmarker, Bm25Retriever, OverlapReranker, Searcher, TrecRun, WeightedSum, compare_systems
from nlp_retrieval.benchmarks.grid import named_searchers
from nlp_retrieval.errors import ConfigurationError, GoldError, ItemError, QueryError

from .small_benchmark import GOLD, QUERIES, TEXTS, TITLES, benchmarker, searchers

CORPUS = pandas.DataFrame({"docno": [f"d{row}" for row in range(len(TEXTS))], "text": TEXTS, "title": TITLES})
TOPICS = pandas.DataFrame([{"qid": each.query_id, "query": each.text, "hops": each.metadata["hops"]} for each in QUERIES])
QRELS = pandas.DataFrame(
    [(gold.query_id, item, grade) for gold in GOLD for item, grade in gold.relevance.items()],
    columns=["qid", "docno", "relevance"],
)


def measures_of(run: Any) -> dict[str, dict[str, float]]:
    return {result.name: result.measures for result in run.report.configurations}


def test_one_call_gives_the_figures_of_a_benchmark(tmp_path: Path) -> None:
    expected = benchmarker(tmp_path / "index").run()
    given = searchers()
    run = compare_systems(given, TOPICS, QRELS, CORPUS, k_values=[3, 5, 10], latency_queries=3, resamples=200)
    assert measures_of(run) == measures_of(expected)
    assert run.report.comparisons == expected.report.comparisons
    assert run.report.manifest["corpus"]["fingerprint"] == expected.report.manifest["corpus"]["fingerprint"]
    assert run.report.query_counts == expected.report.query_counts
    assert "<table>" in run._repr_html_()
    with pytest.raises(Exception, match="has no index yet"):
        given["bm25"].search("fox")  # as it was before: the index of the comparison is gone


def test_a_list_of_systems_that_have_an_index_needs_no_corpus(tmp_path: Path) -> None:
    first, second = Searcher([Bm25Retriever()]), Searcher([Bm25Retriever(b=0.0)])
    first.index(CORPUS, tmp_path / "index")
    run = compare_systems([first, second], dict(zip(TOPICS["qid"], TOPICS["query"], strict=True)), GOLD, measures=["ndcg@10"])
    assert measures_of(run) == {
        name: {"ndcg@10": result["ndcg@10"]}
        for name, result in measures_of(
            compare_systems({"bm25 b=0.4": first, "bm25 b=0": second}, TOPICS, QRELS, iter(CORPUS.to_dict("records")))
        ).items()
    }
    assert first.opened.path == second.opened.path == tmp_path / "index"


def test_searchers_of_a_list_are_named_by_their_parts_and_what_distinguishes_them() -> None:
    bm25, lenient = Bm25Retriever(), Bm25Retriever(b=0.0)
    apart = [Searcher([bm25]), Searcher(["faiss"]), TrecRun("runs/theirs.txt")]
    assert list(named_searchers(apart)) == ["bm25", "faiss", "theirs"]
    alike = [Searcher([bm25]), Searcher([lenient]), Searcher([bm25], depth=7)]
    assert list(named_searchers(alike)) == ["bm25 b=0.4 depth=none", "bm25 b=0", "bm25 b=0.4 depth=7"]
    several = [
        Searcher([bm25, "faiss"]),
        Searcher([bm25, "faiss"], fusion=WeightedSum()),
        Searcher([bm25], processor="clauses", reranker=OverlapReranker()),
        bm25 >> OverlapReranker() % 20 >> OverlapReranker() % 5,
    ]
    assert list(named_searchers(several)) == [
        "bm25+faiss fusion=rrf",
        "bm25+faiss fusion=weighted_sum",
        "clauses >> bm25 >> overlap",
        "bm25 >> overlap >> overlap",
    ]
    with pytest.raises(ConfigurationError, match=r"searchers 1 and 3 are equal, or .* \(bm25\); leave one out"):
        named_searchers([Searcher([bm25]), Searcher(["faiss"]), Searcher(["bm25"])])


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"searchers": {" \n": Searcher(["bm25"])}}, ConfigurationError, r"is called ' \\n'; give it a name"),
        ({"searchers": [Searcher(["bm25"]), 5]}, ConfigurationError, r"searchers\[1\] is int, not a searcher"),
        ({"searchers": "bm25"}, ConfigurationError, "expected searchers by name, .* found 'bm25'"),
        ({"searchers": []}, ConfigurationError, "at least one searcher"),
        ({"queries": TOPICS.drop(columns="query")}, QueryError, "queries: DataFrame, row 1: no column with the query"),
        ({"gold": QRELS.drop(columns="docno")}, GoldError, "gold: DataFrame, row 1: no column of the item"),
        ({"loader": CORPUS.drop(columns="text")}, ItemError, "DataFrame, row 1: no column with the text"),
        ({"loader": "corpus.csv"}, ConfigurationError, "loader: Input should be an instance of BaseLoader"),
    ],
)
def test_a_benchmark_of_a_bad_shape_is_an_error(
    tmp_path: Path, changed: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        benchmarker(tmp_path / "index", **changed).run()


def test_a_benchmark_takes_a_list_of_searchers_retrievers_names_and_settings_and_needs_no_folder() -> None:
    entrants = [Searcher(["bm25"], reranker="overlap"), Bm25Retriever(k1=1.5), "bm25", {"retrievers": ["bm25"], "depth": 5}]
    benchmark = Benchmarker(entrants, CORPUS, TOPICS, QRELS)
    run = benchmark.run()
    names = ["bm25 k1=0.9 >> overlap", "bm25 k1=1.5", "bm25 k1=0.9 depth=none", "bm25 k1=0.9 depth=5"]
    assert [result.name for result in run.report.configurations] == names
    folder = next(iter(benchmark.searchers.values())).opened.path
    assert folder.is_dir()
    del benchmark, run
    gc.collect()
    assert not folder.exists()
