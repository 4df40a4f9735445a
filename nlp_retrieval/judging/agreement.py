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
from numpy.typing import NDArray

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
    """Agreement of all judges of a project.

    Args:
        pairs: of each two judges with pairs in common.
        alpha: Krippendorff's alpha for ordered grades; NaN if no pair has two grades, or one grade was given alone.
        alpha_interval: of 95%, by a bootstrap over questions.
        n: number of pairs with two grades or more.
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
    return float(_kappas(_table(first, second, 1 + max(*first, *second))[None], weighted=weighted)[0])


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
        if not common:
            continue
        first, second = (np.array([grades[name][key] for key in common]) for name in (one, other))
        tables = _by_question([_table([a], [b], size) for a, b in zip(first, second, strict=True)], [key[0] for key in common])
        drawn = _drawn(tables, rng)
        whole = tables.sum(axis=0)[None]
        pairs.append(
            PairAgreement(
                (one, other),
                len(common),
                float((first == second).mean()),
                float(_kappas(whole, weighted=False)[0]),
                _interval(_kappas(drawn, weighted=False)),
                float(_kappas(whole, weighted=True)[0]),
                _interval(_kappas(drawn, weighted=True)),
                (float(first.mean()), float(second.mean())),
            )
        )
    judges = list(grades.values())
    keys = list(dict.fromkeys(key for judge in judges for key in judge))
    shared = [key for key in keys if sum(key in judge for judge in judges) > 1]
    if not shared:
        return JudgeAgreement(pairs, float("nan"), (float("nan"), float("nan")), 0)
    tables = _by_question([_coincidences(judges, [key], size) for key in shared], [key[0] for key in shared])
    alpha = float(_alphas(tables.sum(axis=0)[None], "ordinal")[0])
    return JudgeAgreement(pairs, alpha, _interval(_alphas(_drawn(tables, rng), "ordinal")), len(shared))


def _table(first: Sequence[int], second: Sequence[int], size: int) -> NDArray[np.float64]:
    table = np.zeros((size, size))
    np.add.at(table, (np.asarray(first, int), np.asarray(second, int)), 1)
    return table


def _coincidences(grades: Sequence[Mapping[Key, int]], keys: Sequence[Key], size: int = 0) -> NDArray[np.float64]:
    """Return ``[grades, grades]``: how often two grades of one pair meet, each pair counted by its number of grades."""
    size = size or 1 + max((grade for judge in grades for grade in judge.values()), default=0)
    table = np.zeros((size, size))
    for key in keys:
        given = np.bincount([judge[key] for judge in grades if key in judge], minlength=size).astype(float)
        if given.sum() > 1:
            table += (np.outer(given, given) - np.diag(given)) / (given.sum() - 1)
    return table


def _by_question(tables: Sequence[NDArray[np.float64]], questions: Sequence[str]) -> NDArray[np.float64]:
    number = {question: place for place, question in enumerate(dict.fromkeys(questions))}
    summed = np.zeros((len(number), *tables[0].shape))
    for table, question in zip(tables, questions, strict=True):
        summed[number[question]] += table
    return summed


def _drawn(tables: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    weights = rng.multinomial(len(tables), np.full(len(tables), 1 / len(tables)), size=_DRAWS)
    return np.tensordot(weights, tables, axes=1)


def _kappas(tables: NDArray[np.float64], *, weighted: bool) -> NDArray[np.float64]:
    """Return ``[tables]``: kappa of ``[tables, grades, grades]``."""
    places = np.arange(tables.shape[1])
    distance = (places[:, None] - places[None]) ** 2 if weighted else places[:, None] != places[None]
    total = tables.sum(axis=(1, 2))
    expected = np.einsum("ti,tj,ij->t", tables.sum(axis=2), tables.sum(axis=1), distance) / total
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (tables * distance).sum(axis=(1, 2)) / expected, np.nan)


def _alphas(tables: NDArray[np.float64], level: Level) -> NDArray[np.float64]:
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


def _interval(values: NDArray[np.float64]) -> Interval:
    known = values[~np.isnan(values)]
    if len(known) < _DRAWS // 2:
        return float("nan"), float("nan")
    low, high = np.quantile(known, [0.025, 0.975])
    return float(low), float(high)
