"""The lists of a run as columns: the hits of each configuration for each query, with scores and signals, and the gold.

Items are numbered among those in a list or in the gold, in order of first appearance, so the lists
of a large sweep take a few bytes a hit and need no corpus. Nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores, offsets_of
from nlp_retrieval.core.models import Gold, Query, RetrievalResult, no_collection
from nlp_retrieval.errors import ConfigurationError, QueryError, nearest
from nlp_retrieval.evaluation.gold import joined

TEXT_DEPTH = 30
"""Number of hits of each list that are stored with their texts."""

LONGEST_TEXT = 5000
"""Maximum characters; longer texts are truncated with an ellipsis."""

Ranking = list[tuple[str, float]]
"""Item ids and scores of one query, best first."""


@dataclass(frozen=True, eq=False)
class Listing:
    """The lists of one configuration: query i owns ``offsets[i]:offsets[i + 1]`` of items, scores and signals; NaN is none."""

    offsets: Rows
    items: Rows
    scores: Scores
    signals: dict[str, Scores] = field(default_factory=dict)

    def of(self, query: int) -> slice:
        """Return the range of a query's hits, by its number."""
        return slice(int(self.offsets[query]), int(self.offsets[query + 1]))


@dataclass(frozen=True, eq=False)
class RunLists:
    """All lists of a run, with the queries and gold.

    Items in a list or in the gold are positions in ``item_ids``; query i owns ``gold_offsets[i]:gold_offsets[i + 1]`` of
    ``gold_items`` and ``gold_grades``. ``passages`` has texts by item id, of gold and of the first hits.
    """

    query_ids: list[str]
    texts: list[str]
    families: list[str | None]
    groups: list[str | None]
    item_ids: list[str]
    titles: list[str]
    gold: list[Gold]
    gold_offsets: Rows
    gold_items: Rows
    gold_grades: Rows
    listings: dict[str, Listing]
    passages: dict[str, str] = field(default_factory=dict)

    def listing(self, configuration: str) -> Listing:
        """Return the lists of a configuration.

        Raises:
            ConfigurationError: the configuration does not exist.
        """
        if configuration not in self.listings:
            raise ConfigurationError(
                f"the run has no configuration {configuration!r}; {nearest(configuration, list(self.listings))}"
            )
        return self.listings[configuration]

    def number_of(self, query_id: str) -> int:
        """Return the number of a query, from 0.

        Raises:
            QueryError: the query does not exist.
        """
        try:
            return self.query_ids.index(query_id)
        except ValueError:
            raise QueryError(f"the run has no query {query_id!r}; {nearest(query_id, self.query_ids)}") from None

    def gold_of(self, query: int, lowest: int = 1) -> dict[int, int]:
        """Return the grades of a query's gold, of ``lowest`` and above, by position in ``item_ids``."""
        return {item: grade for item, grade in self._judged(query) if grade >= lowest}

    def rankings(self, configuration: str) -> list[Ranking]:
        """Return the lists of a configuration as item ids and scores, one per query."""
        listing = self.listing(configuration)
        ids = [self.item_ids[item] for item in listing.items.tolist()]
        pairs = list(zip(ids, listing.scores.tolist(), strict=True))
        return [pairs[begin:end] for begin, end in pairwise(listing.offsets.tolist())]

    def qrels(self) -> dict[str, dict[str, int]]:
        """Return all grades by item id, by query id."""
        return {
            query_id: {self.item_ids[item]: grade for item, grade in self._judged(number)}
            for number, query_id in enumerate(self.query_ids)
        }

    def _judged(self, query: int) -> list[tuple[int, int]]:
        here = slice(int(self.gold_offsets[query]), int(self.gold_offsets[query + 1]))
        return list(zip(self.gold_items[here].tolist(), self.gold_grades[here].tolist(), strict=True))

    def grades(self, configuration: str) -> Rows:
        """Return ``[hits]``: the grade of each hit of a configuration, 0 if it is not relevant to its query."""
        listing, n_items = self.listing(configuration), max(1, len(self.item_ids))
        gold = np.repeat(np.arange(len(self.query_ids)), np.diff(self.gold_offsets)) * n_items + self.gold_items
        hits = np.repeat(np.arange(len(self.query_ids)), np.diff(listing.offsets)) * n_items + listing.items
        return joined(hits, gold, np.maximum(self.gold_grades, 0))


