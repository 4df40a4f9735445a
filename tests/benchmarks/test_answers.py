"""A benchmark answers its questions from what each configuration finds, and judges the answers beside the lists."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from chat_server import asked, fields

from benchmarks.small_benchmark import GOLD, QUERIES, benchmarker
from nlp_retrieval import AnswerEvaluator, BenchmarkRun, Bm25Retriever, Searcher, read_run_folder, write_run_files
from nlp_retrieval.evaluation import gold_answers
from nlp_retrieval.lm import LanguageModelAnswerer

ANSWERS = ["answer_em", "answer_f1"]
FACTS = ["sp_em", "sp_f1", "sp_cited", "joint_em", "joint_f1"]


def first_title(body):
    """Answers with the title of the first passage, and cites its first sentence and one that is not there."""
    title = asked(body, "passages").split("\n")[0].removeprefix("Passage 1: ")
    return fields(reasoning="It is first.", citations="1.1, 99.1", answer=title)


@pytest.fixture(autouse=True)
def answering(server):
    server.answer = first_title


def questions():
    """The small benchmark's queries; the title of each gold passage is right, and their first sentences are the facts."""
    told = []
    for query, gold in zip(QUERIES, GOLD, strict=True):
        titles = [f"Page {item_id.removeprefix('d')}" for item_id in gold.relevance]
        metadata = query.metadata | {"answer": titles, "supporting_facts": [[title, 0] for title in titles]}
        told.append(query.model_copy(update={"metadata": metadata}))
    return told


def two():
    return {"bm25": Searcher([Bm25Retriever()]), "other": Searcher([Bm25Retriever(k1=0.4, b=0.1)])}


def ran(tmp_path, lm, **changed) -> BenchmarkRun:
    given = {"searchers": two(), "queries": questions(), "answerer": LanguageModelAnswerer(lm, passages=3)} | changed
    return benchmarker(tmp_path / "index", **given).run()


def test_answers_are_judged_as_the_evaluator_judges_them(tmp_path, model):
    run = ran(tmp_path, model())
    for name, searcher in two().items():
        searcher.open(tmp_path / "index")
        found = searcher.search([query.text for query in QUERIES], 10)
        answers = LanguageModelAnswerer(model(), passages=3).answer([query.text for query in QUERIES], found)
        assert [one.answer for one in run.answers[name]] == answers
        assert [one.results for one in run.answers[name]] == [results[:3] for results in found]
        judged = AnswerEvaluator(gold_answers(questions())).evaluate(answers)
        for measure in (*ANSWERS, *FACTS):
            assert np.array_equal(run.per_query[name][measure], judged.per_query[measure])
        (result,) = (one for one in run.report.configurations if one.name == name)
        assert {key: result.measures[key] for key in judged.per_query} == judged.means()
        assert set(result.intervals[""]) == set(result.measures) >= {"answer_f1", "recall@10"}
        assert set(result.groups["hops=2"]) == set(result.measures)
    assert 0 < run.report.configurations[0].measures["answer_em"] < 1
    assert {one.measure for one in run.report.comparisons[""]} >= {*ANSWERS, *FACTS}


def test_kept_answers_are_found_again_without_the_model(tmp_path, model, server):
    stages = tmp_path / "stages"
    first = ran(tmp_path, model(), stage_folder=stages)
    calls = server.calls
    shutil.rmtree(tmp_path / "answers")
    server.answer = lambda body: 500
    again = ran(tmp_path, model(), stage_folder=stages)
    assert server.calls == calls
    assert again.answers == first.answers
    before, now = (run.report.configurations[0].cost for run in (first, again))
    assert now.answering == before.answering
    assert now.language_model.cache_hits == len(QUERIES)
    assert now.language_model.query_tokens_in == before.language_model.query_tokens_in


def test_files_of_a_run_hold_the_answers_and_are_read_back(tmp_path, model):
    run = ran(tmp_path, model())
    report = write_run_files(run, tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text().splitlines()]
    assert [(line["configuration"], line["query_id"]) for line in lines] == [
        (name, query.query_id) for name in ("bm25", "other") for query in QUERIES
    ]
    one = run.answers["bm25"][0]
    assert {key: lines[0][key] for key in ("text", "passages", "dropped", "failed")} == {
        "text": one.answer.text, "passages": one.answer.passages, "dropped": 1, "failed": False,
    }  # fmt: skip
    assert lines[0]["read"] == [hit.item.item_id for hit in one.results]
    ragas = [json.loads(line) for line in (tmp_path / "run" / "ragas" / "bm25.jsonl").read_text().splitlines()]
    assert ragas[0] == {
        "user_input": QUERIES[0].text,
        "retrieved_contexts": [hit.item.text for hit in one.results],
        "response": one.answer.text,
        "reference": questions()[0].metadata["answer"][0],
    }
    saved = read_run_folder(tmp_path / "run")
    assert saved.report == report
    assert np.array_equal(saved.evaluations["bm25"].per_query["joint_f1"], run.per_query["bm25"]["joint_f1"])
    write_run_files(ran(tmp_path, model(), answerer=None), tmp_path / "run")
    assert not (tmp_path / "run" / "answers.jsonl").exists()
    assert not list((tmp_path / "run" / "ragas").glob("*"))
