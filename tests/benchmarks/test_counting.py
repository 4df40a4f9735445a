"""What counts: as in trec_eval, with one line in every table that says what was counted and what was not."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest
from ir_measures import R, nDCG
from typer.testing import CliRunner

from nlp_retrieval import Benchmarker, Bm25Retriever, Query, Searcher, evaluate
from nlp_retrieval.benchmarks.results import BenchmarkRun
from nlp_retrieval.cli.app import app
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.reports.tables import latex_table, markdown_table
from nlp_retrieval.reports.view import view_of
from nlp_retrieval.reports.write import write_run_files

TEXTS = {"a": "cats purr loudly", "b": "cats purr at night", "c": "dogs bark loudly", "d": "whales sing"}


Grades = dict[str, dict[str, int]]


def ran(tmp_path: Path, queries: list[Query], gold: Grades, k: tuple[int, ...] = (1, 2), **changed: object) -> BenchmarkRun:
    searchers = {"bm25": Searcher([Bm25Retriever()]), "other": Searcher([Bm25Retriever(k1=2)])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RetrievalWarning)
        return Benchmarker(searchers, TEXTS, queries, gold, k, index_path=tmp_path / "index", **changed).run()  # type: ignore[arg-type]


PLAIN = [Query(query_id="q1", text="cats"), Query(query_id="q2", text="dogs"), Query(query_id="q3", text="whales")]


@pytest.mark.parametrize(
    ("gold_missing", "group_by", "queries", "recall"),
    [("count", "hops", 3, (1 + 0.5 + 0) / 3), ("drop", "hops", 2, 1.0), ("drop", "of the dropped", 2, 1.0)],
)
def test_gold_that_the_corpus_lacks(tmp_path: Path, gold_missing: str, group_by: str, queries: int, recall: float) -> None:
    gold = {"q1": {"a": 1, "b": 1}, "q2": {"c": 1, "gone": 1}, "q3": {"gone too": 1}}
    asked = [*PLAIN[:2], PLAIN[2].model_copy(update={"metadata": {"of the dropped": "sea"}})]
    run = ran(tmp_path, asked, gold, gold_missing=gold_missing, group_by=group_by)

    assert run.report.configurations[0].measures["recall@2"] == pytest.approx(recall)
    assert run.report.query_counts[""] == queries
    assert "'gone'" in view_of(run.report).counted


def test_every_table_says_what_was_counted(tmp_path: Path) -> None:
    gold = {"q1": {"a": 2}, "q2": {"c": 0}, "elsewhere": {"d": 1}}
    graded = {"q1": {"a": 2}, "q2": {"c": 1}, "q3": {"gone": 2, "d": 1}}
    kept = ran(tmp_path, PLAIN, graded, relevant_from=2, gold_missing="drop")
    counted = view_of(kept.report).counted
    assert counted.startswith(
        "Counted: 2 queries; 1 of them without a relevant document (first: 'q2'); grades from 2 are relevant,"
    )
    assert kept.per_query["bm25"]["ndcg@2"].tolist() == [1.0, 1.0], "a lower grade counts there"
    judged = evaluate({"q1": {"a": 1.0}, "q2": {"c": 1.0}}, graded, ["ndcg@2"], relevant_from=2, asked=["q1", "q2"])
    assert "2 queries, 1 of them without a relevant document; 1 more judged" in repr(judged)
    run = ran(tmp_path, PLAIN, gold)
    report = write_run_files(run, tmp_path / "out")
    line = view_of(report).counted
    assert line == view_of(replace(report, manifest=report.manifest | {"relevant_from": None})).counted

    assert line.startswith("Counted: 2 queries; 1 of them without a relevant document score 0 (first: 'q2')")
    assert "1 query without judgements (first: 'q3')" in line
    assert "1 judged query that is not asked (first: 'elsewhere')" in line
    for written in (markdown_table(report), latex_table(report), (tmp_path / "out" / "report.html").read_text("utf-8")):
        assert "Counted: 2 queries" in written
    results = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    assert (results["counted"]["without_relevant"], results["counted"]["unjudged"], results["counted"]["note"]) == (1, 1, line)
    judged = ir_measures.read_trec_qrels(str(tmp_path / "out" / "trec" / "qrels.txt"))
    assert {one.query_id for one in judged} == {"q1", "q2"}


PASSAGES = [Query(query_id=item_id, text=text) for item_id, text in TEXTS.items()]
OTHERS = {"a": {"b": 1}, "b": {"a": 1}, "c": {"a": 1}, "d": {"d": 1}}


def test_a_query_that_is_a_passage_does_not_find_itself(tmp_path: Path) -> None:
    run = ran(tmp_path, PASSAGES, OTHERS, k=(1,), depth=1)

    assert {hits[0][0] if hits else "" for hits in run.rankings["bm25"]} == {"b", "a", "d"}
    assert [len(hits) for hits in run.rankings["bm25"]] == [1, 1, 1, 1]
    assert "the hit that is the query itself, of 3 queries (same id)" in view_of(run.report).counted
    counts = ran(tmp_path, PASSAGES, OTHERS, k=(1,), depth=1, ignore_identical_ids=False)
    assert [hits[0][0] for hits in counts.rankings["bm25"]] == ["a", "b", "c", "d"]


def test_compare_counts_as_trec_eval_does(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq2 0 b 1\nq2 0 c 1\nq3 0 a 0\n")
    (tmp_path / "one.trec").write_text("q1 Q0 a 1 2 t\nq2 Q0 b 1 2 t\nq3 Q0 a 1 2 t\nq9 Q0 a 1 2 t\n")
    (tmp_path / "two.trec").write_text("q1 Q0 b 1 2 t\nq2 Q0 b 1 2 t\nq2 Q0 c 2 1 t\nq3 Q0 a 1 2 t\nq9 Q0 b 1 2 t\n")
    files = [str(tmp_path / "one.trec"), str(tmp_path / "two.trec")]
    done = CliRunner().invoke(app, ["compare", *files, "--measures", "recall@2,ndcg@2", "--output", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["configurations"].values()
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")))
    for row, file in zip(rows, files, strict=True):
        expected = ir_measures.calc_aggregate([R @ 2, nDCG @ 2], qrels, ir_measures.read_trec_run(file))
        assert row["measures"]["recall@2"] == pytest.approx(expected[R @ 2])
        assert row["measures"]["ndcg@2"] == pytest.approx(expected[nDCG @ 2])
    assert "1 query without judgements (first: 'q9')" in " ".join(done.stdout.split())
