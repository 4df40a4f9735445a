"""Measures and differences of systems, with intervals, from the judgements of a design, with and without a model's grades.

Families of questions are assumed to be a random sample of those that could be asked. Intervals cover how they and the judged
pairs were drawn. A family counts once all its chosen pairs are judged. As long as families are judged in a random order,
those are a random sample of families, too.

People alone: a sum over pairs is estimated by its judged pairs, each divided by its probability (Horvitz and Thompson, 1952).

With a model: its grades of all pairs, corrected by what people say about those that both judged (prediction-powered inference,
Angelopoulos et al., Science 2023; for retrieval measures: https://arxiv.org/abs/2407.02464). The model has the weight
that makes the interval narrowest (PPI++, https://arxiv.org/abs/2311.01453), chosen for each family by the others, so
that the estimate stays unbiased, and shrunk towards 0 as far as chance could have produced it.

Intervals are Student's, over families, and count one more family that nobody has seen, as far from the mean as the rankings
allow. Systems that are alike differ in few questions: if none of them was asked yet, Student's interval is a point, and
holds the truth far too seldom. ``python -m bench.judgements DATA`` measures both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.resampling import family_numbers
from nlp_retrieval.judging.pool import JudgingPool
from nlp_retrieval.judging.weights import by_query, first_pairs, is_additive, pair_weights, values_by_query

_FEWEST_FOR_MODEL = 5
"""With fewer families, the weight of the model is 0."""

_Z = 1.959964
_TINY = 1e-12
_NEVER = "the design never chooses pairs that this needs; name this comparison when the project is made, or take another design"
_WHOLE = "mean over questions; the pool is all that is relevant, and a question without a relevant pair scores 0"
_POOLED = "share of all relevant pairs of the pool that are found, over all questions together"
_T = {1: 12.70620, 2: 4.30265, 3: 3.18245, 4: 2.77645, 5: 2.57058}


class ValueInterval(NamedTuple):
    """An estimate and its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A measure of a system, or the difference of a system and a baseline.

    Args:
        measure: its name.
        system: the system.
        baseline: None for the measure of the system itself.
        people: from people's judgements alone; None if it cannot be estimated.
        both: with the model's grades as well; None if there are none.
        weight: of the model, on average over families; 0 leaves it out.
        uncalibrated: from the model's grades alone, which is no result: nobody knows how far it is off.
        families: number of families that count.
        judgements: number of judged pairs in them.
        estimand: what is estimated.
        reason: why it cannot be estimated, and what to do.

    Examples:
        >>> project = JudgingProject.create("judging", queries, {"a": {"q1": [("whale", 1.0)], "q2": [("krill", 1.0)]}}, items)
        >>> for pair, grade in enumerate([1, 0]):
        ...     _ = project.judge(pair, grade, by="Ann")
        >>> (estimate,) = estimate_measures(project.pool(), ["precision@1"])
        >>> estimate.people.value, estimate.families, estimate.judgements
        (0.5, 2, 2)
    """

    measure: str
    system: str
    baseline: str | None
    people: ValueInterval | None = None
    both: ValueInterval | None = None
    weight: float = 0.0
    uncalibrated: float | None = None
    families: int = 0
    judgements: int = 0
    estimand: str = ""
    reason: str = ""


@dataclass(frozen=True, eq=False)
class QueryValues:
    """A measure by query, for systems and differences: what estimates and decisions are computed from.

    Args:
        rows: system and baseline of each row.
        people: ``[rows, queries]``, unbiased values from people's grades; only those of ``complete`` queries mean anything.
        sampled: ``[rows, queries]``, the same of the model's grades, on the pairs that people judged.
        model: ``[rows, queries]``, of all pairs by the model's grades.
        complete: ``[queries]``, whether all chosen pairs of its family are judged.
        unseen: ``[rows]``, mean square of how far a family's sum can be from the mean, by the rankings of this pool.
        bounds: ``[rows, 2]``, the lowest and the highest sum of a family by the rankings of this pool.
        has_model: whether there are model's grades.
        reasons: per row, why it cannot be estimated; empty if it can.
        estimand: what is estimated.
    """

    rows: list[tuple[str, str | None]]
    people: Scores
    sampled: Scores
    model: Scores
    complete: Mask
    unseen: Scores
    bounds: Scores
    has_model: bool
    reasons: list[str]
    estimand: str

    @property
    def is_ratio(self) -> bool:
        """Return whether values are of a ratio of two sums, linearised, rather than of each query."""
        return self.estimand == _POOLED


def estimate_measures(
    pool: JudgingPool,
    measures: Sequence[str],
    baseline: str | None = None,
) -> list[Estimate]:
    """Estimate measures of all systems, and the differences to a baseline or of every two.

    Args:
        pool: judged in part.
        measures: names, such as precision@10, recall@10, ndcg@10, mrr@10, perfect_recall@10, rbp. Recall and nDCG
            take the pool as all that is relevant.
        baseline: a system; None compares every two.

    Returns:
        By measure: the systems, then the differences.

    Raises:
        ConfigurationError: a measure or the baseline does not exist.

    Examples:
        >>> runs = {"a": {"q1": [("whale", 1.0)], "q2": [("fox", 1.0)]}, "b": {"q1": [("krill", 1.0)], "q2": [("fox", 1.0)]}}
        >>> project = JudgingProject.create("judging", queries, runs, items)
        >>> for pair, grade in enumerate([1, 1, 0]):
        ...     _ = project.judge(pair, grade, by="Ann")
        >>> estimate = estimate_measures(project.pool(), ["recall@1"])[-1]
        >>> estimate.system, estimate.baseline, estimate.people.value
        ('b', 'a', -0.5)
    """
    return [estimate for measure in measures for estimate in _estimates(pool, query_values(pool, measure, baseline), measure)]


def query_values(pool: JudgingPool, measure: str, baseline: str | None = None) -> QueryValues:
    """Return a measure by query for all systems, and for their differences.

    Args:
        pool: judged in part.
        measure: its name.
        baseline: a system; None compares every two.

    Raises:
        ConfigurationError: the measure or the baseline does not exist.
    """
    if baseline is not None and baseline not in pool.systems:
        raise ConfigurationError(f"the pool has no system {baseline!r}; {nearest(baseline, list(pool.systems))}")
    names = list(pool.systems)
    pairs = [(other, one) for one, other in combinations(names, 2)]
    if baseline is not None:
        pairs = [(name, baseline) for name in names if name != baseline]
    rows: list[tuple[str, str | None]] = [*((name, None) for name in names), *pairs]
    families = family_numbers(pool.families)
    waiting = pool.chosen & np.isnan(pool.grades)
    left_out = ~pool.chosen & (within(pool) >= 1)  # the query was not drawn
    unfinished = np.bincount(families[pool.pair_query[waiting | left_out]], minlength=int(families.max(initial=-1)) + 1) > 0
    complete: Mask = ~unfinished[families]
    if pool.reached is not None:
        complete &= pool.reached
    if is_additive(measure):
        return _additive(pool, measure, rows, complete)
    if Measure.read(measure).family == "recall" and _draws_pairs(pool).any():
        return _pooled_recall(pool, Measure.read(measure).cutoff, rows, complete)
    return _whole(pool, measure, rows, complete)


def within(pool: JudgingPool) -> Scores:
    """Return ``[pairs]``, the probability with which a pair is chosen if its query is."""
    inclusion: Scores = pool.inclusion / pool.query_inclusion[pool.pair_query]
    return np.where(inclusion > 1 - 1e-9, 1.0, inclusion)


def _matrix(rows: list[tuple[str, str | None]], by_system: dict[str, Scores]) -> Scores:
    return np.stack([by_system[one] - (0 if other is None else by_system[other]) for one, other in rows])


def _draws_pairs(pool: JudgingPool) -> Mask:
    """``[queries]``, whether the design draws single pairs of a query, or leaves some out."""
    draws = np.zeros(len(pool.query_ids), np.bool_)
    draws[pool.pair_query[within(pool) < 1]] = True
    return draws


def _additive(pool: JudgingPool, measure: str, rows: list[tuple[str, str | None]], complete: Mask) -> QueryValues:
    return _sums(pool, _matrix(rows, {name: pair_weights(pool, measure, name) for name in pool.systems}), rows, complete)


def _sums(pool: JudgingPool, weights: Scores, rows: list[tuple[str, str | None]], complete: Mask) -> QueryValues:
    """Values that are sums of relevance, with ``[rows, pairs]`` weights."""
    inclusion = within(pool)
    judged = pool.chosen & ~np.isnan(pool.grades)
    relevant = (np.nan_to_num(pool.grades) >= pool.relevant_from).astype(np.float64)
    model, has_model = _model_relevance(pool)
    used = np.abs(weights) > _TINY
    reasons = [_NEVER if (row & (inclusion <= 0)).any() else "" for row in used]
    # of an unseen question, half of a ranking is relevant; pairs for and against a system cancel out in part
    inverse = np.divide(1, inclusion, out=np.zeros_like(inclusion), where=inclusion > 0)
    squares = weights**2 * inverse
    noise = _by_family(pool, by_query(pool, squares))
    whole = (_by_family(pool, by_query(pool, np.abs(weights))) / 2) ** 2
    single = np.array([baseline is None for _, baseline in rows])
    extra = _by_family(pool, by_query(pool, squares - weights**2))
    return QueryValues(
        rows=rows,
        people=by_query(pool, weights * (judged * inverse * relevant)),
        sampled=by_query(pool, weights * (judged * inverse * model)),
        model=by_query(pool, weights * model),
        complete=complete,
        unseen=np.where(single[:, None], whole + extra, noise).mean(axis=1),
        bounds=_bounds(pool, np.minimum(weights, 0) * inverse, np.maximum(weights, 0) * inverse),
        has_model=has_model,
        reasons=reasons,
        estimand="mean over questions",
    )


def _pooled_recall(pool: JudgingPool, k: int | None, rows: list[tuple[str, str | None]], complete: Mask) -> QueryValues:
    """Recall as a ratio of two sums, linearised at their estimates (Cochran, Sampling Techniques, 1977, chapter 6)."""
    names = [(name, None) for name in pool.systems]
    firsts = np.stack([first_pairs(pool, name, k) for name in pool.systems]).astype(np.float64)
    every = _sums(pool, np.ones((1, len(pool.item_ids))), [("", None)], complete)
    found = _sums(pool, firsts, [*names], complete)
    relevant = every.people[0, complete].mean() if complete.any() else 0.0
    if relevant <= 0:
        reason = "no relevant pair was found yet; judge on"
        nothing = np.zeros((len(rows), len(pool.query_ids)))
        return QueryValues(
            rows, nothing, nothing, nothing, complete, nothing[:, 0], nothing[:, :2], False, [reason] * len(rows), _POOLED
        )
    recall = dict(zip(pool.systems, (found.people[:, complete].mean(axis=1) / relevant).tolist(), strict=True))
    place = {name: number for number, name in enumerate(pool.systems)}
    levels = np.array([recall[one] - (0 if other is None else recall[other]) for one, other in rows])
    weights = _matrix(rows, {name: firsts[number] for name, number in place.items()})
    values = _sums(pool, (weights - levels[:, None]) / relevant, rows, complete)
    reason = every.reasons[0]
    people = values.people + levels[:, None]
    return replace(values, people=people, reasons=[reason] * len(rows), estimand=_POOLED)


def _whole(pool: JudgingPool, measure: str, rows: list[tuple[str, str | None]], complete: Mask) -> QueryValues:
    read = Measure.read(measure)
    name = str(read)
    people = _matrix(rows, values_by_query(pool, pool.grades, [name])[name])
    model, has_model = _model_relevance(pool)
    grades = pool.model if pool.relevant_from > 1 else model  # several grades count in nDCG
    other = _matrix(rows, values_by_query(pool, grades, [name])[name]) if has_model else np.zeros_like(people)
    reason = (
        f"{name} needs questions whose pairs are all judged, and this design draws single pairs; make a project with depth-k"
        if _draws_pairs(pool).any()
        else ""
    )
    reach = np.stack([_reach(pool, system, baseline, read) for system, baseline in rows])
    family_reach, single = _by_family(pool, reach).max(axis=1), np.array([baseline is None for _, baseline in rows])
    return QueryValues(
        rows=rows,
        people=people,
        sampled=other,
        model=other,
        complete=complete,
        unseen=(_by_family(pool, reach) ** 2).mean(axis=1),
        bounds=np.stack([-family_reach * ~single, family_reach], axis=1),
        has_model=has_model,
        reasons=[reason] * len(rows),
        estimand=_WHOLE,
    )


def _reach(pool: JudgingPool, system: str, baseline: str | None, measure: Measure) -> Scores:
    """``[queries]``, how far the measure of a system, or the difference of two, can be from 0 by the rankings."""
    if baseline is None:
        return np.ones(len(pool.query_ids))
    cut = slice(None, measure.cutoff)
    reach = np.empty(len(pool.query_ids))
    for query, (one, other) in enumerate(zip(pool.systems[system], pool.systems[baseline], strict=True)):
        first, second = one[cut].tolist(), other[cut].tolist()
        if measure.family in ("recall", "perfect_recall", "f1"):
            reach[query] = set(first) != set(second)
            continue
        same = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second)))
        reach[query] = 0 if first == second else 1 / (same + 1) if measure.family == "mrr" else 1
    return reach


def _bounds(pool: JudgingPool, low: Scores, high: Scores) -> Scores:
    """``[rows, 2]``, the lowest and the highest sum of a family, from the lowest and highest values of pairs."""
    lowest, highest = (_by_family(pool, by_query(pool, ends)) for ends in (low, high))
    return np.stack([lowest.min(axis=1), highest.max(axis=1)], axis=1)


def _by_family(pool: JudgingPool, rows: Scores) -> Scores:
    """``[rows, families]``, sums over the queries of each family."""
    families = family_numbers(pool.families)
    return np.stack([np.bincount(families, row) for row in rows])


def _model_relevance(pool: JudgingPool) -> tuple[Scores, bool]:
    """``[pairs]``, probability of relevance by the model; where it gave none, its mean. And whether it gave any."""
    given = ~np.isnan(pool.model)
    if not given.any():
        return np.zeros(len(pool.model)), False
    relevance = np.clip(pool.model - pool.relevant_from + 1, 0, 1)
    return np.where(given, relevance, relevance[given].mean()), True


def _estimates(pool: JudgingPool, values: QueryValues, measure: str) -> list[Estimate]:
    count = int(values.complete.sum())
    own = family_numbers(pool.families)[values.complete]
    judged = int((values.complete[pool.pair_query] & pool.chosen & ~np.isnan(pool.grades)).sum())
    about = {"families": len(np.unique(own)), "judgements": judged, "estimand": values.estimand}
    alone = values.model.mean(axis=1)
    uncalibrated = [float(value) if values.has_model else None for value in alone]
    if not count:
        reason = "no family of questions is judged completely yet; judge on in the given order"
        return [
            Estimate(measure, one, other, uncalibrated=alone, reason=why or reason, **about)  # type: ignore[arg-type]
            for (one, other), why, alone in zip(values.rows, values.reasons, uncalibrated, strict=True)
        ]
    people, both, weight = intervals(values, family_numbers(pool.families))
    found = []
    for row, (one, other) in enumerate(values.rows):
        if values.reasons[row]:
            found.append(Estimate(measure, one, other, uncalibrated=uncalibrated[row], reason=values.reasons[row], **about))  # type: ignore[arg-type]
            continue
        with_model = ValueInterval(*both[row].tolist()) if values.has_model else None
        by_people = ValueInterval(*people[row].tolist())
        found.append(Estimate(measure, one, other, by_people, with_model, float(weight[row]), uncalibrated[row], **about))  # type: ignore[arg-type]
    return found


def intervals(values: QueryValues, families: NDArray[np.int64]) -> tuple[Scores, Scores, Scores]:
    """Return ``[rows, 3]``, value, low and high, from people alone and with the model, and ``[rows]``, the model's weight.

    Args:
        values: by query, of which at least one is complete.
        families: per query, number of its family.
    """
    own = families[values.complete]
    people = values.people[:, values.complete]
    alone = _interval(values, people.mean(axis=1), _half_widths(people, own, values.unseen))
    if not values.has_model:
        return alone, alone, np.zeros(len(people))
    corrected, weight, added = powered(values, families)
    half = np.hypot(_half_widths(corrected, own, values.unseen), added[:, 1])
    return alone, _interval(values, corrected.mean(axis=1) + added[:, 0], half), weight


def _interval(values: QueryValues, means: Scores, half: Scores) -> Scores:
    lowest = np.array([0.0 if baseline is None else -1.0 for _, baseline in values.rows])
    return np.stack([means, np.maximum(lowest, means - half), np.minimum(1.0, means + half)], axis=1)


def _half_widths(rows: Scores, families: NDArray[np.int64], unseen: Scores) -> Scores:
    """``[rows]``: half of the 95% interval of the mean of ``[rows, queries]``, over families, with one that nobody has seen."""
    numbers, place = np.unique(families, return_inverse=True)
    n = len(numbers)
    squares = (_centred(rows, place, n) ** 2).sum(axis=1) + unseen
    half: Scores = student(max(1, n - 1)) * np.sqrt(squares * n / max(1, n - 1)) / rows.shape[1]
    return half


def student(freedom: int) -> float:
    """Return the quantile of Student's t for 95% intervals (Abramowitz and Stegun, 1964, 26.7.5).

    Args:
        freedom: degrees of freedom.
    """
    if freedom in _T:
        return _T[freedom]
    z, v = _Z, freedom
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384)
    quantile: float = z + sum(term / v ** (power + 1) for power, term in enumerate(terms))
    return quantile


def powered(values: QueryValues, families: NDArray[np.int64]) -> tuple[Scores, Scores, Scores]:
    """Correct people's values by the model's.

    Args:
        values: by query.
        families: per query, number of its family.

    Returns:
        ``[rows, complete queries]``; the mean weight of the model by row; and ``[rows, 2]``, what other questions add to the
        mean, and 1.96 times its standard deviation.
    """
    complete = values.complete
    share = complete.mean()
    own = families[complete]
    people = values.people[:, complete]
    error = values.sampled[:, complete] - share * values.model[:, complete]
    numbers, place = np.unique(own, return_inverse=True)
    n = len(numbers)
    rest = _mean_and_variance(values.model[:, ~complete], families[~complete]) if share < 1 else np.zeros((2, len(people)))
    if n < _FEWEST_FOR_MODEL:
        return people, np.zeros(len(people)), np.zeros((len(people), 2))
    a, b = (_centred(rows, place, n) for rows in (people, error))
    aa, ab, bb = a * a, a * b, b * b
    # of each family, by the others
    aa, ab, bb = (x.sum(axis=1, keepdims=True) - x for x in (aa, ab, bb))
    noise = bb + (1 - share) ** 2 * rest[1][:, None] * complete.sum() ** 2
    weight = np.divide(ab, noise, out=np.zeros_like(ab), where=noise > _TINY)
    fit = np.divide(ab * ab, aa * noise, out=np.zeros_like(ab), where=aa * noise > _TINY)
    shrunk = np.clip(
        1 - np.divide(1 - np.minimum(fit, 1), fit * (n - 1), out=np.full_like(fit, np.inf), where=fit > _TINY), 0, 1
    )
    weight = np.maximum(weight, 0) * shrunk
    weights = weight[:, place]
    corrected = people - weights * error
    mean = weights.mean(axis=1)  # over queries, as the estimate is: what the model adds to all of them cancels out
    others = mean * (1 - share)
    return corrected, mean, np.stack([others * rest[0], _Z * others * np.sqrt(rest[1])], axis=1)


def _centred(rows: Scores, place: NDArray[np.int64], n: int) -> Scores:
    """``[rows, families]``, sums of the deviations from the mean."""
    deviations = rows - rows.mean(axis=1, keepdims=True)
    return np.stack([np.bincount(place, row, n) for row in deviations])


def _mean_and_variance(rows: Scores, families: NDArray[np.int64]) -> Scores:
    """``[2, rows]``: mean over queries, and its variance over families."""
    numbers, place = np.unique(families, return_inverse=True)
    n = len(numbers)
    sums = _centred(rows, place, n)
    variance = (sums**2).sum(axis=1) / rows.shape[1] ** 2 * n / max(1, n - 1)
    return np.stack([rows.mean(axis=1), variance])
