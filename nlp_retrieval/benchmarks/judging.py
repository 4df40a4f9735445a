"""Judging: from the measures of every query to the report's means, intervals and comparisons.

Everything judged here was measured before: nothing is searched, so a run can be judged again from its files, against
another baseline or with other runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nlp_retrieval.benchmarks.cost import Cost
from nlp_retrieval.benchmarks.results import BenchmarkReport, ConfigurationResult
from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.evaluation.by_group import compare_by_group, intervals_by_group
from nlp_retrieval.evaluation.evaluator import Evaluation
from nlp_retrieval.evaluation.pairwise import compare_pairs


@dataclass(frozen=True)
class Entrant:
    """Facts about a configuration other than its quality.

    Args:
        config: complete, without secrets.
        fingerprint: equal for equal configurations.
        cost: None if it was not measured.
    """

    config: Config
    fingerprint: str
    cost: Cost | None


def masks_of(labels: Sequence[str | None], order: Sequence[str] = ()) -> dict[str, Mask]:
    """Return the queries of each group; empty if there is no group, or a single one with all queries.

    Args:
        labels: the group of each query; None if it has none.
        order: display order of groups; others follow in order of first appearance.
    """
    present = set(labels)
    names = [name for name in dict.fromkeys([*order, *(label for label in labels if label is not None)]) if name in present]
    if len(present) < 2:
        return {}
    return {name: np.array([label == name for label in labels]) for name in names}


def judged(
    report: BenchmarkReport,
    entrants: Mapping[str, Entrant],
    evaluations: Mapping[str, Evaluation],
    families: Sequence[str | None],
    groups: Mapping[str, Mask],
    seed: int,
) -> BenchmarkReport:
    """Complete a report with means, intervals and comparisons.

    Args:
        report: with everything except quality.
        entrants: by configuration, in display order; including the report's baseline.
        evaluations: by configuration.
        families: per query.
        groups: ``[queries]`` by name.
        seed: seed of tests and intervals.
    """
    per_query = {name: evaluations[name].per_query for name in entrants}
    intervals = intervals_by_group(per_query, families, groups, seed)
    measured = replace(
        report,
        configurations=[
            ConfigurationResult(
                name=name,
                config=entrant.config,
                fingerprint=entrant.fingerprint,
                measures=evaluations[name].means(),
                groups={group: evaluations[name].means(mask) for group, mask in groups.items()},
                cost=entrant.cost,
                empty_queries=evaluations[name].empty_queries,
                intervals=intervals[name],
            )
            for name, entrant in entrants.items()
        ],
        query_counts={"": len(families)} | {group: int(mask.sum()) for group, mask in groups.items()},
        comparisons=compare_by_group(per_query, report.baseline, families, groups, seed),
    )
    return replace(measured, pairwise=compare_pairs(per_query, measured.main_measure, families, seed))
