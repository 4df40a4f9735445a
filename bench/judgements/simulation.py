"""Simulated people on collections whose grades are known, and what confidence sequences make of their judgements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.judgements.collections import World
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.pool import DESIGNS, choose, pair_weights
from nlp_retrieval.judging.sequences import confidence_sequence, values_by_family

BASELINE, FAVOURED = "bm25", "RM3"


def stopping(world: World, measure: str, wrong: float, repetitions: int, seed: int, families: int = 200) -> float:
    """Return how often somebody who looks after every family ever sees an interval that misses the truth.

    The truth is the mean over the collection, as the same people would judge it; the worst difference to the baseline counts.

    Args:
        world: the collection.
        measure: its name.
        wrong: share of pairs on which people err.
        repetitions: number of projects, for each difference.
        seed: of the draws.
        families: in a project.
    """
    draw = np.random.default_rng(seed)
    errs = draw.random(len(world.gold)) < wrong
    pool = replace(world.pool, grades=np.abs(world.gold - errs))
    missed = []
    for system in pool.systems:
        if system == BASELINE:
            continue
        values, low, high = values_by_family(pool, measure, system, BASELINE)
        drawn = draw.integers(0, len(values), (repetitions, families))
        ends = [confidence_sequence(values[own], (low, high)) if low < high else np.zeros((1, 2)) for own in drawn]
        truth = values.mean()
        missed.append(np.mean([((each[:, 0] > truth + 1e-9) | (each[:, 1] < truth - 1e-9)).any() for each in ends]))
    return float(max(missed))


def until_decided(world: World, difference: float, repetitions: int, seed: int, most: int = 400) -> dict[str, list[float]]:
    """Return by design how many pairs people judged until a true difference in precision@10 was decided.

    Pairs that only the other system finds are called relevant at random until both differ by ``difference`` on average.

    Args:
        world: the collection.
        difference: in precision@10.
        repetitions: number of projects.
        seed: of the draws.
        most: number of families in a project; a difference that is not decided then counts as that of all their pairs.
    """
    draw = np.random.default_rng(seed)
    found: dict[str, list[float]] = {design: [] for design in DESIGNS}
    for repetition in range(repetitions):
        pool, pairs = world.drawn(draw.integers(0, len(world.pairs_of), most).tolist())
        gold = world.gold[pairs].copy()
        one, other = (pair_weights(pool, "precision@10", name) > 0 for name in (FAVOURED, BASELINE))
        only, gain = np.flatnonzero(one & ~other), difference * 10 * len(pool.query_ids)
        have = gold[only].sum() - gold[other & ~one].sum()
        free = only[gold[only] == 0]
        gold[draw.permutation(free)[: max(0, round(gain - have))]] = 1
        families = family_numbers(pool.families)
        for design in DESIGNS:
            chosen = choose(pool, design, None, repetition, "precision@10", [(FAVOURED, BASELINE)]).chosen
            judged = replace(pool, chosen=chosen, grades=np.where(chosen, gold, np.nan))
            values, low, high = values_by_family(judged, "precision@10", FAVOURED, BASELINE)
            (clear,) = np.nonzero(confidence_sequence(values, (low, high))[:, 0] > 0)
            until = int(clear[0]) + 1 if len(clear) else most
            found[design].append(float(chosen[families[pool.pair_query] < until].sum()))
    return found
