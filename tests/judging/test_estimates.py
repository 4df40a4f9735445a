"""Designs, estimates and decisions, against the truth of made-up worlds in which every grade is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from nlp_retrieval.errors import ConfigurationError, GoldError
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.estimates import estimate_measures, intervals, query_values, student
from nlp_retrieval.judging.pool import JudgingPool
from nlp_retrieval.judging.sampling import choose, move_to_front
from nlp_retrieval.judging.sequences import confidence_sequence, decide
from nlp_retrieval.judging.weights import values_by_query

FOUND, KNOWN = 5, 12
MEASURES = ["precision@5", "recall@5", "mrr@5", "ndcg@5"]


def world(families: int, seed: int = 0, better: float = 0.0) -> tuple[JudgingPool, np.ndarray]:
    """Questions of twelve passages, and three systems that find five of them; "b" is better than "a", and "c" is worse."""
    draw = np.random.default_rng(seed)
    lists: dict[str, list[Any]] = {"a": [], "b": [], "c": []}
    names: list[str] = []
    query_of: list[int] = []
    grades: list[float] = []
    for family in range(families):
        for _ in range(1 + family % 2):
            relevance = draw.random(KNOWN) < draw.beta(1, 3)
            start = len(query_of)
            for system, skill in (("a", 1.0), ("b", 1.0 + better), ("c", 0.5)):
                order = np.argsort(-(skill * relevance + draw.normal(size=KNOWN)))
                lists[system].append(start + order[:FOUND])
            query_of += [len(names)] * KNOWN
            names.append(f"f{family}")
            grades += relevance.astype(float).tolist()
    size = len(grades)
    pool = JudgingPool(
        query_ids=[f"q{number}" for number in range(len(names))],
        families=list(names),
        groups={},
        systems=lists,
        pair_query=np.array(query_of),
        item_ids=[f"p{number}" for number in range(size)],
        inclusion=np.ones(size),
        query_inclusion=np.ones(len(names)),
        chosen=np.ones(size, bool),
        grades=np.full(size, np.nan),
        model=np.full(size, np.nan),
    )
    return pool, np.array(grades)


def judged(pool: JudgingPool, truth: np.ndarray) -> JudgingPool:
    return replace(pool, grades=np.where(pool.chosen, truth, np.nan))


def test_a_pool_judged_completely_has_the_values_of_the_evaluator_and_students_interval_with_one_unseen_family() -> None:
    pool, truth = world(8)
    estimates = estimate_measures(judged(pool, truth), ["precision@5", "mrr@5"], "a")
    values = np.array([truth[pairs].mean() for pairs in pool.systems["b"]])
    found = next(one for one in estimates if (one.measure, one.system, one.baseline) == ("precision@5", "b", None))
    assert found.people is not None
    assert found.people.value == pytest.approx(values.mean())
    assert (found.families, found.judgements) == (8, len(truth))
    sums = np.bincount(family_numbers(pool.families), values - values.mean())
    sizes = np.array([1.0, 2.0] * 4)
    half = stats.t.ppf(0.975, 7) * np.sqrt(((sums**2).sum() + ((sizes / 2) ** 2).mean()) * 8 / 7) / 12
    assert found.people.high - found.people.value == pytest.approx(half, rel=1e-3)
    first = [next((1 / rank for rank, pair in enumerate(pairs, 1) if truth[pair]), 0.0) for pairs in pool.systems["b"]]
    mrr = next(one for one in estimates if (one.measure, one.system, one.baseline) == ("mrr@5", "b", None))
    assert mrr.people is not None
    assert mrr.people.value == pytest.approx(np.mean(first))


@pytest.mark.parametrize("freedom", [1, 2, 3, 10, 40, 300])
def test_students_quantile_is_scipys(freedom: int) -> None:
    assert student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=5e-4)


@pytest.mark.parametrize(
    ("design", "judge"), [("depth-k", "good"), ("stratified", "good"), ("decisive", "good"), ("depth-k", "useless")]
)
def test_intervals_hold_the_truth_and_a_useless_judge_costs_nothing(design: str, judge: str) -> None:
    everything, everywhere = world(400, better=0.5)
    measures = MEASURES if design == "depth-k" else ["precision@5"]
    truth = {
        (one.measure, one.system, one.baseline): one.people.value
        for one in estimate_measures(judged(everything, everywhere), measures, "a")
        if one.people is not None
    }
    held: dict[str, list[bool]] = {"people": [], "both": []}
    widths: dict[str, list[float]] = {"people": [], "both": []}
    off = []
    for seed in range(40):
        pool, grades = world(40, seed + 1, better=0.5)
        draw = np.random.default_rng(seed).random(len(grades))
        model = np.where(grades > 0, draw < 0.9, draw < 0.05) if judge == "good" else draw < 0.5
        pool = replace(pool, model=model.astype(float))
        pool = choose(pool, design, budget=200, seed=seed, measure="precision@5", comparisons=[("b", "a")])
        for one in estimate_measures(judged(pool, grades), measures, "a"):
            if one.people is None or one.both is None:
                continue
            known = truth[one.measure, one.system, one.baseline]
            off.append(one.both.value - known)
            for name, interval in (("people", one.people), ("both", one.both)):
                held[name].append(interval.low <= known <= interval.high)
                widths[name].append(interval.high - interval.low)
    assert len(off) >= 40
    assert min(np.mean(held["people"]), np.mean(held["both"])) > 0.93
    assert abs(np.mean(off)) < 0.03
    ratio = np.mean(widths["both"]) / np.mean(widths["people"])
    assert ratio < (1.01 if judge == "useless" else 1.0)


def test_what_a_judge_adds_to_every_question_changes_nothing_however_unequal_families_are() -> None:
    pool, truth = world(30)
    model = np.where(np.random.default_rng(1).random(len(truth)) < 0.9, truth, 1 - truth)
    first = replace(pool, grades=np.where(pool.pair_query < 15, truth, np.nan), model=model)
    values, families = query_values(first, "precision@5", "a"), family_numbers(pool.families)
    _, both, weight = intervals(values, families)
    assert (weight > 0.1).all()
    more = replace(values, model=values.model + 10, sampled=values.sampled + 10)
    assert intervals(more, families)[1][:, 0] == pytest.approx(both[:, 0])


def test_what_a_design_cannot_estimate_says_why_and_unfinished_families_do_not_count() -> None:
    pool, truth = world(10)
    stratified = judged(choose(pool, "stratified", budget=60, seed=1), truth)
    reasons = {one.measure: one.reason for one in estimate_measures(stratified, ["mrr@5", "recall@5"])}
    assert "depth-k" in reasons["mrr@5"]
    assert reasons["recall@5"] == ""
    decisive = judged(choose(pool, "decisive", budget=20, seed=1, measure="precision@5", comparisons=[("b", "a")]), truth)
    told = {(one.system, one.baseline): one.people for one in estimate_measures(decisive, ["precision@5"], "a")}
    assert told["b", "a"] is not None
    assert told["a", None] is None
    assert told["c", "a"] is None
    half = replace(pool, grades=np.where(np.arange(len(truth)) < 30, truth, np.nan))  # of three questions, the last in part
    assert {one.families for one in estimate_measures(half, ["precision@5"])} == {1}
    assert "judge on" in estimate_measures(pool, ["precision@5"])[0].reason


def test_probabilities_sum_up_to_the_budget_and_a_pair_that_moves_nothing_is_never_chosen() -> None:
    pool, _ = world(30)
    both = np.zeros(len(pool.item_ids), bool)
    for one, other in zip(pool.systems["a"], pool.systems["b"], strict=True):
        both[np.setxor1d(one, other)] = True
    decisive = choose(pool, "decisive", budget=50, seed=0, measure="precision@5", comparisons=[("b", "a")])
    assert np.array_equal(decisive.inclusion > 0, both)
    assert decisive.inclusion.sum() == pytest.approx(50)
    assert not decisive.chosen[~both].any()
    stratified = choose(pool, "stratified", budget=150, seed=0)
    assert stratified.inclusion.sum() == pytest.approx(150)
    every = [
        pair
        for pair in range(len(pool.item_ids))
        if sum(pair in lists[pool.pair_query[pair]] for lists in pool.systems.values()) == 3
    ]
    assert stratified.inclusion[every].mean() > stratified.inclusion.mean()
    same = choose(pool, "stratified", budget=150, seed=0)
    assert np.array_equal(same.chosen, stratified.chosen)
    with pytest.raises(ConfigurationError, match="'decisve'"):
        choose(pool, "decisve", budget=1, seed=0)
    with pytest.raises(ConfigurationError, match="'d' is not one"):
        choose(pool, "decisive", budget=1, seed=0, comparisons=[("a", "d")])


def test_move_to_front_asks_next_what_the_system_found_that_was_right() -> None:
    pool, _ = world(1)
    a, b = (pool.systems[name][0] for name in "ab")
    only = [pair for pair in b.tolist() if pair not in a]
    assert only
    grades = np.full(len(pool.item_ids), np.nan)
    grades[a] = 0.0
    order = move_to_front(replace(pool, systems={"a": [a], "b": [b]}, grades=grades)).tolist()
    assert order[0] in only
    assert not set(order) & set(a.tolist())


def test_a_confidence_sequence_that_is_looked_at_after_every_value_is_wrong_in_at_most_five_percent() -> None:
    draw = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        values = np.where(draw.random(120) < 0.3, np.where(draw.random(120) < 0.5, 0.3, -0.3), 0.0)
        ends = confidence_sequence(values, (-0.4, 0.4))
        wrong += bool(((ends[:, 0] > 0) | (ends[:, 1] < 0)).any())
    assert wrong <= 14  # 99% of draws with 5%
    assert (np.diff(ends[:, 0]) >= 0).all()
    assert (np.diff(ends[:, 1]) <= 0).all()
    with pytest.raises(GoldError, match="not within"):
        confidence_sequence([0.5], (-0.4, 0.4))


def test_a_difference_is_decided_when_it_is_clear_and_a_small_one_is_called_small() -> None:
    pool, truth = world(300, better=3.0)
    done = judged(pool, truth)
    decision = decide(done, "precision@5", "b", "a")
    assert (decision.verdict, decision.families) == ("better", 300)
    assert decision.low > 0
    assert decide(done, "precision@5", "c", "a").verdict == "worse"
    alike, truth = world(300)
    assert decide(judged(alike, truth), "precision@5", "b", "a", margin=0.2).verdict == "smaller than the margin"
    first = replace(alike, grades=np.where(alike.pair_query < 30, truth, np.nan))
    early = decide(first, "precision@5", "c", "a")
    assert early.verdict == "open"
    assert early.more_judgements is not None
    assert early.more_judgements > 0
    assert decide(alike, "precision@5", "b", "a").verdict == "open"
    with pytest.raises(ConfigurationError, match="two systems"):
        decide(alike, "precision@5", "a", "a")


def test_a_pair_that_was_judged_not_relevant_differs_from_one_that_was_not_judged() -> None:
    pool, grades = world(1)
    first, second, *_ = pool.systems["a"][0]
    values = {}
    for name, grade in (("judged", 0.0), ("open", np.nan)):
        grades = np.full(len(grades), np.nan)
        grades[[first, second]] = grade, 1.0
        found = values_by_query(pool, grades, ["Bpref", "Judged@5"])
        values[name] = found["Bpref"]["a"][0], found["Judged@5"]["a"][0]
    assert values == {"judged": (0.0, 0.4), "open": (1.0, 0.2)}
