"""Two runs that differ in one parameter differ in its column alone, and a setting has one column in every benchmark."""

from __future__ import annotations

import pytest

from nlp_retrieval import (
    Bm25Retriever,
    FaissRetriever,
    LinkGraphRetriever,
    OverlapReranker,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.reports.trackers import LoggedRun, _comparison, flat_config, runs_of
from reports.report_data import configuration, report_of

LEXICAL = Bm25Retriever()
GRAPH = LinkGraphRetriever(seeds=[LEXICAL])


def faiss(model: str, **changed: object) -> FaissRetriever:
    return FaissRetriever(SentenceTransformerEncoder(model, **changed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "keys"),
    [
        (Searcher([LEXICAL]), Searcher([Bm25Retriever(k1=1.2)]), "bm25/k1"),
        (Searcher([LEXICAL]), Searcher([LEXICAL], depth=40), "depth"),
        (Searcher([faiss("a/mini")]), Searcher([faiss("a/large")]), "encoder faiss/encoder/model"),
        (Searcher([LEXICAL, Bm25Retriever(b=0.1)]), Searcher([LEXICAL, Bm25Retriever(b=0.2)]), "bm25-2/b"),
        (Searcher({"lex": LEXICAL}), Searcher([Bm25Retriever(k1=2.0)]), "bm25/k1"),
        (
            Searcher([LEXICAL], reranker=[OverlapReranker(), OverlapReranker()]),
            Searcher([LEXICAL], reranker=[OverlapReranker(), OverlapReranker(blend="replace")]),
            "reranker/2/blend",
        ),
        (Searcher([GRAPH]), Searcher([LinkGraphRetriever(seeds=[Bm25Retriever(k1=1.2)])]), "link_graph/seeds/bm25/k1"),
    ],
)
def test_one_other_parameter_is_one_other_column(one: Searcher, other: Searcher, keys: str) -> None:
    found = flat_config(one.config), flat_config(other.config)
    assert {key for key in found[0].keys() | found[1].keys() if found[0].get(key) != found[1].get(key)} == set(keys.split())


def test_parts_are_columns_and_every_value_is_plain() -> None:
    hybrid = Searcher([LEXICAL, faiss("x/all-mini"), GRAPH], reranker=OverlapReranker())
    found = flat_config(hybrid.config)
    assert {key: found[key] for key in ("retrievers", "encoder", "links", "fusion", "reranker", "processor", "bm25/b")} == {
        "retrievers": "bm25+faiss+link_graph",
        "encoder": "all-mini",
        "links": "title_mentions+shared_entities",
        "fusion": "rrf",
        "reranker": "overlap",
        "processor": "none",
        "bm25/b": 0.4,
    }
    assert all(isinstance(value, str | bool | int | float | list) for value in found.values())
    of_others = {"boosts": [{"field": "title", "by": 2}], "limits": {"seconds": 5, "calls": None}}
    assert flat_config(of_others) == {"boosts": of_others["boosts"], "limits/seconds": 5}
    for retrievers in (["bm25", {"name": "faiss", "depth": 7}], {"lexical": "bm25", "dense": {"name": "faiss", "depth": 7}}):
        assert flat_config({"name": "theirs", "retrievers": retrievers}) == {
            "searcher": "theirs", "retrievers": "bm25+faiss", "faiss/depth": 7,
        }  # fmt: skip


def test_a_column_of_the_comparison_is_of_one_type() -> None:
    """W&B refuses a table with a column of numbers and texts."""
    searchers = [Searcher([LEXICAL], depth=depth) for depth in (None, 10, "all")]
    figures = {"mrr@5": 0.5, "rbp(p=0.8)@5": 0.4, "hops=2/rbp(p=0.8)@5": 0.3}
    runs = [LoggedRun(str(each.depth), flat_config(each.config), figures) for each in searchers]
    columns, rows = _comparison(runs, ("hops=2/",))
    assert [row[columns.index("depth")] for row in rows] == [None, "10", "all"]
    assert [row[-2:] for row in rows] == [[0.5, 0.4]] * 3
    assert columns[-2:] == ["mrr@5", "rbp(p=0.8)@5"]
    assert _comparison([LoggedRun("alone", {})], ()) == (["configuration"], [["alone"]])


def test_a_curve_and_a_figure_have_different_names() -> None:
    measures = {"map": 0.3, "map@5": 0.1, "map@10": 0.2}
    alone, _ = runs_of(report_of(configuration("alone", measures, {"hops=2": measures})))
    assert (alone.figures["map"], alone.figures["hops=2/map"]) == (0.3, 0.3)
    assert alone.curves == {"map@k": {5: 0.1, 10: 0.2}, "hops=2/map@k": {5: 0.1, 10: 0.2}}