class ListsBuilder:
    """Collects the lists of a run, one configuration after another; ``titles`` has those of the gold at least."""

    def __init__(
        self,
        query_ids: Sequence[str],
        texts: Sequence[str],
        families: Sequence[str | None],
        groups: Sequence[str | None],
        gold: Sequence[Gold],
        qrels: Mapping[str, Mapping[str, int]],
        titles: Mapping[str, str],
    ) -> None:
        self._about = list(query_ids), list(texts), list(families), list(groups)
        self._gold = list(gold)
        self._place: dict[str, int] = {}
        self._titles: list[str] = []
        judged = [qrels.get(query_id, {}) for query_id in query_ids]
        self._gold_offsets = offsets_of([len(grades) for grades in judged])
        wanted = [self._at(item_id, titles.get(item_id, "")) for grades in judged for item_id in grades]
        self._gold_items = np.array(wanted, np.int64)
        self._gold_grades = np.array([grade for grades in judged for grade in grades.values()], np.int64)
        self._listings: dict[str, Listing] = {}
        self._passages: dict[str, str] = {}

    @no_collection()
    def add(self, configuration: str, results: Sequence[Sequence[RetrievalResult]]) -> Listing:
        """Add a searcher's results, one list per query."""
        self.add_passages(
            {hit.item.item_id: hit.item.content for hits_of_query in results for hit in hits_of_query[:TEXT_DEPTH]}
        )
        hits = [hit for hits_of_query in results for hit in hits_of_query]
        items = [self._at(hit.item.item_id, hit.item.title) for hit in hits]
        names = dict.fromkeys(name for hit in hits for name in hit.signals)
        signals = {name: np.array([hit.signals.get(name, np.nan) for hit in hits], np.float64) for name in names}
        return self._put(configuration, list(map(len, results)), items, [hit.score for hit in hits], signals)

    def add_rankings(self, configuration: str, rankings: Sequence[Ranking], titles: Mapping[str, str]) -> Listing:
        """Add lists with ids and scores alone, one per query."""
        pairs = [pair for ranking in rankings for pair in ranking]
        items = [self._at(item_id, titles.get(item_id, "")) for item_id, _ in pairs]
        return self._put(configuration, list(map(len, rankings)), items, [score for _, score in pairs], {})

    def add_passages(self, texts: Mapping[str, str]) -> None:
        """Add texts by item id; existing ones are kept."""
        for item_id, text in texts.items():
            if item_id not in self._passages:
                self._passages[item_id] = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 2]} …"

    def without_passage(self) -> list[str]:
        """Return the ids, without a text so far, of gold and of the first hits of lists added without texts."""
        wanted = dict.fromkeys(self._gold_items[self._gold_grades > 0].tolist())
        for listing in self._listings.values():
            rank = np.arange(len(listing.items)) - np.repeat(listing.offsets[:-1], np.diff(listing.offsets))
            wanted |= dict.fromkeys(listing.items[rank < TEXT_DEPTH].tolist())
        ids = list(self._place)
        return [ids[item] for item in wanted if ids[item] not in self._passages]

    def built(self) -> RunLists:
        """Return the collected lists."""
        gold = self._gold, self._gold_offsets, self._gold_items, self._gold_grades
        listings, passages = dict(self._listings), dict(self._passages)
        return RunLists(*self._about, list(self._place), list(self._titles), *gold, listings, passages)

    def _put(
        self, configuration: str, lengths: list[int], items: list[int], scores: list[float], signals: dict[str, Scores]
    ) -> Listing:
        listing = Listing(offsets_of(lengths), np.array(items, np.int64), np.array(scores, np.float64), signals)
        self._listings[configuration] = listing
        return listing

    def _at(self, item_id: str, title: str) -> int:
        number = self._place.setdefault(item_id, len(self._titles))
        if number == len(self._titles):
            self._titles.append(title)
        return number


def same_text(query: str, passage: str) -> bool:
    """Return whether a query is a passage: one contains the other, ignoring white space and case."""
    asked, content = (" ".join(text.split()).casefold() for text in (query, passage))
    return bool(asked and content) and (asked in content or content in asked)


def are_passages(queries: Sequence[Query], texts: Mapping[str, Sequence[str]], ignore: bool | None) -> bool:
    """Return whether an item with the id of a query is the query itself: as was chosen, or if most of them have its text."""
    if ignore is not None or not texts:
        return bool(ignore)
    same = [any(same_text(query.text, text) for text in texts[query.query_id]) for query in queries if query.query_id in texts]
    return 2 * sum(same) >= len(same)


def own_ids(
    query_ids: Sequence[str], known: Iterable[str], qrels: Mapping[str, Mapping[str, int]], *, ignore: bool
) -> list[str | None]:
    """Return per query the item that does not count, as it is the query itself and no gold; None if there is none."""
    alike = set(known) if ignore else set()
    mine = (query_id in alike and qrels.get(query_id, {}).get(query_id, 0) <= 0 for query_id in query_ids)
    return [query_id if own else None for query_id, own in zip(query_ids, mine, strict=True)]


def without_own(lists: RunLists, own: Sequence[str | None]) -> dict[str, Listing]:
    """Return the lists of every configuration without the hits that do not count."""
    number_of = {item_id: number for number, item_id in enumerate(lists.item_ids)}
    mine = np.array([-1 if item_id is None else number_of.get(item_id, -1) for item_id in own], np.int64)
    others = {}
    for name, listing in lists.listings.items():
        owner = np.repeat(np.arange(len(mine)), np.diff(listing.offsets))
        kept = listing.items != mine[owner]
        lengths = np.bincount(owner[kept], minlength=len(mine))
        signals = {signal: values[kept] for signal, values in listing.signals.items()}
        others[name] = Listing(offsets_of(lengths), listing.items[kept], listing.scores[kept], signals)
    return others
