"""Results and judgements in the forms that people have, evaluated in one line; the oracle is ir-measures."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import pandas
import polars
import pyarrow as pa
import pytest
from hashed_words import items_of

from nlp_retrieval import BeirLoader, Bm25Retriever, Gold, Searcher, compare_systems, evaluate
from nlp_retrieval.errors import GoldError, QueryError, SourceError
from nlp_retrieval.evaluation.trec import write_qrels, write_run

from .small_benchmark import GOLD, QUERIES, TEXTS, TITLES, collection

draw = random.Random(5)
ITEMS = [f"d{number}" for number in range(40)]
RUN = {
    f"q {number}": {item: draw.randint(0, 9) / 4 for item in draw.sample(ITEMS, draw.randint(1, 30))} for number in range(20)
}
"""Many scores are equal, and no query from ``q 20`` has results."""
QRELS = {f"q {number}": {item: draw.randint(0, 3) for item in draw.sample(ITEMS, 9)} for number in range(4, 23)}
OURS = ["ndcg@10", "nDCG@5", "R@20", "recall@100", "P@5", "AP", "RR", "Success@5"]
THEIRS = ["nDCG@10", "nDCG@5", "R@20", "R@100", "P@5", "AP", "RR", "Success@5"]
RUN_ROWS = [(query, item, score) for query, scores in RUN.items() for item, score in scores.items()]
QREL_ROWS = [(query, item, grade) for query, grades in QRELS.items() for item, grade in grades.items()]


def frame(rows: list[tuple[Any, ...]], *names: str) -> pandas.DataFrame:
    return pandas.DataFrame(rows, columns=names)


class Ranx:
    """A run, or judgements, as ranx has them."""

    def __init__(self, content: dict[str, dict[str, Any]]) -> None:
        self.content = content

    def to_dict(self) -> dict[str, dict[str, Any]]:
        return self.content


class Qrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    iteration: str


class Scored(NamedTuple):
    query_id: str
    doc_id: str
    score: float


RESULTS: dict[str, Callable[[Path], Any]] = {
    "dict": lambda _: RUN,
    "pandas": lambda _: frame(RUN_ROWS, "qid", "docno", "score"),
    "PyTerrier": lambda _: frame([(q, 5, i, s, "text") for q, i, s in RUN_ROWS], "qid", "docid", "docno", "score", "query"),
    "polars": lambda _: polars.DataFrame(RUN_ROWS, ["query_id", "doc_id", "score"], orient="row"),
    "arrow": lambda _: pa.Table.from_pandas(frame(RUN_ROWS, "q_id", "doc_id", "score")),
    "tuples": lambda _: RUN_ROWS,
    "ir_measures": lambda _: (Scored(*row) for row in RUN_ROWS),
    "dicts": lambda _: frame(RUN_ROWS, "qid", "docno", "score").to_dict("records"),
    "ranx": lambda _: Ranx(RUN),
    "file": lambda folder: run_file(folder / "run.txt"),
}
JUDGED: dict[str, Callable[[Path], Any]] = {
    "dict": lambda _: QRELS,
    "gold": lambda _: [Gold(query_id=query, relevance=grades) for query, grades in QRELS.items()],
    "pandas": lambda _: frame(QREL_ROWS, "qid", "docno", "label"),
    "floats": lambda _: frame([(q, i, float(g)) for q, i, g in QREL_ROWS], "query_id", "doc_id", "rel"),
    "polars": lambda _: polars.DataFrame(QREL_ROWS, ["query-id", "corpus-id", "score"], orient="row"),
    "tuples": lambda _: iter(QREL_ROWS),
    "ir_datasets": lambda _: (Qrel(*row, "0") for row in QREL_ROWS),
    "ranx": lambda _: Ranx(QRELS),
    "file": lambda folder: write_qrels(folder / "qrels.txt", QRELS) or str(folder / "qrels.txt"),
}


def run_file(path: Path) -> Path:
    order = {query: sorted(scores.items(), key=lambda pair: (pair[1], pair[0]), reverse=True) for query, scores in RUN.items()}
    write_run(path, list(order), list(order.values()))
    return path


EXPECTED = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in THEIRS], QRELS, RUN)
PER_QUERY = {
    (metric.query_id, str(metric.measure)): metric.value
    for metric in ir_measures.iter_calc([ir_measures.parse_measure(name) for name in THEIRS], QRELS, RUN)
}


@pytest.mark.parametrize("form", RESULTS)
def test_results_in_every_form_have_the_measures_of_ir_measures(form: str, tmp_path: Path) -> None:
    evaluation = evaluate(RESULTS[form](tmp_path), QRELS, OURS)
    assert [evaluation[name] for name in OURS] == pytest.approx(
        [EXPECTED[ir_measures.parse_measure(name)] for name in THEIRS], abs=1e-12
    )
    assert (len(evaluation.query_ids), evaluation.empty_queries, evaluation.unjudged) == (19, 3, 4)


@pytest.mark.parametrize("form", JUDGED)
def test_judgements_in_every_form_give_the_same(form: str, tmp_path: Path) -> None:
    evaluation = evaluate(RUN, JUDGED[form](tmp_path), OURS)
    for ours, theirs in zip(evaluation.per_query, THEIRS, strict=True):
        expected = [PER_QUERY.get((query, theirs), 0.0) for query in QRELS]
        assert evaluation.per_query[ours].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.fixture
def searcher(tmp_path: Path) -> Searcher:
    searcher = Searcher(["bm25"])
    searcher.index(items_of(TEXTS, TITLES), tmp_path / "index")
    return searcher


def test_results_of_a_search_keep_their_order_in_every_form(searcher: Searcher, tmp_path: Path) -> None:
    found = searcher.search(QUERIES, k=20)
    by_hand = [
        next((1 / rank for rank, hit in enumerate(hits, 1) if gold.relevance.get(hit.item.item_id, 0) > 0), 0.0)
        for hits, gold in zip(found, GOLD, strict=True)
    ]
    expected = evaluate(found, GOLD, ["RR", "ndcg@10"])
    assert expected.per_query["mrr"].tolist() == pytest.approx(by_hand)
    equal_scores = found.to_pandas().assign(score=1.0)
    for form in (found.to_pandas(), found.to_polars(), found.to_pandas().drop(columns="score"), equal_scores):
        assert evaluate(form, GOLD, ["RR", "ndcg@10"]).means() == expected.means()
    assert evaluate(found[0], GOLD[:1], "ndcg@10")["ndcg@10"] == expected.per_query["ndcg@10"][0]
    assert evaluate(found, BeirLoader(collection(tmp_path / "data")), ["RR", "ndcg@10"]).means() == expected.means()


@pytest.mark.parametrize(
    ("results", "qrels", "error", "said"),
    [
        (RUN, {"other": {"d1": 1}}, QueryError, 'no query of the results ("q 0", "q 1", "q 2") is judged ("other")'),
        ({"a": ["x"]}, QRELS, QueryError, "query 'a': its results are ['x'] (list); write {item id: score}"),
        ({"a": {"x": None}}, QRELS, QueryError, "query 'a': the score is null; it must be a finite number"),
        ([("a", "x", 1), ("a", "x", 2)], QRELS, QueryError, "result 2: item 'x' of query 'a' is there already"),
        ([5], QRELS, QueryError, "result 1 is 5 (int); expected a row by column, such as a dict or a tuple (qid, docno, score"),
        (frame([(1, 2)], "qid", "docno"), QRELS, QueryError, 'DataFrame, row 1: no column of the score, such as "score"'),
        (RUN, {"q 4": "d1"}, GoldError, "query 'q 4': its judgements are 'd1' (str); write {item id: grade}, or [item id, "),
        (RUN, [("q 4", "d1", 1), ("q 4", "d1", 2)], GoldError, 'item "d1" has grade 2 here and 1 above'),
        (RUN, "missing.txt", SourceError, "missing.txt"),
    ],
)
def test_a_bad_shape_is_an_error_that_says_where_and_what_to_write(
    results: Any, qrels: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        evaluate(results, qrels)
    assert said in str(caught.value)


def test_a_query_that_was_not_asked_does_not_count_and_the_same_holds_in_a_comparison(tmp_path: Path) -> None:
    searcher, qrels = Searcher([Bm25Retriever()]), {"q1": {"d1": 1}, "q2": {"d2": 1}}
    searcher.index({"d1": "a fox", "d2": "a whale"}, tmp_path)
    alone = evaluate(searcher.search({"q1": "fox"}, 5), qrels, ["RR"])
    run = compare_systems([searcher], {"q1": "fox"}, qrels, measures=["RR"])
    assert alone.means() == run.report.configurations[0].measures == {"mrr": 1.0}
    assert "1 more judged and not asked" in repr(alone)
    assert "grades from 2 are relevant" in repr(evaluate({"q": {"a": 1.0}}, {"q": {"a": 2}}, relevant_from=2))
    assert run.report.counted is not None
    assert run.report.counted.unasked == 1
    assert evaluate(searcher.search({"q1": "fox"}, 5), qrels, ["RR"], asked=qrels).means() == {"mrr": 0.5}
    numbered = {1: {"a": 1.0}, 2: {"a": 1.0}}
    assert evaluate(numbered, {1: {"a": 1}, 2: {"b": 1}}, ["RR"], asked=[1]).means() == {"mrr": 1.0}


def test_a_hit_that_is_the_query_itself_counts_unless_it_is_said_not_to() -> None:
    run, qrels = {"a": {"a": 3.0, "b": 2.0}, "b": {"b": 1.0, "a": 0.5}}, {"a": {"b": 1}, "b": {"b": 1}}
    assert evaluate(run, qrels, ["RR"]).per_query["mrr"].tolist() == [0.5, 1.0]
    assert evaluate(run, qrels, ["RR"], ignore_identical_ids=True).per_query["mrr"].tolist() == [1.0, 1.0]
