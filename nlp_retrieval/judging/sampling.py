"""Designs: which pairs people judge, and with what probability each was to be chosen.

Probabilities are fixed before anything is judged, so that estimates can undo the choice (Horvitz and Thompson, JASA 1952).
Pairs are drawn independently of each other (Poisson sampling), so a budget is met on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.pool import JudgingPool
from nlp_retrieval.judging.weights import is_additive, pair_weights

Design = Literal["depth-k", "stratified", "decisive", "move-to-front"]

DESIGNS: tuple[Design, ...] = ("depth-k", "stratified", "decisive", "move-to-front")

_LEAST = 0.1
"""A pair that can be chosen has at least this probability, so that no judgement weighs more than ten; or half of the mean
probability, if the budget is too small for that."""


def choose(
    pool: JudgingPool,
    design: str,
    *,
    budget: int | None,
    seed: int,
    measure: str = "precision@10",
    comparisons: Sequence[tuple[str, str]] | None = None,
) -> JudgingPool:
    """Return a pool with the pairs that people are to judge, and the probabilities with which they were chosen.

    "depth-k" judges all pairs of a question. With a budget below that, it draws families without replacement, each equally
    likely: as many as the budget allows on average, at least one. Every measure can be estimated. "move-to-front" chooses the
    same pairs, and only their order differs (:func:`move_to_front`).

    "stratified" draws single pairs of all questions, those at high ranks and of several systems more often. Measures that are
    sums over pairs can be estimated for every system, others not.

    "decisive" draws single pairs too, in proportion to how far the grade of a pair moves the differences asked about, times how
    uncertain the model is of it (Neyman, 1934); without a model's grades, all are equally uncertain. A pair that moves none of
    them is never chosen, so it estimates these differences and nothing else.

    Args:
        pool: all pairs.
        design: one of :data:`DESIGNS`.
        budget: number of pairs; None for all that the design can choose.
        seed: of the draw.
        measure: a sum over pairs whose differences "decisive" is to find: precision@k or rbp.
        comparisons: pairs of systems that "decisive" compares; None for all.

    Raises:
        ConfigurationError: there is no such design, system, or no such measure for "decisive".
    """
    if design not in DESIGNS:
        raise ConfigurationError(f"design={design!r}; take {', '.join(DESIGNS)}")
    if design == "decisive":
        return _drawn(pool, _influence(pool, measure, comparisons) * _uncertainty(pool), budget, seed)
    if budget is None or budget >= len(pool.item_ids):
        return pool
    if design == "stratified":
        return _drawn(pool, _prominence(pool), budget, seed)
    family = family_numbers(pool.families)
    number = int(family.max()) + 1
    # the share is fixed before the draw, so that the probability does not depend on which families were drawn
    count = max(1, int(number * budget / len(pool.item_ids)))
    drawn = np.isin(family, np.random.default_rng(seed).permutation(number)[:count])
    share = count / number
    return replace(
        pool,
        chosen=drawn[pool.pair_query],
        inclusion=np.full(len(pool.item_ids), share),
        query_inclusion=np.full(len(pool.query_ids), share),
    )


def check_comparisons(comparisons: Sequence[tuple[str, str]], systems: Sequence[str]) -> None:
    """Raise an error if a comparison is not one of two systems.

    Raises:
        ConfigurationError: a system does not exist, or is compared with itself.
    """
    for one, other in comparisons:
        if unknown := [name for name in (one, other) if name not in systems]:
            raise ConfigurationError(f"the systems to compare are {', '.join(systems)}; {unknown[0]!r} is not one of them")
        if one == other:
            raise ConfigurationError(f"{one!r} is to be compared with itself; name two of {', '.join(systems)}")


def move_to_front(pool: JudgingPool) -> NDArray[np.int64]:
    """Return the chosen, unjudged pairs of each question, those of systems first that found relevant pairs last time.

    Cormack, Palmer and Clarke (SIGIR 1998). It finds relevant passages early. Only questions judged completely count in
    estimates, so it changes nothing there.

    Args:
        pool: judged in part.

    Examples:
        >>> project = JudgingProject.create("judging", queries[:1], {"a": {"q1": [("whale", 2.0), ("fox", 1.0)]}}, items)
        >>> move_to_front(project.pool()).tolist()
        [0, 1]
    """
    order: list[int] = []
    names = list(pool.systems)
    for query in range(len(pool.query_ids)):
        standing = dict.fromkeys(names, 0.0)
        for name in names:
            for pair in pool.systems[name][query].tolist():
                if not np.isnan(pool.grades[pair]):
                    standing[name] = 1.0 if pool.grades[pair] >= pool.relevant_from else standing[name] - 0.1
        best = np.zeros(len(pool.item_ids))
        for name in names:
            pairs = pool.systems[name][query]
            best[pairs] = np.maximum(best[pairs], np.exp(standing[name]) / (np.arange(len(pairs)) + 1))
        here = np.flatnonzero((pool.pair_query == query) & pool.chosen & np.isnan(pool.grades))
        order += here[np.argsort(-best[here], kind="stable")].tolist()
    return np.array(order, np.int64)


def _drawn(pool: JudgingPool, size: Scores, budget: int | None, seed: int) -> JudgingPool:
    """Draw pairs independently, with probabilities proportional to a size, of at least 0.1, that sum up to the budget."""
    possible = size > 0
    inclusion = possible.astype(np.float64)
    if budget is not None and budget < possible.sum():
        least = min(_LEAST, budget / possible.sum() / 2)
        low, high = 0.0, 1.0 / size[possible].min()
        for _ in range(60):
            factor = (low + high) / 2
            inclusion = np.where(possible, np.clip(factor * size, least, 1), 0)
            low, high = (factor, high) if inclusion.sum() < budget else (low, factor)
    chosen = np.random.default_rng(seed).random(len(size)) < inclusion
    return replace(pool, chosen=chosen, inclusion=inclusion, query_inclusion=np.ones(len(pool.query_ids)))


def _prominence(pool: JudgingPool) -> Scores:
    """``[pairs]``: the sum over systems of the discount of its rank, as in DCG; deep pairs of one system have the least."""
    prominence = np.full(len(pool.item_ids), 0.1)  # a pair may come from elsewhere than the systems
    for rankings in pool.systems.values():
        for pairs in rankings:
            prominence[pairs] += 1 / np.log2(np.arange(len(pairs)) + 2)
    return prominence


def _influence(pool: JudgingPool, measure: str, comparisons: Sequence[tuple[str, str]] | None) -> Scores:
    """``[pairs]``: root mean square, over comparisons, of the weight of a pair's gain in the difference."""
    if not is_additive(measure):
        raise ConfigurationError(
            f"measure={measure!r}: the design decisive draws single pairs and needs a sum over them; take precision@10 or rbp"
        )
    asked = list(combinations(pool.systems, 2)) if comparisons is None else list(comparisons)
    check_comparisons(asked, list(pool.systems))
    if not asked:
        raise ConfigurationError("there is one system, so there is no difference to decide; give the rankings of at least two")
    weights = {name: pair_weights(pool, measure, name) for name in {name for pair in asked for name in pair}}
    squares = sum(((weights[one] - weights[other]) ** 2 for one, other in asked), np.zeros(len(pool.item_ids)))
    influence: Scores = np.sqrt(squares / len(asked))
    return influence


def _uncertainty(pool: JudgingPool) -> Scores:
    """``[pairs]``: standard deviation of a relevance with the model's probability, which is kept away from 0 and 1."""
    share = np.clip(np.nan_to_num(pool.model - pool.relevant_from + 1, nan=0.5), 0.1, 0.9)
    deviation: Scores = np.sqrt(share * (1 - share))
    return deviation
