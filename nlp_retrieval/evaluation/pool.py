"""Combined results of a set of configurations or retrievers: the oracle recall of their union, and each one's contribution.

A gold document is an item of :attr:`RunLists.gold_items`, for one query. The pool at k is the union of all sources' first k, so
it holds more than k documents, and its recall is the limit for a perfect choice among them, not that of any list.
Recall is the mean over the queries that have gold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.core.queries import check_k
from nlp_retrieval.errors import ConfigurationError, GoldError
from nlp_retrieval.evaluation.gold import joined
from nlp_retrieval.evaluation.rankings import Listing, Ranks, RunLists

__all__ = ["GoldDocument", "PoolCutoff", "PoolReport", "PoolShare", "Ranks", "gold_ranks", "pool_report"]


@dataclass(frozen=True)
class GoldDocument:
    """A gold document of a query.

    Args:
        query_id: id of the query.
        item_id: id of the document.
        title: empty if it has none.
        grade: above 0.
    """

    query_id: str
    item_id: str
    title: str
    grade: int


@dataclass(frozen=True)
class PoolShare:
    """Contribution of one source to the pool at a cutoff.

    Args:
        recall: recall of its own first k.
        perfect_recall: the share of queries whose gold is completely in its own first k.
        adds: recall of the pool minus that of the pool without it.
        adds_perfect: the same for perfect recall.
        only: how many gold documents only it finds.
    """

    recall: float
    perfect_recall: float
    adds: float
    adds_perfect: float
    only: int


@dataclass(frozen=True)
class PoolCutoff:
    """The pool at one cutoff.

    Args:
        k: number of hits used of each source's list.
        recall: recall of the pool, an oracle's.
        perfect_recall: the share of queries whose gold is completely in the pool.
        unfound: how many gold documents no source finds.
        shares: by source.
    """

    k: int
    recall: float
    perfect_recall: float
    unfound: int
    shares: dict[str, PoolShare]


@dataclass(frozen=True)
class PoolReport:
    """Pools of all queries, by cutoff.

    Args:
        queries: how many queries have gold.
        gold: how many gold documents there are.
        cutoffs: ascending.
        unfound: the documents that no source finds at the largest cutoff, in the order of the queries.
        only: the documents that only one source finds there, by source.
    """

    queries: int
    gold: int
    cutoffs: list[PoolCutoff]
    unfound: list[GoldDocument]
    only: dict[str, list[GoldDocument]]


def gold_ranks(lists: RunLists, listing: Listing) -> Ranks:
    """Return the rank of each gold document in its query's list, 0 if it is missing.

    Args:
        lists: lists of a run; its queries and gold count, not its listings.
        listing: lists for these queries, of items by their positions in ``lists.item_ids``.

    Raises:
        ConfigurationError: there are not as many lists as queries.
    """
    n_queries, n_items = len(lists.query_ids), max(1, len(lists.item_ids))
    if len(listing.offsets) != n_queries + 1:
        raise ConfigurationError(f"{len(listing.offsets) - 1} lists for {n_queries} queries; give one for each, empty or not")
    owner = np.repeat(np.arange(n_queries), np.diff(listing.offsets))
    hits = owner * n_items + listing.items
    gold = _owners(lists) * n_items + lists.gold_items
    return joined(gold, hits, np.arange(len(hits)) - listing.offsets[owner] + 1)


def pool_report(lists: RunLists, ranks: Mapping[str, Ranks], k_values: Sequence[int]) -> PoolReport:
    """Return the gold documents found by each source and by the union of all sources.

    Args:
        lists: lists of a run.
        ranks: by source: a configuration, or a retriever on its own; see :func:`gold_ranks`.
        k_values: the cutoffs.

    Raises:
        ConfigurationError: there are no sources or no cutoffs.
        GoldError: the number of ranks differs from that of gold documents, or a rank is below 0.
        QueryError: a cutoff is not a positive integer.
    """
    cuts = sorted({check_k(k, "a cutoff") for k in k_values})
    if not ranks or not cuts:
        raise ConfigurationError(f"{len(ranks)} sources and {len(cuts)} cutoffs; give at least one of each")
    for source, own in ranks.items():
        if own.shape != lists.gold_items.shape or (own < 0).any():
            raise GoldError(
                f"the ranks of {source!r} are of shape {list(own.shape)}, the least is {own.min(initial=0)}; give one for each "
                f"of {len(lists.gold_items)} gold documents, 0 where it is not found"
            )
    table = np.stack([*ranks.values()])
    table = np.where(table == 0, np.iinfo(np.int64).max, table)
    deepest = table <= cuts[-1]
    finders = deepest.sum(axis=0)
    return PoolReport(
        queries=int(np.count_nonzero(np.diff(lists.gold_offsets))),
        gold=len(lists.gold_items),
        cutoffs=[_cutoff(lists, list(ranks), table <= k, k) for k in cuts],
        unfound=_documents(lists, finders == 0),
        only={source: _documents(lists, (finders == 1) & own) for source, own in zip(ranks, deepest, strict=True)},
    )


def _cutoff(lists: RunLists, sources: list[str], is_found: Mask, k: int) -> PoolCutoff:
    """The pool of all sources: ``[sources, gold documents]``."""
    finders = is_found.sum(axis=0)
    recall, perfect = _recalls(lists, finders > 0)
    shares = {}
    for source, own in zip(sources, is_found, strict=True):
        own_recall, own_perfect = _recalls(lists, own)
        rest_recall, rest_perfect = _recalls(lists, finders - own > 0)
        alone = int(((finders == 1) & own).sum())
        shares[source] = PoolShare(own_recall, own_perfect, recall - rest_recall, perfect - rest_perfect, alone)
    return PoolCutoff(k, recall, perfect, int((finders == 0).sum()), shares)


def _recalls(lists: RunLists, is_found: Mask) -> tuple[float, float]:
    """Recall and perfect recall of the documents found: ``[gold documents]``."""
    wanted = np.diff(lists.gold_offsets)
    judged = wanted > 0
    if not judged.any():
        return 0.0, 0.0
    hits = np.bincount(_owners(lists)[is_found], minlength=len(wanted))[judged]
    shares: Scores = hits / wanted[judged]
    return math.fsum(shares.tolist()) / len(shares), float((hits == wanted[judged]).mean())


def _owners(lists: RunLists) -> Rows:
    """``[gold documents]``: the number of the query of each."""
    return np.repeat(np.arange(len(lists.query_ids)), np.diff(lists.gold_offsets))


def _documents(lists: RunLists, chosen: Mask) -> list[GoldDocument]:
    owners = _owners(lists)
    return [
        GoldDocument(
            lists.query_ids[owners[row]],
            lists.item_ids[lists.gold_items[row]],
            lists.titles[lists.gold_items[row]],
            int(lists.gold_grades[row]),
        )
        for row in np.flatnonzero(chosen).tolist()
    ]
