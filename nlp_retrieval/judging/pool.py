"""What may be judged, which pairs of it people judge, and what the judged pairs say of a measure, question by question.

A design draws families of questions, each equally likely, before anything is judged. Of these, "depth-k" has every pair judged,
so every measure is known; "decisive" only the pairs that move the differences asked about, so these differences are known
exactly as well, and nothing else is. A family counts once all its chosen pairs are judged and its turn in a random order has
come: those that count are a random sample of families.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Scores, offsets_of
from nlp_retrieval.core.models import Gold
from nlp_retrieval.core.queries import synthetic_note
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.resampling import family_numbers

Design = Literal["depth-k", "decisive"]
DESIGNS: tuple[Design, ...] = ("depth-k", "decisive")


@dataclass(frozen=True, eq=False)
class JudgingPool:
    """Pairs of question and passage that may be judged, and what is known of them.

    Args:
        query_ids: in order.
        families: per query; queries of a family are not independent. None: its own family.
        systems: by system, per query, the numbers of pairs in the order of its ranking, to the depth.
        pair_query: ``[pairs]``, number of the query.
        item_ids: ``[pairs]``.
        chosen: ``[pairs]``, whether people are to judge it.
        drawn: ``[queries]``, whether the design drew it.
        grades: ``[pairs]``, people's grade; NaN where nobody has judged (yet).
        model: ``[pairs]``, a model's grade, which may lie between two grades; NaN where it gave none.
        relevant_from: the least grade that counts as relevant.
        reached: ``[queries]``, whether judging has come to a query, in the random order of families; None: to all. A query of
            which no pair was chosen has nothing to wait for, and would otherwise count before its turn.
        synthetic: number of queries that a model wrote.

    Examples:
        >>> project = JudgingProject.create("judging", queries, {"a": {"q1": [("whale", 2.0), ("fox", 1.0)]}}, items)
        >>> pool = project.pool()
        >>> pool.query_ids, pool.item_ids, pool.systems["a"][0].tolist()
        (['q1'], ['whale', 'fox'], [0, 1])
    """

    query_ids: list[str]
    families: list[str | None]
    systems: Mapping[str, list[NDArray[np.int64]]]
    pair_query: NDArray[np.int64]
    item_ids: list[str]
    chosen: Mask
    drawn: Mask
    grades: Scores
    model: Scores
    relevant_from: int = 1
    reached: Mask | None = None
    synthetic: int = 0

    @property
    def judged(self) -> Mask:
        """``[pairs]``, whether a person judged it."""
        return ~np.isnan(self.grades)

    @property
    def relevant(self) -> Mask:
        """``[pairs]``, whether people judged it relevant."""
        return np.nan_to_num(self.grades) >= self.relevant_from

    @property
    def complete(self) -> Mask:
        """``[queries]``, whether its family counts: it was drawn, its turn has come, and no chosen pair of it waits."""
        families = family_numbers(self.families)
        waits = np.bincount(families[self.pair_query[self.chosen & ~self.judged]], minlength=len(families)) > 0
        counts: Mask = self.drawn & ~waits[families]
        return counts if self.reached is None else counts & self.reached

    @property
    def synthetic_note(self) -> str:
        """Return the sentence that belongs beside every figure if a model wrote some of the questions; else ``""``."""
        return synthetic_note(self.synthetic, len(self.query_ids))


def choose(
    pool: JudgingPool,
    design: Design,
    budget: int | None,
    seed: int,
    measure: str,
    comparisons: Sequence[tuple[str, str]] | None,
) -> JudgingPool:
    """Return a pool with the pairs that people are to judge; of a budget, as many families as it allows on average.

    Raises:
        ConfigurationError: a system does not exist, or "decisive" cannot compare by the measure.
    """
    asked = list(combinations(pool.systems, 2)) if comparisons is None else list(comparisons)
    for one, other in asked:
        known_system(pool, one)
        known_system(pool, other)
        if one == other:
            raise ConfigurationError(f"{one!r} is to be compared with itself; name two of {', '.join(pool.systems)}")
    wanted = np.ones(len(pool.item_ids), bool)
    if design == "decisive":
        if not is_sum(measure):
            raise ConfigurationError(
                f"measure={measure!r}: the design decisive compares by precision@k; take one, such as precision@10"
            )
        if not asked:
            raise ConfigurationError("there is one system, so there is no difference to decide; give the rankings of two")
        wanted = np.any(
            [pair_weights(pool, measure, one) != pair_weights(pool, measure, other) for one, other in asked], axis=0
        )
    if budget is None or budget >= wanted.sum():
        return replace(pool, chosen=wanted)
    families = family_numbers(pool.families)
    number = int(families.max()) + 1
    count = max(1, int(number * budget / wanted.sum()))
    drawn = np.isin(families, np.random.default_rng(seed).permutation(number)[:count])
    return replace(pool, chosen=wanted & drawn[pool.pair_query], drawn=drawn)


def known_system(pool: JudgingPool, name: str) -> None:
    """Raise a ConfigurationError if there is no such system."""
    if name not in pool.systems:
        raise ConfigurationError(f"the pool has no system {name!r}; {nearest(name, list(pool.systems))}")


def is_sum(measure: str) -> bool:
    """Return whether a measure is a sum over pairs, with weights that do not depend on grades: precision@k."""
    read = Measure.read(measure)
    return read.family == "precision" and read.cutoff is not None


def pair_weights(pool: JudgingPool, measure: str, system: str) -> Scores:
    """Return ``[pairs]``, what a relevant pair adds to precision@k of its query in a system's ranking."""
    cutoff = Measure.read(measure).cutoff or 1
    weights = np.zeros(len(pool.item_ids))
    weights[np.concatenate([pairs[:cutoff] for pairs in pool.systems[system]])] = 1 / cutoff
    return weights


def values_by_query(pool: JudgingPool, measure: str, systems: Sequence[str]) -> dict[str, Scores]:
    """Return ``[queries]`` by system, as if the judged pairs were all that is relevant; without a relevant one, 0."""
    if not pool.relevant.any():
        Measure.read(measure)
        return dict.fromkeys(systems, np.zeros(len(pool.query_ids)))
    relevance: list[dict[str, int]] = [{} for _ in pool.query_ids]
    for pair in np.flatnonzero(pool.judged).tolist():
        relevance[pool.pair_query[pair]][str(pair)] = int(pool.grades[pair])
    gold = [Gold(query_id=name, relevance=own) for name, own in zip(pool.query_ids, relevance, strict=True)]
    ids = [str(pair) for pair in range(len(pool.item_ids))]
    evaluator = RetrievalEvaluator(gold, ids, None, measures=[measure], relevant_from=pool.relevant_from)
    values = {}
    for system in systems:
        rankings = pool.systems[system]
        evaluated = evaluator.evaluate_ragged(offsets_of([len(pairs) for pairs in rankings]), np.concatenate(rankings))
        (values[system],) = evaluated.per_query.values()
    return values


def why_unknown(pool: JudgingPool, measure: str, system: str, baseline: str | None = None) -> str:
    """Return why the design cannot tell a system's measure, or its difference to a baseline; empty if it can."""
    missing = pool.drawn[pool.pair_query] & ~pool.chosen
    if is_sum(measure):
        weights = pair_weights(pool, measure, system)
        missing &= (weights if baseline is None else weights - pair_weights(pool, measure, baseline)) != 0
    if not missing.any():
        return ""
    if is_sum(measure) and baseline is not None:
        return "the design chose no pairs for this comparison; name it with --compare when the project is made"
    return f"{measure} needs questions whose pairs are all judged; make a project with the design depth-k"
