"""Designs and decisions, against the truth of made-up worlds in which every grade is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nlp_retrieval.errors import GoldError
from nlp_retrieval.judging import JudgingPool, decide
from nlp_retrieval.judging.pool import choose
from nlp_retrieval.judging.sequences import confidence_sequence

FOUND, KNOWN = 5, 12


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
        systems=lists,
        pair_query=np.array(query_of),
        item_ids=[f"p{number}" for number in range(size)],
        chosen=np.ones(size, bool),
        drawn=np.ones(len(names), bool),
        grades=np.full(size, np.nan),
        model=np.full(size, np.nan),
    )
    return pool, np.array(grades)


def judged(pool: JudgingPool, truth: np.ndarray) -> JudgingPool:
    return replace(pool, grades=np.where(pool.chosen, truth, np.nan))


def decisive(pool: JudgingPool, budget: int | None = None, seed: int = 0) -> JudgingPool:
    return choose(pool, "decisive", budget, seed, "precision@5", [("b", "a")])


def test_decisive_judges_the_pairs_of_one_system_alone_and_finds_the_same_difference() -> None:
    pool, truth = world(40, better=1.0)
    either = np.zeros(len(truth), bool)
    for one, other in zip(pool.systems["a"], pool.systems["b"], strict=True):
        either[np.setxor1d(one, other)] = True
    assert np.array_equal(decisive(pool).chosen, either)
    every, few = (decide(judged(each, truth), "precision@5", "b", "a") for each in (pool, decisive(pool)))
    by_hand = np.mean([truth[b].mean() - truth[a].mean() for a, b in zip(pool.systems["a"], pool.systems["b"], strict=True)])
    assert few.value == pytest.approx(by_hand)
    assert (few.value, few.low, few.high) == pytest.approx((every.value, every.low, every.high))
    assert few.judgements < every.judgements / 2
    assert "--compare" in decide(judged(decisive(pool), truth), "precision@5", "c", "a").reason
    assert "depth-k" in decide(judged(decisive(pool), truth), "ndcg@5", "b", "a").reason


@pytest.mark.parametrize("design", ["depth-k", "decisive"])
def test_a_budget_draws_whole_families_each_equally_likely(design: str) -> None:
    pool, truth = world(30)
    found, sizes = np.zeros(len(pool.query_ids)), []
    for seed in range(200):
        drawn = choose(pool, design, 90, seed, "precision@5", [("b", "a")])  # type: ignore[arg-type]
        found += drawn.drawn
        sizes.append(drawn.chosen.sum())
        assert not drawn.chosen[~drawn.drawn[drawn.pair_query]].any()
        assert np.array_equal(judged(drawn, truth).complete, drawn.drawn)
    assert 90 * 0.7 < np.mean(sizes) < 90 * 1.2
    assert found.std() < 3 * math.sqrt(found.mean())


def bets_by_hand(values: list[float], low: float, high: float, alpha: float, grid: int = 501) -> tuple[float, float]:
    """The hedged capital of Waudby-Smith and Ramdas (2024), one candidate after another, one value after another."""
    scaled = [(value - low) / (high - low) for value in values]
    left = []
    for number in range(grid):
        mean, up, down, alive = number / (grid - 1), 1.0, 1.0, True
        total, squares = 0.5, 0.25
        variance = 0.25
        for t, value in enumerate(scaled, start=1):
            bet = math.sqrt(2 * math.log(2 / alpha) / (variance * t * math.log(1 + t)))
            up *= 1 + min(bet, 0.75 / mean if mean else math.inf) * (value - mean)
            down *= 1 - min(bet, 0.75 / (1 - mean) if mean < 1 else math.inf) * (value - mean)
            alive = alive and max(up, down) / 2 < 1 / alpha
            total += value
            squares += (value - total / (t + 1)) ** 2
            variance = squares / (t + 1)
        if alive:
            left.append(mean)
    step = 1 / (grid - 1)
    return tuple(low + (high - low) * end for end in (max(left[0] - step, 0), min(left[-1] + step, 1)))  # type: ignore[return-value]


def test_a_confidence_sequence_is_that_of_the_paper_computed_by_hand() -> None:
    draw = np.random.default_rng(3)
    for bounds in ((-0.4, 0.4), (-1.0, 0.6)):
        values = draw.choice([bounds[0] / 2, 0.0, bounds[1] / 2], 60, p=[0.1, 0.5, 0.4])
        ends = confidence_sequence(values, bounds)
        assert ends[-1].tolist() == pytest.approx(bets_by_hand(values.tolist(), *bounds, 0.05), abs=1e-9)


def test_a_confidence_sequence_that_is_looked_at_after_every_value_is_wrong_in_at_most_five_percent() -> None:
    """Ten sequences at once are, at 95% each, wrong far more often in some one of them; at 99.5% each, they are not."""
    draw = np.random.default_rng(4)
    wrong = {0.05: 0, 0.005: 0}
    alone = 0
    for _ in range(60):
        streams = draw.choice([-0.2, 0.0, 0.2], size=(10, 50), p=[0.25, 0.5, 0.25])
        for alpha in wrong:
            ends = np.stack([confidence_sequence(stream, (-0.2, 0.2), alpha) for stream in streams])
            missed = ((ends[:, :, 0] > 0) | (ends[:, :, 1] < 0)).any(axis=1)
            wrong[alpha] += bool(missed.any())
            alone += int(missed.sum()) if alpha == 0.05 else 0
    assert alone <= 45  # 99% of draws with 5% of 600
    assert wrong[0.005] <= 0.1 * 60
    assert wrong[0.05] > 0.1 * 60
    assert (np.diff(ends[0, :, 0]) >= 0).all()
    with pytest.raises(GoldError, match="not within"):
        confidence_sequence([0.5], (-0.4, 0.4))


def test_a_difference_is_decided_when_it_is_clear_and_a_small_one_is_called_small() -> None:
    pool, truth = world(300, better=3.0)
    decision = decide(judged(pool, truth), "precision@5", "b", "a")
    assert (decision.verdict, decision.families) == ("better", 300)
    assert decision.low > 0
    assert decide(judged(pool, truth), "precision@5", "c", "a").verdict == "worse"
    alike, truth = world(300)
    assert decide(judged(alike, truth), "precision@5", "b", "a", margin=0.2).verdict == "smaller than the margin"
    assert decide(alike, "precision@5", "b", "a").verdict == "open"
