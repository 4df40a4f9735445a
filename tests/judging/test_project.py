"""A judging project keeps every judgement, hands pairs out, and refuses what would make its estimates wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import ir_measures
import numpy as np
import pytest

from nlp_retrieval.errors import ConfigurationError, InputError, SourceError
from nlp_retrieval.judging import JudgingProject, ModelGrade

from .world import RUNS, make


@pytest.fixture
def project(tmp_path: Path) -> JudgingProject:
    return make(tmp_path / "judging", scale="graded")


def numbers(pairs) -> list[int]:
    return [pair.number for pair in pairs]


def test_the_pool_is_what_the_systems_found_each_pair_once(project):
    pool = project.pool()
    expected = {(query, item) for run in RUNS.values() for query, ranking in run.items() for item, _ in ranking}
    pairs = [(pool.query_ids[query], item) for query, item in zip(pool.pair_query, pool.item_ids, strict=True)]
    assert len(pairs) == len(expected)
    assert set(pairs) == expected
    assert {name: [[pairs[pair] for pair in ranking] for ranking in lists] for name, lists in pool.systems.items()} == {
        name: [[(query, item) for item, _ in ranking] for query, ranking in run.items()] for name, run in RUNS.items()
    }
    assert np.isnan(pool.grades).all()


def test_two_judges_get_different_pairs_and_one_who_returns_gets_the_same_again(project):
    ann, ben = project.next_pairs("Ann", 5), project.next_pairs("Ben", 5)
    assert not set(numbers(ann)) & set(numbers(ben))
    assert numbers(JudgingProject(project.path).next_pairs("Ann", 5)) == numbers(ann)
    everything = len(project.pool().item_ids)
    assert len(project.next_pairs("Cem", 100)) == everything - 10
    assert project.next_pairs("Dag") == []


def test_a_decision_that_is_taken_back_gives_way_to_the_one_before_and_stays_in_the_history(project):
    (pair,) = project.next_pairs("Ann")
    for grade in (3, 1):
        project.judge(pair.number, grade, "Ann")
    assert project.pool().grades[pair.number] == 1
    assert project.undo("Ann").number == pair.number
    assert project.pool().grades[pair.number] == 3
    project.undo("Ann")
    assert project.undo("Ann") is None
    assert np.isnan(project.pool().grades[pair.number])
    assert [each.decision for each in project.history()] == ["graded", "graded", "withdrawn", "withdrawn"]
    assert [each.grade for each in project.history()] == [3, 1, None, None]


def test_where_people_differ_the_settled_grade_counts_and_before_it_the_lower_median(project):
    (pair,) = project.next_pairs("Ann")
    for judge, grade in (("Ann", 3), ("Ben", 0), ("Cem", 2)):
        project.judge(pair.number, grade, judge)
    assert project.pool().grades[pair.number] == 2
    assert project.disputed()[0].grades == {"Ann": 3, "Ben": 0, "Cem": 2}
    project.judge(pair.number, 3, "Ben", decision="settled")
    assert project.pool().grades[pair.number] == 3
    assert project.disputed() == []
    key = (pair.query_id, project.pool().item_ids[pair.number])
    assert project.grades()["Ben"] == {key: 0}, "agreement is of what each said alone"
    project.undo("Ben")
    assert project.disputed()[0].grades == {"Ann": 3, "Ben": 0, "Cem": 2}


def test_judges_at_the_same_time_lose_nothing(project):
    def judge(name: str) -> None:
        own = JudgingProject(project.path)
        while pairs := own.next_pairs(name, 2):
            for pair in pairs:
                own.judge(pair.number, len(name) % 4, name)

    threads = [threading.Thread(target=judge, args=(name,)) for name in ("Ann", "Benn", "Cemal")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    judged = [(each.query_id, each.item_id) for each in project.history()]
    assert len(judged) == len(set(judged)) == len(project.pool().item_ids)


KILLED = """
import sys
from nlp_retrieval.judging import JudgingProject
project = JudgingProject(sys.argv[1])
for pair in project.next_pairs("Ann", 100):
    project.judge(pair.number, 2, "Ann", note="kept")
    print(pair.number, flush=True)
"""


def test_what_was_answered_is_there_after_a_kill(project):
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(project.path)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    said = [int(child.stdout.readline()) for _ in range(5)]
    child.send_signal(signal.SIGKILL)
    said += [int(line) for line in child.stdout.read().split()]
    child.wait()
    child.stdout.close()
    grades = JudgingProject(project.path).pool().grades
    assert [grades[number] for number in said] == [2.0] * len(said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grade": 4}, r"grades here are 0 \(not relevant\) to 3 \(answers fully\)"),
        ({"grade": 1, "note": "x" * 10_001}, "at most 10,000"),
        ({"grade": 1, "number": 2**63}, "no pair 9223372036854775808"),
        ({"grade": 1, "sha256": "0" * 64}, "was changed since"),
    ],
)
def test_a_judgement_that_cannot_be_used_is_refused_and_nothing_is_kept(project, arguments, message):
    with pytest.raises(InputError, match=message):
        project.judge(**{"number": 0, "by": "Ann"} | arguments)
    assert project.history() == []


def test_exports_are_read_by_others(project, tmp_path):
    first, second = project.next_pairs("Ann", 2)
    project.judge(first.number, 3, "Ann", note='=HYPERLINK("x")', seconds=4.26)
    project.judge(second.number, 0, "@Ben", note="a\nb")
    assert project.export(tmp_path / "out.qrels") == 2
    pool = project.pool()
    read = {(each.query_id, each.doc_id): each.relevance for each in ir_measures.read_trec_qrels(str(tmp_path / "out.qrels"))}
    assert read == {
        (first.query_id, pool.item_ids[first.number]): 3,
        (second.query_id, pool.item_ids[second.number]): 0,
    }
    for name in ("out.csv", "out.tsv", "out.json"):
        with pytest.raises(
            ConfigurationError, match=rf"{name}: judgements are written as JSON lines \(\.jsonl\) or TREC qrels"
        ):
            project.export(tmp_path / name)
    project.export(tmp_path / "out.jsonl")
    lines = {row["grade"]: row for row in map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())}
    assert lines[3]["note"] == '=HYPERLINK("x")'
    assert lines[3]["date"].endswith("+00:00")
    other = make(tmp_path / "again", scale="graded")
    assert other.import_qrels(tmp_path / "out.jsonl", "Ann") == (2, 0)
    assert other.qrels() == project.qrels()


def test_an_export_gives_all_judges_their_own_grades_back_and_those_of_a_model_to_nobody(project, tmp_path):
    for judge, grade in (("Ann", 3), ("Zoe\u0308", 0), ("Zo\u00eb", 1)):
        project.judge(0, grade, judge)
    project.judge(0, 2, "Ann", decision="settled")
    project.judge(1, None, "Ann", decision="skipped")
    project.judge_by_model("model", [ModelGrade(pair, 0.4) for pair in range(3)])
    project.export(tmp_path / "out.jsonl")
    other = make(tmp_path / "again", scale="graded")
    assert other.import_qrels(tmp_path / "out.jsonl", "somebody") == (3, 0)
    assert (other.grades(), other.qrels(), other.disputed()) == (project.grades(), project.qrels(), [])
    assert other.grades().keys() == {"Ann", "Zo\u00eb"}
    assert other.import_qrels(tmp_path / "out.jsonl", "somebody") == (0, 0)
    other.judge(0, 0, "Ann")
    with pytest.raises(SourceError, match=r"1 of its judgements contradict what was said .*: 3 there, 0 by Ann here"):
        other.import_qrels(tmp_path / "out.jsonl", "somebody")
