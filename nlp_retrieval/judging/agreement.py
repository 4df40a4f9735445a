"""Agreement of judges beyond chance: Cohen's kappa, weighted kappa and Krippendorff's alpha, with intervals over questions.

Sources: Cohen (1960, 1968) for kappa and its weights; Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), for
alpha with any number of judges and missing grades.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from nlp_retrieval.core.candidates import Scores

Key = tuple[str, str]
"""Ids of a query and an item."""

Interval = tuple[float, float]
"""Of 95%; both ends are NaN where it cannot be computed."""

_DRAWS = 1000
_UNKNOWN = (float("nan"), float("nan"))


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of two judges on the ``n`` pairs that both graded.

    ``same`` is the share with the same grade, ``weighted`` is kappa with quadratic weights, for ordered grades, and ``means``
    holds the mean grade of each. Kappas are 1 at most, 0 for agreement by chance, and NaN if one grade was given alone.
    """

    judges: tuple[str, str]
    n: int
    same: float
    kappa: float
    kappa_interval: Interval
    weighted: float
    weighted_interval: Interval
    means: tuple[float, float]


@dataclass(frozen=True)
class JudgeAgreement:
    """Agreement of all judges: of each two, and Krippendorff's alpha for ordered grades on the ``n`` pairs with several grades.

    Alpha is NaN if no pair has two grades, or one grade was given alone.
    """

    pairs: list[PairAgreement]
    alpha: float
    alpha_interval: Interval
    n: int


def measure_agreement(grades: Mapping[str, Mapping[Key, int]], seed: int = 0) -> JudgeAgreement:
    """Return the agreement of judges, with intervals by a bootstrap over questions: pairs of one question are not independent.

    Args:
        grades: by judge, grade by ids of query and item; see :meth:`JudgingProject.grades`.
        seed: of the bootstrap.

    Examples:
        >>> ann = {("q1", "whale"): 1, ("q1", "fox"): 0, ("q2", "krill"): 1, ("q2", "fox"): 1}
        >>> both = measure_agreement({"Ann": ann, "Ben": ann | {("q2", "fox"): 0}})
        >>> both.pairs[0].same, both.n
        (0.75, 4)
    """
    size = 1 + max((grade for judge in grades.values() for grade in judge.values()), default=0)
    rng = np.random.default_rng(seed)
    pairs = []
    for one, other in combinations(sorted(grades), 2):
        common = [key for key in grades[one] if key in grades[other]]
        if common:
            first, second = (np.array([grades[name][key] for key in common]) for name in (one, other))
            tables = np.zeros((len(common), size, size))
            tables[np.arange(len(common)), first, second] = 1
            tables = _by_question(tables, common)
            drawn = _drawn(tables, rng)
            kappa, weighted = (
                (_kappas(tables.sum(axis=0)[None], by_distance).item(), _interval(_kappas(drawn, by_distance)))
                for by_distance in (False, True)
            )
            same, means = float((first == second).mean()), (float(first.mean()), float(second.mean()))
            pairs.append(PairAgreement((one, other), len(common), same, *kappa, *weighted, means))
    given: dict[Key, list[int]] = {}
    for judge in grades.values():
        for key, grade in judge.items():
            given.setdefault(key, []).append(grade)
    shared = {key: own for key, own in given.items() if len(own) > 1}
    if not shared:
        return JudgeAgreement(pairs, float("nan"), _UNKNOWN, 0)
    tables = _by_question(np.array([_coincidences(own, size) for own in shared.values()]), list(shared))
    alpha = _alphas(tables.sum(axis=0)[None]).item()
    return JudgeAgreement(pairs, alpha, _interval(_alphas(_drawn(tables, rng))), len(shared))


def _coincidences(given: Sequence[int], size: int) -> Scores:
    """Return ``[grades, grades]``: how often two grades of a pair meet, divided by its number of grades but one."""
    counts = np.bincount(given, minlength=size).astype(float)
    table: Scores = (np.outer(counts, counts) - np.diag(counts)) / (counts.sum() - 1)
    return table


def _by_question(tables: Scores, keys: Sequence[Key]) -> Scores:
    number = {question: place for place, question in enumerate(dict.fromkeys(question for question, _ in keys))}
    summed = np.zeros((len(number), *tables[0].shape))
    np.add.at(summed, [number[question] for question, _ in keys], tables)
    return summed


def _drawn(tables: Scores, rng: np.random.Generator) -> Scores:
    weights = rng.multinomial(len(tables), np.full(len(tables), 1 / len(tables)), size=_DRAWS)
    drawn: Scores = np.tensordot(weights, tables, axes=1)
    return drawn


def _kappas(tables: Scores, weighted: bool) -> Scores:
    """Return ``[tables]``: kappa of ``[tables, grades, grades]``."""
    places = np.arange(tables.shape[1])
    distance = (places[:, None] - places[None]) ** 2 if weighted else places[:, None] != places[None]
    expected = np.einsum("ti,tj,ij->t", tables.sum(axis=2), tables.sum(axis=1), distance) / tables.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (tables * distance).sum(axis=(1, 2)) / expected, np.nan)


def _alphas(tables: Scores) -> Scores:
    """Return ``[tables]``: alpha for ordered grades of ``[tables, grades, grades]`` coincidences."""
    margin = tables.sum(axis=2)
    middle = np.cumsum(margin, axis=1) - margin / 2
    distance = (middle[:, :, None] - middle[:, None]) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.einsum("ti,tj,tij->t", margin, margin, distance) / (margin.sum(axis=1) - 1)
        return np.where(expected > 0, 1 - (tables * distance).sum(axis=(1, 2)) / expected, np.nan)


def _interval(values: Scores) -> Interval:
    known = values[~np.isnan(values)]
    if len(known) < _DRAWS // 2:
        return _UNKNOWN
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)
