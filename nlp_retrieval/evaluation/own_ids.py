"""Queries that are passages themselves: a query's own passage is not an answer, so it does not count.

In ArguAna and Quora a query is a passage of the corpus, with its id. It finds itself first, and all other hits are one
rank lower; BEIR and MTEB ignore such a hit (``ignore_identical_ids``). In other collections, queries and passages just
use the same numbers: query 1 is unrelated to passage 1. The texts distinguish the two cases or, if there are none,
the rankings: a query that is a passage finds itself first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.evaluation.rankings import Listing, RunLists

__all__ = ["OwnIds", "own_ids", "own_ids_of_lists", "same_text", "without_own"]


@dataclass(frozen=True)
class OwnIds:
    """Hits that are the queries themselves.

    Args:
        ids: per query, the item that does not count; None if every item does.
        gold: how many queries keep theirs, because it is in their own gold.
        alike: how many queries share an id with a different item, so that it counts.
    """

    ids: Sequence[str | None]
    gold: int = 0
    alike: int = 0

    @property
    def ignored(self) -> int:
        """Return how many queries have an item that does not count."""
        return sum(own is not None for own in self.ids)


def same_text(query: str, passage: str) -> bool:
    """Return whether a query is a passage: one contains the other, ignoring white space and case."""
    asked, held = (" ".join(text.split()).casefold() for text in (query, passage))
    return bool(asked and held) and (asked in held or held in asked)


def own_ids(
    query_ids: Sequence[str],
    known: Iterable[str],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    ignore: bool,
) -> OwnIds:
    """Return the items that do not count.

    Args:
        query_ids: in order.
        known: ids of queries that are also ids of items.
        qrels: grades above 0 by item id, by query id.
        ignore: whether such an item is the query itself.
    """
    alike = set(known)
    if not ignore:
        return OwnIds([None] * len(query_ids), alike=len(alike))
    gold = {query_id for query_id in alike if query_id in qrels.get(query_id, {})}
    return OwnIds([query_id if query_id in alike - gold else None for query_id in query_ids], gold=len(gold))


def own_ids_of_lists(lists: RunLists, ignore: bool | None) -> OwnIds:
    """Return the hits of finished runs that do not count.

    Args:
        lists: lists of the runs.
        ignore: whether an item with the id of its query is the query itself; None: true if most of the queries that find
            such an item find it first, or if their texts are equal.
    """
    place = {item_id: number for number, item_id in enumerate(lists.item_ids)}
    own = np.array([place.get(query_id, -1) for query_id in lists.query_ids], np.int64)
    listed, first = 0, 0
    met: set[str] = set()
    for listing in lists.listings.values():
        owner = np.repeat(np.arange(len(own)), np.diff(listing.offsets))
        hits = np.flatnonzero(listing.items == own[owner])
        listed += len(hits)
        first += int((hits == listing.offsets[owner[hits]]).sum())
        met |= {lists.query_ids[query] for query in owner[hits].tolist()}
    if ignore is None:
        texts = [
            same_text(text, lists.passages[query_id])
            for query_id, text in zip(lists.query_ids, lists.texts, strict=True)
            if query_id in met and text and query_id in lists.passages
        ]
        ignore = 2 * sum(texts) >= len(texts) if texts else 2 * first > listed
    return own_ids(lists.query_ids, met, lists.qrels(), ignore=ignore)


def without_own(lists: RunLists, own: OwnIds) -> dict[str, Listing]:
    """Return the lists of every configuration without the hits that do not count.

    Args:
        lists: lists of runs.
        own: the hits that do not count.
    """
    place = {item_id: number for number, item_id in enumerate(lists.item_ids)}
    mine = np.array([-1 if one is None else place.get(one, -1) for one in own.ids], np.int64)
    found = {}
    for name, listing in lists.listings.items():
        owner = np.repeat(np.arange(len(mine)), np.diff(listing.offsets))
        kept = listing.items != mine[owner]
        lengths = np.bincount(owner[kept], minlength=len(mine))
        signals = {signal: values[kept] for signal, values in listing.signals.items()}
        found[name] = Listing(offsets_of(lengths), listing.items[kept], listing.scores[kept], signals)
    return found
