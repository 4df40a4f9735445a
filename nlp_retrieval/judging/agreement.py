"""Agreement of judges beyond chance: Cohen's kappa, weighted kappa and Krippendorff's alpha, with intervals over questions.

Sources: Cohen (1960, 1968) for kappa and its weights; Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), for
alpha with any number of judges and missing grades.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeVar

import numpy as np

from nlp_retrieval.core.candidates import Scores
from nlp_retrieval.errors import InputError

Key = TypeVar("Key", bound=Hashable)
Level = Literal["nominal", "ordinal", "interval"]

Interval = tuple[float, float]
"""Of 95%; both ends are NaN where it cannot be computed."""

_DRAWS = 1000


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of two judges on the ``n`` pairs that both graded.

    ``same`` is the share with the same grade, ``weighted`` is kappa with quadratic weights, for ordered grades, and ``means``
    holds the mean grade of each. Kappas are NaN if one grade was given alone.
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


def cohen_kappa(first: Sequence[int], second: Sequence[int], *, weighted: bool = False) -> float:
    """Return Cohen's kappa of two judges' grades.

    Args:
        first: ``[n]``, grades from 0.
        second: ``[n]``, of the same pairs.
        weighted: whether a disagreement weighs the square of its distance.

    Returns:
        At most 1; 0 if the judges agree as often as by chance; NaN if only one grade was given.

    Raises:
        InputError: the lengths differ.

    Examples:
        >>> round(cohen_kappa([0, 1, 1, 0], [0, 1, 0, 0]), 3)
        0.5
    """
    if len(first) != len(second):
        raise InputError(f"{len(first)} and {len(second)} grades; give both judges' grades of the same pairs")
    if not len(first):
        return float("nan")
    return float(_kappas(_table(first, second, 1 + max(*first, *second))[None], weighted)[0])


def krippendorff_alpha(grades: Sequence[Mapping[Key, int]], level: Level = "ordinal") -> float:
    """Return Krippendorff's alpha of any number of judges.

    Args:
        grades: of each judge, grade from 0 by pair; pairs with one grade alone do not count.
        level: how far two grades are apart: "nominal", "ordinal" (by the grades between them) or "interval".

    Returns:
        At most 1; 0 if the judges agree as often as by chance; NaN if no pair has two grades, or only one grade was given.

    Examples:
        >>> ann, ben = {"p1": 0, "p2": 1, "p3": 1, "p4": 0}, {"p1": 0, "p2": 1, "p3": 0, "p4": 0}
        >>> round(krippendorff_alpha([ann, ben], "nominal"), 3)
        0.533
    """
    keys = list(dict.fromkeys(key for judge in grades for key in judge))
    return float(_alphas(_coincidences(grades, keys)[None], level)[0])


def measure_agreement(grades: Mapping[str, Mapping[tuple[str, str], int]], seed: int = 0) -> JudgeAgreement:
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
            tables = _by_question([_table([a], [b], size) for a, b in zip(first, second, strict=True)], common)
            whole, drawn = tables.sum(axis=0)[None], _drawn(tables, rng)
            kappa, weighted = (
                (float(_kappas(whole, by_distance)[0]), _interval(_kappas(drawn, by_distance))) for by_distance in (False, True)
            )
            same, means = float((first == second).mean()), (float(first.mean()), float(second.mean()))
            pairs.append(PairAgreement((one, other), len(common), same, *kappa, *weighted, means))
    judges = list(grades.values())
    keys = dict.fromkeys(key for judge in judges for key in judge)
    shared = [key for key in keys if sum(key in judge for judge in judges) > 1]
    if not shared:
        return JudgeAgreement(pairs, float("nan"), (float("nan"), float("nan")), 0)
    tables = _by_question([_coincidences(judges, [key], size) for key in shared], shared)
    alpha = float(_alphas(tables.sum(axis=0)[None], "ordinal")[0])
    return JudgeAgreement(pairs, alpha, _interval(_alphas(_drawn(tables, rng), "ordinal")), len(shared))


def _table(first: Sequence[int], second: Sequence[int], size: int) -> Scores:
    table = np.zeros((size, size))
    np.add.at(table, (np.asarray(first, int), np.asarray(second, int)), 1)
    return table


def _coincidences(grades: Sequence[Mapping[Key, int]], keys: Sequence[Key], size: int = 0) -> Scores:
    """Return ``[grades, grades]``: how often two grades of one pair meet, each pair counted by its number of grades."""
    size = size or 1 + max((grade for judge in grades for grade in judge.values()), default=0)
    table = np.zeros((size, size))
    for key in keys:
        given = np.bincount([judge[key] for judge in grades if key in judge], minlength=size).astype(float)
        if given.sum() > 1:
            table += (np.outer(given, given) - np.diag(given)) / (given.sum() - 1)
    return table


def _by_question(tables: Sequence[Scores], keys: Sequence[tuple[str, str]]) -> Scores:
    number = {question: place for place, question in enumerate(dict.fromkeys(question for question, _ in keys))}
    summed = np.zeros((len(number), *tables[0].shape))
    np.add.at(summed, [number[question] for question, _ in keys], np.array(tables))
    return summed


def _drawn(tables: Scores, rng: np.random.Generator) -> Scores:
    weights = rng.multinomial(len(tables), np.full(len(tables), 1 / len(tables)), size=_DRAWS)
    drawn: Scores = np.tensordot(weights, tables, axes=1)
    return drawn


def _kappas(tables: Scores, weighted: bool) -> Scores:
    """Return ``[tables]``: kappa of ``[tables, grades, grades]``."""
    places = np.arange(tables.shape[1])
    distance = (places[:, None] - places[None]) ** 2 if weighted else places[:, None] != places[None]
    total = tables.sum(axis=(1, 2))
    expected = np.einsum("ti,tj,ij->t", tables.sum(axis=2), tables.sum(axis=1), distance) / total
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (tables * distance).sum(axis=(1, 2)) / expected, np.nan)


def _alphas(tables: Scores, level: Level) -> Scores:
    """Return ``[tables]``: alpha of ``[tables, grades, grades]`` coincidences."""
    places = np.arange(tables.shape[1], dtype=float)
    margin = tables.sum(axis=2)
    if level == "ordinal":
        middle = np.cumsum(margin, axis=1) - margin / 2
        distance = (middle[:, :, None] - middle[:, None]) ** 2
    else:
        apart = places[:, None] - places[None]
        distance = np.broadcast_to((apart**2 if level == "interval" else apart != 0)[None], tables.shape)
    total = margin.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = np.einsum("ti,tj,tij->t", margin, margin, distance) / (total - 1)
        return np.where(expected > 0, 1 - (tables * distance).sum(axis=(1, 2)) / expected, np.nan)


def _interval(values: Scores) -> Interval:
    known = values[~np.isnan(values)]
    if len(known) < _DRAWS // 2:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)
