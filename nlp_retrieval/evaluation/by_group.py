"""Comparisons of a benchmark: every configuration against the baseline, over all queries and in each group of them.

Each measure in each group is corrected separately, by Holm's method, for its number of configurations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nlp_retrieval.core.candidates import Mask, Scores
from nlp_retrieval.evaluation.bootstrap import bootstrap_intervals
from nlp_retrieval.evaluation.comparison import Comparison, compare

RESAMPLES = 10_000
LEVEL = 0.95
_OF_A_MEASURE = np.array([[0.0, 1.0]])

PerQuery = Mapping[str, Mapping[str, Scores]]
"""``[queries]`` by configuration and measure."""


def compare_by_group(
    per_query: PerQuery, baseline: str, families: Sequence[str | None], groups: Mapping[str, Mask], seed: int
) -> dict[str, list[Comparison]]:
    """Compare every configuration with the baseline, by group; ``""`` stands for all queries. Empty for a single configuration.

    Args:
        per_query: measures of all queries.
        baseline: a configuration.
        families: per query.
        groups: ``[queries]`` by name, masks of their members.
        seed: seed of the tests and intervals.
    """
    if len(per_query) < 2:
        return {}
    return {
        group: compare(_picked(per_query, mask), baseline, _members(families, mask), RESAMPLES, LEVEL, seed)
        for group, mask in _with_all(groups, len(families)).items()
    }


def intervals_by_group(
    per_query: PerQuery, families: Sequence[str | None], groups: Mapping[str, Mask], seed: int
) -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """Return the interval of every mean, low and high, by configuration, group and measure.

    Args:
        per_query: measures of all queries.
        families: per query.
        groups: as in :func:`compare_by_group`.
        seed: seed of the resamples.
    """
    values = np.stack([column for measures in per_query.values() for column in measures.values()])
    found: dict[str, dict[str, dict[str, tuple[float, float]]]] = {name: {} for name in per_query}
    for group, mask in _with_all(groups, len(families)).items():
        picked = values[:, mask], _members(families, mask)
        bounds = iter(bootstrap_intervals(*picked, RESAMPLES, LEVEL, seed, bounds=_OF_A_MEASURE).tolist())
        for name, measures in per_query.items():
            found[name][group] = {measure: (low, high) for measure, (low, high) in zip(measures, bounds, strict=False)}
    return found


def _with_all(groups: Mapping[str, Mask], n_queries: int) -> dict[str, Mask]:
    return {"": np.ones(n_queries, np.bool_), **groups}


def _picked(per_query: PerQuery, mask: Mask) -> dict[str, dict[str, Scores]]:
    return {name: {measure: values[mask] for measure, values in one.items()} for name, one in per_query.items()}


def _members(families: Sequence[str | None], mask: Mask) -> list[str | None]:
    return [family for family, member in zip(families, mask.tolist(), strict=True) if member]
