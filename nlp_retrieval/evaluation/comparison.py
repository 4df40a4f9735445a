"""Comparing systems query by query: the size of each difference, its interval, and its significance.

The tests of one measure are corrected together, by Holm's method; each measure is corrected separately. The test and the
correction are computed in :mod:`nlp_retrieval.evaluation.resampling`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.errors import ConfigurationError, GoldError, nearest
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.evaluation.resampling import (
    ROUNDING,
    bootstrap_intervals,
    family_numbers,
    family_sums,
    holm,
    refined_test,
)
from nlp_retrieval.text.printing import counted

RESAMPLES = 10_000
MOST_RESAMPLES = 10_000_000
LEVEL = 0.95
_ALPHA = 0.05
_AT_ONCE = 2**23  # differences, or means of resamples, per batch


def resamples_for(comparisons: int) -> int:
    """Return how many arrangements to draw for tests that are corrected together.

    The smallest p-value possible, corrected by Holm's method, is at most a quarter of 0.05: enough to find any of the
    differences significant.
    """
    return max(RESAMPLES, math.ceil(4 * comparisons / _ALPHA))


@dataclass(frozen=True)
class Comparison:
    """One system against another in one measure, over the same queries.

    Args:
        measure: its name, such as ``"recall@5"``; higher is better.
        system: the system under test.
        baseline: the system to compare with.
        difference: mean over queries of the system's value minus the baseline's.
        interval: interval of the difference, over families (:mod:`~nlp_retrieval.evaluation.resampling`); not corrected for the
            number of comparisons.
        level: confidence level of the interval.
        p: p-value of the paired randomisation test, two-sided.
        p_holm: p corrected for ``comparisons``.
        comparisons: number of comparisons in this measure.
        effect_size: Cohen's d_z (Cohen, 1988; Lakens, 2013): the difference over the standard deviation of the families'
            mean differences, each weighted by its queries; None if these do not vary.
        wins: queries in which the system is higher.
        ties: queries in which both are equal.
        losses: queries in which the baseline is higher.
        exact: whether p was computed from all sign arrangements.
        resamples: number of arrangements drawn if it was not.
        queries: number of queries.
        families: number of families they belong to; a query without a family counts as one.
        differing: number of families in which the two differ.

    Examples:
        >>> recall = {"bm25": np.array([0.5, 0.0, 1.0, 0.5]), "hybrid": np.array([1.0, 0.5, 1.0, 1.0])}
        >>> (comparison,) = compare({name: {"recall@5": values} for name, values in recall.items()}, baseline="bm25")
        >>> f"{comparison.system} against {comparison.baseline}: {comparison.difference:+.3f}, p = {comparison.p}"
        'hybrid against bm25: +0.375, p = 0.25'
    """

    measure: str
    system: str
    baseline: str
    difference: float
    interval: tuple[float, float]
    level: float
    p: float
    p_holm: float
    comparisons: int
    effect_size: float | None
    wins: int
    ties: int
    losses: int
    exact: bool
    resamples: int
    queries: int
    families: int
    differing: int

    @property
    def least_p(self) -> float:
        """The smallest p-value possible for differences of these sizes, if all have one sign; p itself if it is less."""
        if self.exact:
            return min(1.0, 2.0 ** (1 - self.differing))
        return min(self.p, 1 / (self.resamples + 1))


def compare(
    per_query: Mapping[str, Mapping[str, Scores]],
    baseline: str | None = None,
    families: Sequence[str | None] | None = None,
    resamples: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    *,
    drawn_for: int = 0,
) -> list[Comparison]:
    """Compare every system with the baseline, or every pair of systems, in every measure.

    Args:
        per_query: ``[queries]`` by system and measure, the queries in one order: ``{name: evaluation.per_query, ...}``. Two
            values of a measure are assumed to be at most 1 apart, or as far as any of the two systems compared are.
        baseline: a system; None compares every pair.
        families: per query; None for a query without a family, or for all of them.
        resamples: sign arrangements of each test, and samples of families for the intervals. None: 10,000, and for the tests
            as many more as the number of comparisons needs (:func:`resamples_for`).
        level: confidence level of the intervals.
        seed: seed of both, 0 or more; a result does not depend on the other comparisons, except through Holm's correction.
        drawn_for: how many comparisons, in all measures and groups, arrangements are drawn for, if they are not given.

    Returns:
        By measure, in the order of the first system's, and then by system.

    Raises:
        ConfigurationError: fewer than two systems, an unknown baseline, systems with different measures or none, or
            ``resamples``, ``level`` or ``seed`` out of range.
        GoldError: there are no queries, not as many values or families as queries, or a value is not finite.

    Examples:
        >>> recall = {"bm25": np.array([0.5, 0.0, 1.0, 0.5]), "hybrid": np.array([1.0, 0.5, 1.0, 1.0])}
        >>> (comparison,) = compare({name: {"recall@5": values} for name, values in recall.items()}, baseline="bm25")
        >>> comparison.difference, comparison.p, (comparison.wins, comparison.ties, comparison.losses)
        (0.375, 0.25, (3, 1, 0))
    """
    values = _checked(per_query)
    systems = list(values)
    if baseline is not None and baseline not in values:
        raise ConfigurationError(f"there is no system {baseline!r} to be the baseline; {nearest(baseline, systems)}")
    pairs = [(later, earlier) for earlier, later in combinations(systems, 2)]
    if baseline is not None:
        pairs = [(name, baseline) for name in systems if name != baseline]
    measures = list(values[systems[0]])
    n_queries = len(values[systems[0]][measures[0]])
    of_queries = [None] * n_queries if families is None else families
    if len(of_queries) != n_queries:
        raise GoldError(f"{n_queries} queries and {len(of_queries)} families; give one for each query, or None for no families")
    arrangements = resamples_for(max(len(pairs), drawn_for)) if resamples is None else resamples
    samples = RESAMPLES if resamples is None else resamples
    together = max(1, _AT_ONCE // (max(n_queries, samples, 1) * len(pairs)))
    comparisons: list[Comparison] = []
    for first in range(0, len(measures), together):
        some = [(measure, *pair) for measure in measures[first : first + together] for pair in pairs]
        differences = np.stack([_difference(values[name][measure], values[other][measure]) for measure, name, other in some])
        spans = np.array([_span(values[name][measure], values[other][measure]) for measure, name, other in some])
        comparisons += _compared(some, differences, spans, of_queries, len(pairs), arrangements, samples, level, seed)
    return comparisons


def _checked(per_query: Mapping[str, Mapping[str, Scores]]) -> dict[str, dict[str, Scores]]:
    """The values as arrays, checked to be comparable."""
    if len(per_query) < 2:
        raise ConfigurationError(f"{len(per_query)} system(s): {', '.join(per_query) or 'none'}; give at least two to compare")
    first = next(iter(per_query))
    wanted, shape = per_query[first].keys(), None
    if not wanted:
        raise ConfigurationError(f"system {first!r} has no measures; give each system its values by measure")
    for system, measures in per_query.items():
        if measures.keys() != wanted:
            not_shared = ", ".join(sorted(measures.keys() ^ wanted))
            raise ConfigurationError(
                f"systems {first!r} and {system!r} do not have the same measures: only one has {not_shared}"
            )
    values = {
        system: {measure: np.asarray(measures[measure], np.float64) for measure in wanted}
        for system, measures in per_query.items()
    }
    for system, measures in values.items():
        for measure, column in measures.items():
            shape = shape or column.shape
            if column.ndim != 1 or column.shape != shape or len(column) == 0:
                raise GoldError(
                    f"{measure} of {system!r} is of shape {list(column.shape)}; give one value for each query, in one order "
                    f"(the first column has {list(shape)}), and at least one query"
                )
            wrong = np.flatnonzero(~np.isfinite(column))
            if len(wrong):
                raise GoldError(
                    f"{measure} of {system!r} is {column[wrong[0]]} for query {wrong[0]}, counted from 0; "
                    "a query without results counts as 0"
                )
    return values


def _difference(system: Scores, baseline: Scores) -> Scores:
    """``[queries]``, 0 if the two are equal up to rounding."""
    difference = system - baseline
    rounding = ROUNDING * max(np.abs(system).max(), np.abs(baseline).max())
    return np.where(np.abs(difference) <= rounding, 0.0, difference)


def _span(system: Scores, baseline: Scores) -> float:
    """Return the largest possible distance of two values of the measure."""
    return max(1.0, float(max(system.max(), baseline.max()) - min(system.min(), baseline.min())))


def _compared(
    names: Sequence[tuple[str, str, str]],
    differences: Scores,
    spans: Scores,
    families: Sequence[str | None],
    each: int,
    arrangements: int,
    samples: int,
    level: float,
    seed: int,
) -> Iterable[Comparison]:
    """The comparisons for some whole measures: ``[comparisons, queries]`` differences, ``each`` of a measure."""
    bounds = np.stack([-spans, spans], axis=1)
    intervals = bootstrap_intervals(differences, families, samples, level, seed, bounds=bounds).tolist()
    test = refined_test(differences, families, samples, arrangements, seed)
    p = test.p.tolist()
    p_holm = [value for first in range(0, len(p), each) for value in holm(p[first : first + each])]
    numbers = family_numbers(families)
    sums, sizes = family_sums(differences, numbers), np.bincount(numbers)
    for number, (measure, system, baseline) in enumerate(names):
        row = differences[number]
        mean = math.fsum(row.tolist()) / len(row)
        wins, losses = int((row > 0).sum()), int((row < 0).sum())
        yield Comparison(
            measure=measure,
            system=system,
            baseline=baseline,
            difference=mean,
            interval=(intervals[number][0], intervals[number][1]),
            level=level,
            p=p[number],
            p_holm=p_holm[number],
            comparisons=each,
            effect_size=_effect_size(sums[number], sizes, mean),
            wins=wins,
            ties=len(row) - wins - losses,
            losses=losses,
            exact=bool(test.exact[number]),
            resamples=arrangements,
            queries=len(row),
            families=len(sizes),
            differing=int(test.differing[number]),
        )


def _effect_size(sums: Scores, sizes: NDArray[np.int64], mean: float) -> float | None:
    """Cohen's d_z of the families' mean differences; see :class:`Comparison`."""
    means = sums / sizes
    variance = math.fsum((sizes * (means - mean) ** 2).tolist()) / int(sizes.sum())
    if len(sizes) < 2 or math.sqrt(variance) <= ROUNDING * np.abs(means).max():
        return None
    return mean / math.sqrt(variance * len(sizes) / (len(sizes) - 1))


_OF_A_MEASURE = np.array([[0.0, 1.0]])

PerQuery = Mapping[str, Mapping[str, Scores]]
"""``[queries]`` by configuration and measure."""


def compare_by_group(
    per_query: PerQuery,
    baseline: str,
    families: Sequence[str | None],
    groups: Mapping[str, Mask],
    seed: int,
    resamples: int | None = None,
) -> dict[str, list[Comparison]]:
    """Compare every configuration with the baseline, by group; ``""`` stands for all queries. Empty for one alone."""
    if len(per_query) < 2:
        return {}
    every = (len(per_query) - 1) * len(per_query[baseline]) * (len(groups) + 1)
    return {
        group: compare(_picked(per_query, mask), baseline, _members(families, mask), resamples, LEVEL, seed, drawn_for=every)
        for group, mask in {"": np.ones(len(families), np.bool_), **groups}.items()
    }


def intervals_by_group(
    per_query: PerQuery,
    families: Sequence[str | None],
    groups: Mapping[str, Mask],
    seed: int,
    resamples: int | None = None,
) -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """Return the interval of every mean, low and high, by configuration, group and measure."""
    values = np.stack([column for measures in per_query.values() for column in measures.values()])
    intervals: dict[str, dict[str, dict[str, tuple[float, float]]]] = {name: {} for name in per_query}
    for group, mask in {"": np.ones(len(families), np.bool_), **groups}.items():
        picked = values[:, mask], _members(families, mask)
        bounds = iter(bootstrap_intervals(*picked, resamples or RESAMPLES, LEVEL, seed, bounds=_OF_A_MEASURE).tolist())
        for name, measures in per_query.items():
            intervals[name][group] = {measure: (low, high) for measure, (low, high) in zip(measures, bounds, strict=False)}
    return intervals


def _picked(per_query: PerQuery, mask: Mask) -> dict[str, dict[str, Scores]]:
    return {name: {measure: values[mask] for measure, values in measures.items()} for name, measures in per_query.items()}


def _members(families: Sequence[str | None], mask: Mask) -> list[str | None]:
    return [family for family, member in zip(families, mask.tolist(), strict=True) if member]


@dataclass(frozen=True)
class Pairwise:
    """All pairs of configurations in one measure."""

    measure: str
    systems: list[str]
    comparisons: list[Comparison]

    def both_ways(self) -> Mapping[tuple[str, str], Comparison]:
        """Return the comparisons by system and compared system, each pair in both orders."""
        both = [*self.comparisons, *map(turned, self.comparisons)]
        return {(comparison.system, comparison.baseline): comparison for comparison in both}


def compare_pairs(
    per_query: PerQuery,
    measure: str,
    families: Sequence[str | None],
    seed: int,
    resamples: int | None = None,
) -> Pairwise | None:
    """Compare all pairs of configurations in a measure; None if there are fewer than two configurations."""
    if len(per_query) < 2:
        return None
    for name, measures in per_query.items():
        if measure not in measures:
            raise ConfigurationError(f"{name!r} was not measured in {measure!r}; {nearest(measure, measures)}")
    values = {name: {measure: measures[measure]} for name, measures in per_query.items()}
    return Pairwise(measure, list(values), compare(values, None, families, resamples, LEVEL, seed))


def turned(comparison: Comparison) -> Comparison:
    """Return the same comparison seen from the other system."""
    low, high = comparison.interval
    return replace(
        comparison,
        system=comparison.baseline,
        baseline=comparison.system,
        difference=-comparison.difference,
        interval=(-high, -low),
        effect_size=None if comparison.effect_size is None else -comparison.effect_size,
        wins=comparison.losses,
        losses=comparison.wins,
    )


Verdict = Literal["better", "worse", "not distinguishable"]


def verdict(comparison: Comparison, alpha: float = 0.05) -> Verdict:
    """Return whether the system is better or worse than the baseline, if the corrected test is significant.

    Args:
        comparison: the comparison of the two.
        alpha: the chance, between 0 and 1, of calling any of the measure's differences real if none is.

    Raises:
        ConfigurationError: ``alpha`` is not between 0 and 1.

    Examples:
        >>> recall = {"bm25": np.zeros(20), "hybrid": np.ones(20)}
        >>> (comparison,) = compare({name: {"recall@5": values} for name, values in recall.items()}, baseline="bm25")
        >>> verdict(comparison)
        'better'
    """
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha={alpha}; take a level between 0 and 1, such as 0.05")
    if comparison.p_holm > alpha:
        return "not distinguishable"
    return "better" if comparison.difference > 0 else "worse"


def unit_names(comparison: Comparison) -> tuple[str, str]:
    """Return the name of the test's independent units, one of them and several."""
    return ("query", "queries") if comparison.families == comparison.queries else ("family of queries", "families of queries")


