"""All pairs of configurations compared in one measure over all queries: one family of tests, corrected together.

There are more comparisons than with a baseline alone, so a difference must be clearer here to be significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.by_group import LEVEL, RESAMPLES, PerQuery
from nlp_retrieval.evaluation.comparison import Comparison, compare

__all__ = ["Pairwise", "compare_pairs"]


@dataclass(frozen=True)
class Pairwise:
    """All pairs of configurations in one measure.

    Args:
        measure: its name, such as ``"recall@21"``.
        systems: in the given order.
        comparisons: comparisons of each with each before it; p is corrected by Holm's method for all of them.
    """

    measure: str
    systems: list[str]
    comparisons: list[Comparison]

    def both_ways(self) -> Mapping[tuple[str, str], Comparison]:
        """Return the comparisons by system and compared system, each pair in both orders."""
        found = {}
        for one in self.comparisons:
            found[one.system, one.baseline] = one
            found[one.baseline, one.system] = turned(one)
        return found


def compare_pairs(per_query: PerQuery, measure: str, families: Sequence[str | None], seed: int) -> Pairwise | None:
    """Compare all pairs of configurations in a measure; None if there are fewer than two configurations.

    Args:
        per_query: measures of all queries, by configuration.
        measure: a measure that all of them have.
        families: per query; None for a query without a family.
        seed: seed of the tests and intervals.

    Raises:
        ConfigurationError: a configuration lacks the measure.
        GoldError: there are no queries, or not as many values or families as queries.
    """
    if len(per_query) < 2:
        return None
    for name, measures in per_query.items():
        if measure not in measures:
            raise ConfigurationError(f"{name!r} was not measured in {measure!r}; {nearest(measure, measures)}")
    values = {name: {measure: measures[measure]} for name, measures in per_query.items()}
    return Pairwise(measure, list(values), compare(values, None, families, RESAMPLES, LEVEL, seed))


def turned(one: Comparison) -> Comparison:
    """Return the same comparison seen from the other system."""
    low, high = one.interval
    return replace(
        one,
        system=one.baseline,
        baseline=one.system,
        difference=-one.difference,
        interval=(-high, -low),
        effect_size=None if one.effect_size is None else -one.effect_size,
        wins=one.losses,
        losses=one.wins,
    )
