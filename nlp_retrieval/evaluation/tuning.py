"""Fitting weights to judged queries by cross-validation over groups of queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.core.models import Gold
from nlp_retrieval.errors import GoldError
from nlp_retrieval.evaluation.evaluator import Evaluation
from nlp_retrieval.evaluation.gold import relevant_documents, rows_of
from nlp_retrieval.evaluation.resampling import bootstrap_interval, family_numbers

Fitted = TypeVar("Fitted")


@dataclass(frozen=True, kw_only=True)
class TuningReport:
    """Result of fitting weights: those for other queries, those of each fold, and the measures before and out of fold.

    The queries of a group are in one fold. ``unreachable`` gold is not among the candidates, so no weights can rank it.
    """

    weights: dict[str, float]
    fold_weights: list[dict[str, float]]
    before: Evaluation
    out_of_fold: Evaluation
    groups: list[str | None]
    folds: NDArray[np.int64]
    unreachable: int

    def gain(self, measure: str) -> tuple[float, float, float]:
        """Return the gain of a measure out of fold, and its interval over groups."""
        return self.difference(self.out_of_fold, self.before, measure)

    def difference(self, first: Evaluation, second: Evaluation, measure: str) -> tuple[float, float, float]:
        """Return the mean difference of a measure between two evaluations, and its interval over groups."""
        difference = first.per_query[measure] - second.per_query[measure]
        return float(difference.mean()), *bootstrap_interval(difference, self.groups, bounds=(-1, 1))


def folds_of(groups: Sequence[str | None], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each query; a group is in one fold, and folds have the same number of groups, or one less."""
    numbers = family_numbers(groups)
    n_groups = int(numbers.max(initial=-1)) + 1
    if folds < 2 or n_groups < folds:
        raise GoldError(f"{n_groups} groups of queries for {folds} folds; at least 2 folds, and a group for each, are needed")
    return np.random.default_rng(seed).permutation(np.arange(n_groups) % folds)[numbers]


def best_row(table: Scores, queries: Rows, allowed: Mask | bool = True) -> int:
    """Return the row of ``[choices, queries]`` with the highest mean over some queries; of equal ones the first."""
    return int(np.argmax(np.where(allowed, table[:, queries].mean(axis=1), -1.0)))


def fitted_by_fold(fit: Callable[[Rows], Fitted], folds: NDArray[np.int64]) -> list[Fitted]:
    """Return for each fold what is fitted to the queries of the others, which are given as their numbers."""
    return [fit(np.flatnonzero(folds != fold)) for fold in range(int(folds.max()) + 1)]


def gold_among(
    judged: Sequence[Gold], item_ids: Sequence[str], titles: Sequence[str], candidates: Sequence[Rows]
) -> tuple[list[NDArray[np.bool_]], int]:
    """Return per query which of its candidates are gold, and how many gold documents are not among the candidates."""
    documents = relevant_documents(judged)
    places = rows_of({key for keys in documents for key in keys}, item_ids, titles)
    golden, unreachable = [], 0
    for keys, rows in zip(documents, candidates, strict=True):
        golden.append(np.isin(rows, [row for key in keys for row in places.get(key, [])]))
        unreachable += sum(not np.isin(places.get(key, []), rows).any() for key in keys)
    return golden, unreachable
