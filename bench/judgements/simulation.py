"""Simulated people and judges on collections whose grades are known, and what the estimates make of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bench.judgements.collections import World
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.estimates import QueryValues, intervals, query_values
from nlp_retrieval.judging.pool import JudgingPool
from nlp_retrieval.judging.sampling import choose
from nlp_retrieval.judging.sequences import confidence_sequence
from nlp_retrieval.judging.weights import first_pairs

BASELINE = "bm25"
FAVOURED = "RM3"
JUDGES = ("perfect", "kappa 0.6", "useless", "overrates", "favours one", "fails on a group", "word overlap")
FAMILIES = 120
"""Families of questions in a project; people judge a part."""

Key = tuple[str, str | None]
Floats = NDArray[np.float64]


@dataclass
class Cell:
    """One design, judge and error of people: how often intervals held the truth, and how wide they were.

    Args:
        people: by measure and row, whether the interval from people alone held.
        both: the same with the judge.
        widths: by measure and row, of both kinds.
        errors: by measure and row, how far the values of both kinds are from the truth.
    """

    people: dict[tuple[str, Key], list[bool]] = field(default_factory=lambda: defaultdict(list))
    both: dict[tuple[str, Key], list[bool]] = field(default_factory=lambda: defaultdict(list))
    widths: dict[tuple[str, Key], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    errors: dict[tuple[str, Key], list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))


def judge(world: World, pairs: NDArray[np.int64], name: str, pool: JudgingPool, draw: np.random.Generator) -> Floats:
    """Return a judge's grades of pairs.

    Args:
        world: the collection.
        pairs: their numbers in it.
        name: one of :data:`JUDGES`.
        pool: of these pairs.
        draw: for what is random.
    """
    gold: Floats = world.gold[pairs]
    chance, share = draw.random(len(pairs)), float(world.gold.mean())
    if name == "perfect":
        return gold
    if name == "useless":
        return (chance < share).astype(float)
    if name == "kappa 0.6":  # wrong evenly often in both directions: of n relevant ones, 0.4 n (1 - share) are swapped
        wrong = 0.4 * (1 - share)
        return np.where(gold > 0, chance >= wrong, chance < wrong * share / (1 - share)).astype(np.float64)
    if name == "overrates":
        return np.where(gold > 0, 1.0, chance < (0.6 - share) / (1 - share)).astype(np.float64)
    if name == "favours one":
        favoured = first_pairs(pool, FAVOURED, None)
        return np.where(favoured & (chance < 0.2), 1.0, gold)
    if name == "fails on a group":
        return np.where(pool.pair_query % 3 == 0, (chance < 0.5).astype(float), gold)
    return world.overlap[pairs]


def expected(world: World, measure: str, wrong: float) -> dict[tuple[str, Key], float]:
    """Return the mean of a sum over pairs, and of its differences, over the collection, as people who err judge it on average.

    Args:
        world: the collection.
        measure: a sum over pairs.
        wrong: share of pairs on which people err.
    """
    values = query_values(replace(world.pool, grades=world.gold), measure, BASELINE)
    every = query_values(replace(world.pool, grades=np.ones(len(world.gold))), measure, BASELINE)
    means = (1 - 2 * wrong) * values.people.mean(axis=1) + wrong * every.people.mean(axis=1)
    return {(measure, key): mean for key, mean in zip(values.rows, means.tolist(), strict=True)}


def coverage(
    world: World, measures: Sequence[str], wrong: float, judges: Sequence[str], repetitions: int, seed: int, unseen: float = 1.0
) -> dict[str, Cell]:
    """Return by judge how intervals held in projects with depth-k, of families drawn from the collection with replacement.

    People judge a third of the families of a project. Judges and errors are drawn anew for every 100 projects; the truth is
    what these people say of the whole collection.

    Args:
        world: the collection.
        measures: names.
        wrong: share of pairs on which people err.
        judges: names.
        repetitions: number of projects.
        seed: of all draws.
        unseen: how often a family that nobody has seen counts; 0 leaves Student's interval.
    """
    cells = {name: Cell() for name in judges}
    draw = np.random.default_rng(seed)
    every = np.arange(len(world.gold))
    for _ in range(repetitions // 100):
        errs = draw.random(len(every)) < wrong
        pool = replace(world.pool, grades=np.abs(world.gold - errs))
        for name, cell in cells.items():
            judged = replace(pool, model=judge(world, every, name, pool, draw))
            drawn = [world.numbers(draw.integers(0, len(world.pairs_of), FAMILIES)) for _ in range(100)]
            for measure in measures:
                values = query_values(judged, measure, BASELINE)
                values = replace(values, unseen=values.unseen * unseen)
                means = values.people.mean(axis=1).tolist()
                known = {(measure, key): mean for key, mean in zip(values.rows, means, strict=True)}
                for queries, families in drawn:
                    _count(cell, part(values, queries, families < FAMILIES // 3), families, measure, known)
    return cells


def coverage_of_pairs(
    world: World, design: str, measure: str, wrong: float, judges: Sequence[str], repetitions: int, seed: int
) -> dict[str, Cell]:
    """Return the same for a design that draws single pairs: a third of all, by their probabilities.

    Args:
        world: the collection.
        design: "stratified" or "decisive".
        measure: a sum over pairs.
        wrong: share of pairs on which people err.
        judges: names.
        repetitions: number of projects.
        seed: of all draws.
    """
    known = expected(world, measure, wrong)
    cells = {name: Cell() for name in judges}
    draw = np.random.default_rng(seed)
    for repetition in range(repetitions):
        pool, pairs = world.drawn(draw.integers(0, len(world.pairs_of), FAMILIES // 3).tolist())
        asked = [(FAVOURED, BASELINE)]
        pool = choose(pool, design, budget=len(pairs) // 8, seed=repetition, measure=measure, comparisons=asked)
        errs = draw.random(len(pairs)) < wrong
        pool = replace(pool, grades=np.where(pool.chosen, np.abs(world.gold[pairs] - errs), np.nan))
        for name, cell in cells.items():
            judged = replace(pool, model=judge(world, pairs, name, pool, draw))
            _count(cell, query_values(judged, measure, BASELINE), family_numbers(pool.families), measure, known)
    return cells


def _count(
    cell: Cell, values: QueryValues, families: NDArray[np.int64], measure: str, known: Mapping[tuple[str, Key], float]
) -> None:
    people, both, _ = intervals(values, families)
    for row, pair in enumerate(values.rows):
        if values.reasons[row]:
            continue
        key = (measure, pair)
        truth = known[key]
        cell.people[key].append(bool(people[row, 1] - 1e-9 <= truth <= people[row, 2] + 1e-9))
        cell.both[key].append(bool(both[row, 1] - 1e-9 <= truth <= both[row, 2] + 1e-9))
        cell.widths[key].append((float(people[row, 2] - people[row, 1]), float(both[row, 2] - both[row, 1])))
        cell.errors[key].append((float(people[row, 0] - truth), float(both[row, 0] - truth)))


def part(values: QueryValues, queries: NDArray[np.int64], complete: NDArray[np.bool_]) -> QueryValues:
    """Return the values of some queries, of which some are judged.

    Args:
        values: of all queries.
        queries: their numbers, also several times.
        complete: ``[queries]``.
    """
    people, sampled, model = values.people[:, queries], values.sampled[:, queries], values.model[:, queries]
    return replace(values, people=people, sampled=sampled, model=model, complete=complete)


def stopping(world: World, measure: str, repetitions: int, seed: int, families: int = 200) -> float:
    """Return how often somebody who looks after every family, and stops when it is decided, decides wrongly.

    All systems have the truth of the collection; a verdict is wrong if the difference has another sign, or is 0.

    Args:
        world: the collection.
        measure: its name.
        repetitions: number of projects, for each difference.
        seed: of the draws.
        families: in a project.
    """
    draw = np.random.default_rng(seed)
    values = query_values(replace(world.pool, grades=world.gold), measure, BASELINE)
    wrong = [0] * len(values.rows)
    rows = [row for row, (_, other) in enumerate(values.rows) if other is not None]
    sums = np.array([values.people[:, queries].sum(axis=1) for queries in world.pairs_of]).T
    sizes = np.array([len(queries) for queries in world.pairs_of])
    for row in rows:
        truth = values.people[row].mean()
        for _ in range(repetitions):
            drawn = draw.integers(0, len(sizes), families)
            low, high = (values.bounds[row] / sizes.mean()).tolist()
            ends = confidence_sequence(sums[row, drawn] / sizes.mean(), (low, high)) if low < high else np.zeros((1, 2))
            wrong[row] += bool(((ends[:, 0] > truth + 1e-9) | (ends[:, 1] < truth - 1e-9)).any())
    return max(wrong[row] for row in rows) / repetitions


def until_decided(world: World, difference: float, repetitions: int, seed: int, most: int = 400) -> dict[str, list[float]]:
    """Return by design how many pairs people judged until a true difference in precision@10 was decided.

    The other system is the baseline with its relevant pairs exchanged at random between both, so that they differ in many
    pairs and by ``difference`` on average.

    Args:
        world: the collection.
        difference: in precision@10.
        repetitions: number of projects.
        seed: of the draws.
        most: number of families in a project; a difference that is not decided then counts as that of all their pairs.
    """
    draw = np.random.default_rng(seed)
    found: dict[str, list[float]] = {"depth-k": [], "decisive": []}
    for repetition in range(repetitions):
        pool, pairs = world.drawn(draw.integers(0, len(world.pairs_of), most).tolist())
        gold = world.gold[pairs].copy()
        one, other = first_pairs(pool, FAVOURED, 10), first_pairs(pool, BASELINE, 10)
        only, gain = np.flatnonzero(one & ~other), difference * 10 * len(pool.query_ids)
        have = gold[only].sum() - gold[other & ~one].sum()
        free = only[gold[only] == 0]
        gold[draw.permutation(free)[: max(0, round(gain - have))]] = 1
        for design, counts in found.items():
            chosen = choose(pool, design, budget=None, seed=repetition, comparisons=[(FAVOURED, BASELINE)])
            judged = replace(chosen, grades=np.where(chosen.chosen, gold, np.nan))
            values = query_values(judged, "precision@10", BASELINE)
            row = values.rows.index((FAVOURED, BASELINE))
            families = np.array([int(name or 0) for name in pool.families])
            sizes = np.bincount(families)
            sums = np.bincount(families, values.people[row]) / sizes.mean()
            low, high = (values.bounds[row] / sizes.mean()).tolist()
            ends = confidence_sequence(sums, (low, high))
            (clear,) = np.nonzero(ends[:, 0] > 0)
            until = int(clear[0]) + 1 if len(clear) else most
            counts.append(float(chosen.chosen[families[pool.pair_query] < until].sum()))
    return found
