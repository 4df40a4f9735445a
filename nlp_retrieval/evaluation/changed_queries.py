"""Queries on which two configurations differ most, by gain or loss.

Gold is counted by items here: if gold names a title that several items have, each of them counts, unlike in the measures
of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores, offsets_of
from nlp_retrieval.core.models import Gold
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.evaluator import MEASURES, RetrievalEvaluator, measure_names
from nlp_retrieval.evaluation.measure import Measure
from nlp_retrieval.evaluation.rankings import Listing, RunLists

__all__ = ["ChangedQuery", "changed_queries", "entered", "measured"]


@dataclass(frozen=True)
class ChangedQuery:
    """A query, and its gain from one configuration to another.

    Args:
        query_id: id of the query.
        one: the measure of the first configuration.
        other: measure of the second.
        entered: how many hits are among the first k of the second and not of the first.
    """

    query_id: str
    one: float
    other: float
    entered: int

    @property
    def gain(self) -> float:
        """Return how much higher the second is."""
        return self.other - self.one


def changed_queries(lists: RunLists, one: str, other: str, k: int, measure: str = "recall") -> list[ChangedQuery]:
    """Return the queries with gold, sorted by gain or loss from one configuration to another, largest first.

    Equal changes are sorted by the number of hits that entered the list, then in the order of the run.

    Args:
        lists: lists of a run.
        one: a configuration.
        other: another.
        k: the cutoff.
        measure: without its cutoff; one of :data:`~nlp_retrieval.evaluation.evaluator.MEASURES`. Gold is counted by items.

    Raises:
        ConfigurationError: the configuration or measure does not exist.
        QueryError: ``k`` is not a positive integer.
    """
    cut = check_k(k)
    if measure not in MEASURES:
        raise ConfigurationError(f"there is no measure {measure!r}; {nearest(measure, MEASURES)}")
    values = measured(lists, (one, other), [cut])
    before, after = (values[name][str(Measure(measure, cut))] for name in (one, other))
    new = entered(lists, lists.listing(one), lists.listing(other), cut)
    judged = np.flatnonzero(np.diff(lists.gold_offsets))
    order = judged[np.lexsort((judged, -new[judged], -np.abs(after - before)[judged].round(12)))]
    return [
        ChangedQuery(lists.query_ids[query], float(before[query]), float(after[query]), int(new[query]))
        for query in order.tolist()
    ]


def measured(lists: RunLists, configurations: Iterable[str], k_values: Sequence[int]) -> dict[str, dict[str, Scores]]:
    """Return ``[queries]`` by configuration and measure, NaN for a query without gold; gold is counted by items.

    Args:
        lists: lists of a run.
        configurations: configurations of the run.
        k_values: the cutoffs.

    Raises:
        ConfigurationError: the configuration does not exist.
        QueryError: there are no cutoffs, or one is not a positive integer.
    """
    listings = {name: lists.listing(name) for name in configurations}
    keys, n_queries = measure_names(k_values), len(lists.query_ids)
    found = {name: {key: np.full(n_queries, np.nan) for key in keys} for name in listings}
    judged = np.flatnonzero(np.diff(lists.gold_offsets)).tolist()
    if not judged:
        return found
    evaluator = RetrievalEvaluator([_gold(lists, query) for query in judged], lists.item_ids, None, k_values)
    for name, listing in listings.items():
        rankings = [listing.items[listing.of(query)] for query in judged]
        evaluation = evaluator.evaluate_ragged(offsets_of([len(one) for one in rankings]), np.concatenate(rankings))
        for key in keys:
            found[name][key][judged] = evaluation.per_query[key]
    return found


def _gold(lists: RunLists, query: int) -> Gold:
    grades = {lists.item_ids[item]: grade for item, grade in lists.gold_of(query).items()}
    return Gold(query_id=lists.query_ids[query], relevance=grades)


def entered(lists: RunLists, one: Listing, other: Listing, k: int) -> Rows:
    """Return ``[queries]``: how many of the first k of the second list are not among those of the first.

    Args:
        lists: lists of a run.
        one: the lists of a configuration.
        other: those of another.
        k: the cutoff.
    """
    n_items, n_queries = max(1, len(lists.item_ids)), len(lists.query_ids)
    owners, keys = [], []
    for listing in (one, other):
        owner = np.repeat(np.arange(n_queries), np.diff(listing.offsets))
        within = np.arange(len(owner)) - listing.offsets[owner] < k
        owners.append(owner[within])
        keys.append(owner[within] * n_items + listing.items[within])
    return np.bincount(owners[1][~np.isin(keys[1], keys[0])], minlength=n_queries)