def limits(comparison: Comparison, alpha: float = 0.05, *, of_many: bool = False) -> str:
    """Return why the test could not have found any difference significant, however clear; an empty string if it could."""
    many, least, unit = comparison.comparisons, 2.0 ** (1 - comparison.families), unit_names(comparison)
    if comparison.differing == 0:
        balanced = "their differences add up to 0 in every family of queries"
        return balanced if comparison.wins else f"the two are equal in all {unit[1]}"
    if least * many > alpha:
        needed = f"{many} comparisons need one of {alpha / many:.3g}" if many > 1 else f"{alpha:g} is needed"
        few = f"{counted(comparison.families, *unit)} {'is' if comparison.families == 1 else 'are'}"
        return f"{few} too few: no p-value can be below {least:.3g}, and {needed}"
    if comparison.exact and comparison.least_p > alpha:
        differing = counted(comparison.differing, *unit)
        which = f"no two differ in more than {differing}" if of_many else f"the two differ in {differing} only"
        return f"{which}, where p cannot be below {comparison.least_p:.3g}"
    if many / (comparison.resamples + 1) > alpha:
        return (
            f"{comparison.resamples:,} resamples are too few: no p-value can be below {1 / (comparison.resamples + 1):.3g}; "
            f"draw at least {math.ceil(many / alpha):,}, or leave 'resamples' out"
        )
    return ""


def sentence(comparison: Comparison, alpha: float = 0.05) -> str:
    """Return the comparison in words, with its numbers; p is the corrected one."""
    outcome, label = verdict(comparison, alpha), Measure.parse(comparison.measure).label
    if outcome == "not distinguishable":
        text = f"{comparison.system} and {comparison.baseline} are not distinguishable in {label}"
    else:
        text = f"{comparison.system} is {outcome} than {comparison.baseline} in {label}"
    low, high = comparison.interval
    text += f": {comparison.difference:+z.4f} ({comparison.level * 100:g}% interval {low:+z.4f} to {high:+z.4f})"
    text += ", p < 1e-12" if comparison.p_holm < 1e-12 else f", p = {comparison.p_holm:.3g}"
    if comparison.comparisons > 1:
        text += f" corrected for {comparison.comparisons} comparisons"
    if comparison.effect_size is not None:
        text += f", d_z = {comparison.effect_size:z.2f}"
    text += f"; {counted(comparison.wins, 'query', 'queries')} won, {comparison.ties} tied, {comparison.losses} lost"
    reason = limits(comparison, alpha) if outcome == "not distinguishable" else ""
    return f"{text} ({reason})." if reason else f"{text}."
