"""One thing in place of a list, a list in place of one, and results of the wrong kind: said, with how it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nlp_retrieval import (
    Benchmarker,
    Bm25Retriever,
    CombSUM,
    Gold,
    JsonlLoader,
    OverlapReranker,
    Query,
    SearchableItem,
    Searcher,
    WeightedSum,
)
from nlp_retrieval.core.components.component import BaseQueryLoader, BaseUserQueryProcessor
from nlp_retrieval.core.components.registry import build, build_as
from nlp_retrieval.errors import ConfigurationError, EngineError, ItemError, QueryError, RetrievalError

ITEM = SearchableItem(item_id="a", content="red fox")
QUERY, GOLD = Query(query_id="q", text="fox"), Gold(query_id="q", relevance={"a": 1})


class Pair(BaseUserQueryProcessor):
    name = "pair"

    def __init__(self, pair: tuple[float, float]) -> None:
        self.pair = pair

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [nlqs]


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    """An index of one item."""
    made = Searcher([Bm25Retriever()])
    made.index([ITEM], tmp_path / "index")
    return made


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Searcher(Bm25Retriever()), "retrievers=Bm25Retriever(): Input should be a list or a mapping"),
        (lambda: Searcher("bm25"), "retrievers='bm25': Input should be a list or a mapping"),
        (lambda: Searcher(["bm25"], depth=2**64), "depth=18446744073709551616: Input should have at most 64 bits"),
        (
            lambda: Searcher([5]),
            "retrievers[0]=5: Input should be an instance of BaseRetriever or an instance of Searcher or a valid string or a",
        ),
        (
            lambda: Searcher([Bm25Retriever()], fusion=[CombSUM()]),
            "fusion=[CombSUM()]: Input should be an instance of BaseFusion",
        ),
        (lambda: WeightedSum(weights={"a": 1, "b": -2}), "weights['b']=-2: Input should be greater than or equal to 0"),
        (lambda: WeightedSum(weights=[1, float("nan")]), "weights[1]=nan: Input should be a finite number"),
        (lambda: Pair((1.0,)), "pair=[1.0]: nothing is given for 1"),
        (lambda: JsonlLoader("a.jsonl", id_field=5), "id_field=5: Input should be a valid string"),
        (lambda: build("searchers", {"name": "searcher", "retrievers": {"name": "bm25"}}), "a list too: [{name: ...}]"),
        (
            lambda: build("processors", {"name": "chain", "processors": "clauses"}),
            "processors='clauses': Input should be a list",
        ),
        (
            lambda: build_as(BaseQueryLoader, "loaders", {"loader": "jsonl", "path": "x"}, "queries"),
            "queries: 'jsonl' is not a BaseQueryLoader; these are: beir, hotpotqa, hover",
        ),
    ],
)
def test_a_component_that_is_given_otherwise_is_told_how(make: Callable[[], object], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert said in str(caught.value)


@pytest.mark.parametrize("given", [ITEM, "abc", b"abc"])
def test_items_that_are_no_list_are_told_how(searcher: Searcher, given: Any, tmp_path: Path) -> None:
    attempts = [searcher.add, searcher.update]
    attempts += [lambda items, part=part: part.index(items, tmp_path / "new") for part in (searcher, Bm25Retriever())]
    for attempt in attempts:
        with pytest.raises(ItemError, match=r"write \[item\]|or \[item, \.\.\.\]"):
            attempt(given)
    assert not (tmp_path / "new").exists()
    assert len(searcher.search("fox")[0]) == 1


def test_a_retriever_takes_a_loader_as_a_searcher_does(tmp_path: Path) -> None:
    (tmp_path / "items.jsonl").write_text('{"id": "a", "content": "red fox"}\n')
    report = Bm25Retriever().index(JsonlLoader(tmp_path / "items.jsonl"), tmp_path / "index")
    assert report.n_items == 1


def test_a_loader_that_is_a_class_is_told(searcher: Searcher, tmp_path: Path) -> None:
    with pytest.raises(ItemError, match=r"not as the class JsonlLoader; write JsonlLoader\(\.\.\.\)"):
        searcher.index(JsonlLoader, tmp_path / "index")  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [5, None])
def test_ids_that_are_no_list_are_told_how(searcher: Searcher, given: Any) -> None:
    with pytest.raises(ItemError, match=r"item ids come as a list, not as"):
        searcher.delete(given)


@pytest.mark.parametrize("path", [5, None, b"index"])
def test_an_index_directory_that_is_no_path_is_told(searcher: Searcher, path: Any) -> None:
    for attempt in (searcher.open, lambda path: searcher.index([ITEM], path)):
        with pytest.raises(ConfigurationError, match="named by its path"):
            attempt(path)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([1.0], 'returned list and no columns by name; return {"score": scores}'),
        (1.0, "returned float and no columns"),
        ({"score": 1.0}, "an array [] of float64 as 'score' for 1 pairs"),
        ({"score": [[1.0]]}, "an array [1, 1] of float64"),
        ({"score": ["high"]}, "an array [1] of <U4 as 'score'"),
        ({"score": [float("nan")]}, "returned nan as 'score' for 1 of 1 pairs"),
    ],
)
def test_scores_of_a_reranker_that_are_no_columns_are_told(searcher: Searcher, returned: Any, said: str) -> None:
    class Odd(OverlapReranker):
        name = "odd"

        def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Any:
            return returned

    composed = Searcher([Bm25Retriever()], reranker=Odd()).open(searcher.opened.path)
    with pytest.raises(EngineError) as caught:
        composed.search("fox")
    assert said in str(caught.value)


def test_a_list_of_scores_under_its_name_is_taken(searcher: Searcher) -> None:
    class Plain(OverlapReranker):
        name = "plain"

        def score_pairs(self, queries: list[str], items: list[SearchableItem]) -> Any:
            return {"score": [2.0] * len(queries)}

    reranked = Searcher([Bm25Retriever()], reranker=Plain(blend="replace")).open(searcher.opened.path)
    assert reranked.search("fox")[0][0].score == 2.0


def test_hits_of_an_engine_that_are_none_are_told(tmp_path: Path) -> None:
    class Odd(Bm25Retriever):
        name = "odd"

        def search_batch(self, queries: list[str], k: int, allowed: Any) -> Any:
            return [[("a", 1.0)]]

    composed = Searcher([Odd()])
    composed.index([ITEM], tmp_path / "odd")
    with pytest.raises(EngineError, match="returned list and no Hits"):
        composed.search("fox")


@pytest.mark.parametrize("results", [None, "abc", [[ITEM]]])
def test_results_that_are_none_are_told(searcher: Searcher, results: Any) -> None:
    with pytest.raises(QueryError, match="results must be a list"):
        OverlapReranker().rerank(["fox"], results, 3)
    with pytest.raises(QueryError, match="results must be a list"):
        searcher.explain("fox", results)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"searchers": Bm25Retriever()}, "searchers are given as a list, or by name, not as Bm25Retriever"),
        ({"searchers": [5]}, "searchers[0] is int, not a searcher"),
        ({"loader": 5}, "loader: expected a BaseLoader such as JsonlLoader(path), found 5"),
        ({"queries": QUERY}, "queries: one query ('q') is given and a list is expected"),
        ({"queries": [5]}, "queries: query 1 is 5 (int); expected a Query"),
        ({"gold": GOLD}, "gold: one gold ('q') is given and a list is expected"),
        ({"gold": [{"a": 1}]}, 'gold: judgement 1: no column of the query, such as "query_id"'),
        ({"k_values": 5}, "k_values=5: a list is expected; write [5]"),
        ({"index_path": 5}, "index_path: expected a path, found 5"),
    ],
)
def test_arguments_of_a_benchmark_that_are_of_another_kind_are_told(
    searcher: Searcher, changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    right = {"searchers": {"a": searcher}, "loader": JsonlLoader("x"), "queries": [QUERY], "gold": [GOLD], "k_values": [5]}
    with pytest.raises(RetrievalError) as caught:
        Benchmarker(**({"index_path": tmp_path / "index"} | right | changed))
    assert said in str(caught.value)
