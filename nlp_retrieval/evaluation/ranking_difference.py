"""Differences between two configurations' rankings of a query: hits that entered, left and moved, and their signals.

Only the numbers themselves are reported. Signals are matched by name, and equal names need not mean equal components. A hit's
rank by a signal is, for ``<label>.rank``, the value itself; for ``<label>.score`` with a matching ``<label>.rank``, that
value, so the two are reported as one; for any other signal, one more than the number of hits of the same list whose value is
higher. If a hit is not in a list, its signals there are unknown, which does not mean that no component found it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores, offsets_of
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.errors import ConfigurationError, nearest
from nlp_retrieval.evaluation.evaluator import RetrievalEvaluator
from nlp_retrieval.evaluation.gold import Key, key_of
from nlp_retrieval.evaluation.measures import MEASURES, Measure, measure_names
from nlp_retrieval.evaluation.rankings import Listing, RunLists

Movement = Literal["entered", "left", "up", "down", "same"]
Seen = Literal["seen", "unseen", "absent", "unlisted"]
"""Presence of a signal: the hit has it; it does not, though other hits of the configuration do; the configuration has no
such signal; the hit is not in the list."""

_RANK, _SCORE = ".rank", ".score"


@dataclass(frozen=True)
class SignalMove:
    """One signal of a hit in two lists: its value, the rank of the hit by it, and whether it is there."""

    name: str
    one: float | None
    other: float | None
    one_rank: int | None
    other_rank: int | None
    one_seen: Seen
    other_seen: Seen

    @property
    def up(self) -> int | None:
        """Return by how many positions the hit ranks higher by this signal in the second list; None unless both have it."""
        return None if self.one_rank is None or self.other_rank is None else self.one_rank - self.other_rank


@dataclass(frozen=True)
class HitDifference:
    """A hit among the first k of one of two lists; ranks are from 1, also beyond k, and None if it is not in the list."""

    item_id: str
    title: str
    grade: int
    one_rank: int | None
    other_rank: int | None
    movement: Movement
    signals: list[SignalMove]

    @property
    def up(self) -> int | None:
        """Return by how many positions it ranks higher in the second list; None if it is missing from either list."""
        return None if self.one_rank is None or self.other_rank is None else self.one_rank - self.other_rank

    @property
    def moved_by(self) -> list[SignalMove]:
        """The signals that differ: only in one of the lists, or with another rank; empty if the hit did not move."""
        if self.movement == "same":
            return []
        return [signal for signal in self.signals if signal.one_seen != signal.other_seen or signal.up]


@dataclass(frozen=True)
class MissedGold:
    """Gold that is not among the first k of either list; a rank is beyond k, or None."""

    item_id: str
    title: str
    grade: int
    one_rank: int | None
    other_rank: int | None


@dataclass(frozen=True)
class QueryDifference:
    """Two lists for one query."""

    query_id: str
    text: str
    group: str | None
    one: str
    other: str
    k: int
    hits: list[HitDifference]
    missed: list[MissedGold]
    one_recall: float | None
    other_recall: float | None

    @property
    def one_list(self) -> list[HitDifference]:
        """The first k of the first list, best first."""
        return self._first([hit.one_rank for hit in self.hits])

    @property
    def other_list(self) -> list[HitDifference]:
        """The first k of the second list, best first."""
        return self._first([hit.other_rank for hit in self.hits])

    def _first(self, ranks: list[int | None]) -> list[HitDifference]:
        ranked = [(rank, hit) for rank, hit in zip(ranks, self.hits, strict=True) if rank is not None and rank <= self.k]
        return [hit for _, hit in sorted(ranked, key=lambda pair: pair[0])]


def difference(lists: RunLists, one: str, other: str, query_id: str, k: int, relevant_from: int = 1) -> QueryDifference:
    """Compare the lists of two configurations for one query."""
    cut = check_k(k)
    query = lists.number_of(query_id)
    first, second = _Side(lists.listing(one), query), _Side(lists.listing(other), query)
    judged, gold = lists.gold[query], lists.gold_of(query, relevant_from)
    names = lists.titles if judged.by == "title" else lists.item_ids
    within = dict.fromkeys([*first.items[:cut], *second.items[:cut]])
    documents = {item: key_of(judged, names[item] or lists.item_ids[item]) for item in gold}  # items of a title are one
    shown = {documents.get(item) for item in within}
    ordered = sorted(within, key=lambda item: min(side.ranks.get(item, cut + 1) for side in (first, second)))
    return QueryDifference(
        query_id=query_id,
        text=lists.texts[query],
        group=lists.groups[query],
        one=one,
        other=other,
        k=cut,
        hits=[_hit(lists, item, gold.get(item, 0), first, second, cut) for item in ordered],
        missed=[
            MissedGold(lists.item_ids[item], lists.titles[item], grade, first.ranks.get(item), second.ranks.get(item))
            for item, grade in gold.items()
            if documents[item] not in shown
        ],
        one_recall=first.recall(documents, cut),
        other_recall=second.recall(documents, cut),
    )


class _Side:
    """One list of one query."""

    def __init__(self, listing: Listing, query: int) -> None:
        here = listing.of(query)
        self.items: list[int] = listing.items[here].tolist()
        self.ranks = {item: rank for rank, item in enumerate(self.items, start=1)}
        self.columns = {name: values[here] for name, values in listing.signals.items()}

    def recall(self, documents: dict[int, Key], k: int) -> float | None:
        reached = {documents[item] for item in self.items[:k] if item in documents}
        return len(reached) / len({*documents.values()}) if documents else None

    def signal(self, name: str, item: int) -> tuple[float | None, int | None, Seen]:
        """Return the value, its rank, and its presence."""
        if item not in self.ranks:
            return None, None, "unlisted"
        if name not in self.columns:
            return None, None, "absent"
        position = self.ranks[item] - 1
        values = self.columns[name]
        value = float(values[position])
        if np.isnan(value):
            return None, None, "unseen"
        own = self.columns.get(name.removesuffix(_SCORE) + _RANK) if name.endswith(_SCORE) else None
        if own is not None and not np.isnan(own[position]):
            return value, int(own[position]), "seen"
        if name.endswith(_RANK):
            return value, int(value), "seen"
        return value, 1 + int((values > value).sum()), "seen"


def _hit(lists: RunLists, item: int, grade: int, first: _Side, second: _Side, k: int) -> HitDifference:
    first_rank, second_rank = first.ranks.get(item), second.ranks.get(item)
    names = [name for name in dict.fromkeys([*first.columns, *second.columns]) if not _is_rank_of_score(name, first, second)]
    both = [(name, first.signal(name, item), second.signal(name, item)) for name in names]
    signals = [SignalMove(name, one[0], other[0], one[1], other[1], one[2], other[2]) for name, one, other in both]
    return HitDifference(
        item_id=lists.item_ids[item],
        title=lists.titles[item],
        grade=grade,
        one_rank=first_rank,
        other_rank=second_rank,
        movement=_movement(first_rank, second_rank, k),
        signals=[signal for signal in signals if "seen" in (signal.one_seen, signal.other_seen)],
    )


def _is_rank_of_score(name: str, first: _Side, second: _Side) -> bool:
    """Return whether this is a rank that always comes with a score of the same label."""
    score = name.removesuffix(_RANK) + _SCORE
    return name.endswith(_RANK) and all(score in side.columns for side in (first, second) if name in side.columns)


def _movement(before: int | None, after: int | None, k: int) -> Movement:
    if before is None or before > k:
        return "entered"
    if after is None or after > k:
        return "left"
    return "same" if before == after else "up" if after < before else "down"


@dataclass(frozen=True)
class ChangedQuery:
    """A query with the measure of two configurations, and how many hits entered the first k of the second."""

    query_id: str
    one: float
    other: float
    entered: int

    @property
    def gain(self) -> float:
        """Return how much higher the second is."""
        return self.other - self.one


def changed_queries(
    lists: RunLists, one: str, other: str, k: int, measure: str = "recall", relevant_from: int = 1
) -> list[ChangedQuery]:
    """Return the queries with gold, sorted by gain or loss from one configuration to another, largest first.

    Equal changes are sorted by the number of hits that entered the list, then in the order of the run.
    """
    cut = check_k(k)
    if measure not in MEASURES:
        raise ConfigurationError(f"there is no measure {measure!r}; {nearest(measure, MEASURES)}")
    values = measured(lists, (one, other), [cut], relevant_from)
    before, after = (values[name][str(Measure(measure, cut))] for name in (one, other))
    new = entered(lists, lists.listing(one), lists.listing(other), cut)
    judged = np.flatnonzero(~np.isnan(before))
    order = judged[np.lexsort((judged, -new[judged], -np.abs(after - before)[judged].round(12)))]
    return [
        ChangedQuery(lists.query_ids[query], float(before[query]), float(after[query]), int(new[query]))
        for query in order.tolist()
    ]


def measured(
    lists: RunLists, configurations: Iterable[str], k_values: Sequence[int], relevant_from: int = 1
) -> dict[str, dict[str, Scores]]:
    """Return ``[queries]`` by configuration and measure, NaN for a query without gold."""
    listings = {name: lists.listing(name) for name in configurations}
    keys, n_queries = measure_names(k_values), len(lists.query_ids)
    figures = {name: {key: np.full(n_queries, np.nan) for key in keys} for name in listings}
    judged = [query for query in range(n_queries) if lists.gold_of(query)]
    if not judged:
        return figures
    evaluator = RetrievalEvaluator(
        [lists.gold[query] for query in judged], lists.item_ids, lists.titles, k_values, "count", relevant_from=relevant_from
    )
    for name, listing in listings.items():
        rankings = [listing.items[listing.of(query)] for query in judged]
        evaluation = evaluator.evaluate_ragged(offsets_of([len(ranking) for ranking in rankings]), np.concatenate(rankings))
        for key in keys:
            figures[name][key][judged] = evaluation.per_query[key]
    return figures


def entered(lists: RunLists, one: Listing, other: Listing, k: int) -> Rows:
    """Return ``[queries]``: how many of the first k of the second list are not among those of the first."""
    n_items, n_queries = max(1, len(lists.item_ids)), len(lists.query_ids)
    owners, keys = [], []
    for listing in (one, other):
        owner = np.repeat(np.arange(n_queries), np.diff(listing.offsets))
        within = np.arange(len(owner)) - listing.offsets[owner] < k
        owners.append(owner[within])
        keys.append(owner[within] * n_items + listing.items[within])
    return np.bincount(owners[1][~np.isin(keys[1], keys[0])], minlength=n_queries)
