"""Measures as sums over pairs, and measures of whole queries, from the grades of a pool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Scores, offsets_of
from nlp_retrieval.core.models import Gold
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.evaluation.measures import Measure
from nlp_retrieval.judging.pool import JudgingPool


def is_additive(measure: str) -> bool:
    """Return whether a measure is a sum over the pairs of a query, with weights that do not depend on grades."""
    read = Measure.read(measure)
    return (read.family == "precision" and read.cutoff is not None) or read.persistence is not None


def pair_weights(pool: JudgingPool, measure: str, system: str) -> Scores:
    """Return ``[pairs]``, what a relevant pair adds to the measure of its query in a system's ranking; 0 if it is not in it.

    Args:
        pool: with the rankings.
        measure: precision@k or rbp.
        system: its name.

    Raises:
        ConfigurationError: the measure is no sum over pairs, or the system does not exist.
    """
    read = Measure.read(measure)
    if not is_additive(measure):
        raise ConfigurationError(f"{measure} is not a sum over pairs; take precision@k or rbp")
    if system not in pool.systems:
        raise ConfigurationError(f"the pool has no system {system!r}; {nearest(system, list(pool.systems))}")
    weights = np.zeros(len(pool.item_ids))
    for pairs in pool.systems[system]:
        first = pairs[: read.cutoff]
        if read.persistence is not None:
            weights[first] = (1 - read.persistence) * read.persistence ** np.arange(len(first))
        else:
            weights[first] = 1 / (read.cutoff or 1)
    return weights


def first_pairs(pool: JudgingPool, system: str, k: int | None) -> NDArray[np.bool_]:
    """Return ``[pairs]``, whether a pair is among the first k of a system.

    Args:
        pool: with the rankings.
        system: its name.
        k: the cutoff; None for all.
    """
    first = np.zeros(len(pool.item_ids), bool)
    first[np.concatenate([pairs[:k] for pairs in pool.systems[system]])] = True
    return first


def by_query(pool: JudgingPool, values: Scores) -> Scores:
    """Return ``[rows, queries]``, sums over the pairs of each query.

    Args:
        pool: with the pairs.
        values: ``[rows, pairs]``.
    """
    return np.stack([np.bincount(pool.pair_query, row, len(pool.query_ids)) for row in values])


def values_by_query(pool: JudgingPool, grades: Scores, measures: Sequence[str]) -> dict[str, dict[str, Scores]]:
    """Return ``[queries]`` by measure and system, as if the pairs of the pool were all that is relevant.

    A query without a relevant pair scores 0.

    Args:
        pool: with the rankings.
        grades: ``[pairs]``, rounded to whole grades; NaN for a pair that is not judged.
        measures: names.
    """
    whole = np.rint(np.nan_to_num(grades)).astype(np.int64)
    if not (whole >= pool.relevant_from).any():
        zeros = np.zeros(len(pool.query_ids))
        return {measure: dict.fromkeys(pool.systems, zeros) for measure in measures}
    relevance: list[dict[str, int]] = [{} for _ in pool.query_ids]
    for pair in np.flatnonzero(~np.isnan(grades)).tolist():
        relevance[pool.pair_query[pair]][str(pair)] = int(whole[pair])
    gold = [Gold(query_id=name, relevance=own) for name, own in zip(pool.query_ids, relevance, strict=True)]
    ids = [str(pair) for pair in range(len(pool.item_ids))]
    relevant_from = max(1, int(np.ceil(pool.relevant_from)))
    evaluator = RetrievalEvaluator(gold, ids, None, measures=list(measures), relevant_from=relevant_from)
    values: dict[str, dict[str, Scores]] = {measure: {} for measure in measures}
    for system, rankings in pool.systems.items():
        evaluation = evaluator.evaluate_ragged(offsets_of([len(pairs) for pairs in rankings]), np.concatenate(rankings))
        for measure, column in zip(measures, evaluation.per_query.values(), strict=True):
            values[measure][system] = column
    return values
