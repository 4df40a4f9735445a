"""The report says in its first sentence which system is better, or what is missing, and a model never decides alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from cli.commands import run

from nlp_retrieval import Query, SearchableItem
from nlp_retrieval.errors import ConfigurationError, InputError
from nlp_retrieval.judging import JudgingProject, ModelGrade
from nlp_retrieval.judging.report import biases_of, decided, report_of
from nlp_retrieval.judging.sampling import choose

from .test_estimates import judged, world

N = 60
QUESTIONS = [Query(query_id=f"q{n}", text=f"Question {n}?") for n in range(N)]
PASSAGES = [
    SearchableItem(item_id=f"q{n}-{rank}", content=f"Passage {rank} on question {n}.") for n in range(N) for rank in range(4)
]


def answers(*ranks: int) -> dict[str, list[tuple[str, float]]]:
    return {f"q{n}": [(f"q{n}-{rank}", 9.0 - place) for place, rank in enumerate(ranks)] for n in range(N)}


def simulated(folder, runs, relevant, questions: int = N, **settings) -> JudgingProject:
    """A project whose judge answers by a rule, for as many questions."""
    project = JudgingProject.create(folder, QUESTIONS, runs, PASSAGES, depth=2, **settings)
    done: set[str] = set()
    for pair in project.next_pairs("Sim", 1000):
        done.add(pair.query_id)
        if len(done) > questions:
            break
        number, rank = (int(word.rstrip(".")) for word in (pair.content.split()[4], pair.content.split()[1]))
        project.judge(pair.number, int(relevant(number, rank)), "Sim")
    return project


TWO = {"good": answers(0, 1), "bad": answers(2, 3)}


def test_a_clear_difference_is_decided_and_judging_can_stop(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0)
    report = report_of(project)
    assert report.sentence.startswith("good is better than bad by 0.500 [")
    assert f"in precision@2, after {4 * N} judgements of {N} families of questions." in report.sentence
    (difference,) = [each for each in report.estimates if each.measure == "precision@2" and each.baseline]
    assert difference.people is not None
    assert abs(difference.people.value) == 0.5
    assert decided(project).endswith("You can stop.")


def test_before_and_between_the_sentence_says_what_is_missing(tmp_path):
    none = simulated(tmp_path / "none", TWO, lambda n, rank: rank == 0, questions=0)
    assert report_of(none).sentence.startswith("Nothing can be said yet")
    assert decided(none) == ""
    few = simulated(tmp_path / "few", TWO, lambda n, rank: rank == n % 4, questions=8)
    assert "judgements of 8 families" in report_of(few).sentence
    assert "stop" not in decided(few)
    alone = simulated(tmp_path / "alone", {"one": answers(0, 1)}, lambda n, rank: rank == 0)
    assert report_of(alone).sentence == "There is one system alone; a comparison needs two."


def test_questions_without_a_chosen_pair_count_in_their_turn(tmp_path):
    """They are complete from the start: counted before their turn, they would pull every difference to 0."""
    settings = {"design": "decisive", "budget": 30, "seed": 5}
    none = simulated(tmp_path / "none", TWO, lambda n, rank: rank == 0, questions=0, **settings)
    assert not decided(none)
    early = {each.families for each in report_of(none).estimates}
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0, questions=5, **settings)
    (difference,) = [each for each in report_of(project).estimates if each.baseline]
    assert max(early) < difference.families < N
    whole = simulated(tmp_path / "whole", TWO, lambda n, rank: rank == 0, **settings)
    assert {each.families for each in report_of(whole).estimates} == {N}


def test_a_difference_below_the_margin_is_said_to_be_that(tmp_path):
    project = simulated(tmp_path / "p", {"one": answers(0, 1), "two": answers(1, 0)}, lambda n, rank: n % 2 == rank)
    report = report_of(project, ["precision@2"], margin=0.1)
    assert report.sentence.startswith("No difference is larger than the margin in precision@2")
    with pytest.raises(ConfigurationError, match="margin=-1"):
        report_of(project, margin=-1)


def test_a_model_alone_is_no_result_and_its_bias_is_shown_by_system(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0, questions=20)
    pool = project.pool()
    favours = {pair for ranking in pool.systems["bad"] for pair in ranking.tolist()}
    grades = [ModelGrade(pair, 0.9 if pair in favours else 0.4) for pair in range(len(pool.item_ids))]
    project.judge_by_model("partial", grades)
    report = report_of(project)
    assert report.sentence.startswith("good"), "the model prefers the other"
    biases = {each.part: each.bias for each in report.biases}
    assert biases["system bad"] == pytest.approx(0.9)
    assert biases["system good"] == pytest.approx(0.4 - 0.5)
    assert biases["grade 1"] == pytest.approx(0.4 - 1)
    printed = run("judge", "report", str(project.path)).stdout
    assert printed.splitlines()[0] == report.sentence
    assert [line for line in printed.splitlines() if "0.900" in line] == [
        line for line in printed.splitlines() if line.startswith("Uncalibrated, from the model alone, and no result")
    ]


def test_a_project_of_a_model_alone_says_nothing_about_the_systems(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0, questions=0)
    project.judge_by_model("all knowing", [ModelGrade(pair, float(pair % 2)) for pair in range(len(project.pool().item_ids))])
    report = report_of(project)
    assert report.sentence.startswith("Nothing can be said yet")
    assert report.biases == []
    assert "unknown: too few pairs" in run("judge", "report", str(project.path)).stdout


def test_the_report_is_json_too(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0)
    done = run("judge", "report", str(project.path), "--measures", "precision@1,ndcg@2", "--json")
    report = json.loads(done.stdout)
    assert {each["measure"] for each in report["estimates"]} == {"precision@1", "ndcg@2"}
    assert report["decisions"][0]["decision"]["verdict"] in ("better", "worse")
    assert math.isclose(report["judged"], 4 * N)


def test_names_that_do_not_exist_are_told(tmp_path):
    project = simulated(tmp_path / "p", TWO, lambda n, rank: rank == 0, questions=2)
    with pytest.raises(ConfigurationError, match="good"):
        report_of(project, baseline="god")
    with pytest.raises(InputError, match="no model"):
        report_of(project, model="gpt")
    with pytest.raises(ConfigurationError, match="presicion"):
        report_of(project, ["presicion@2"])


@pytest.mark.parametrize("design", ["depth-k", "stratified", "decisive"])
def test_the_bias_of_a_model_is_that_over_all_pairs_however_they_were_chosen(design):
    """The oracle is the mean over all pairs of which the grades are known, in 200 draws of the design.

    The model overrates what is relevant by nothing and what is not the more, the rarer the design chooses it.
    """
    pool, truth = world(24, seed=3)
    size = choose(pool, "stratified", budget=80, seed=0).inclusion
    pool = replace(pool, model=truth + (1 - size) * (1 - truth))
    possible = choose(pool, design, budget=80, seed=0, measure="precision@5").inclusion > 0
    wrong = pool.model - truth
    found: dict[str, list[float]] = {}
    plain = []
    for seed in range(200):
        drawn = judged(choose(pool, design, budget=80, seed=seed, measure="precision@5"), truth)
        for each in biases_of(drawn):
            found.setdefault(each.part, []).append(each.bias)
        plain.append(wrong[drawn.chosen].mean())
    own = np.zeros(len(truth), bool)
    own[np.concatenate(pool.systems["a"])] = True
    for part, members in {"all": possible, "grade 0": possible & (truth == 0), "system a": possible & own}.items():
        error = np.std(found[part]) / np.sqrt(len(found[part]))
        assert abs(np.mean(found[part]) - wrong[members].mean()) < 4 * error + 0.004, "a ratio is biased a little itself"
    if design == "stratified":
        assert abs(np.mean(plain) - wrong[possible].mean()) > 0.05, "unweighted, this would find nothing"
