"""From linked entities to a ranking of passages: the walk as published, and the variant of three stages.

Every passage gets a score, with or without knowledge: unreached passages follow reached ones, in the order of their similarity
to the query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core import Mask, Rows, Scores
from nlp_retrieval.retrievers import Restarts, WeightedGraph, local_pagerank, pagerank
from nlp_retrieval.systems.hipporag.engine.knowledge_graph import KnowledgeGraph
from nlp_retrieval.systems.hipporag.engine.linking import Linked

_FLOOR = 0.05
"""Lowest factor in the product of three stages, for the least similar or an unrelated passage, so that no product is 0."""


@dataclass(frozen=True)
class DenseScores:
    """All passages by their similarity to a query.

    Args:
        rows: those not deleted, most similar first.
        similarities: their inner products.
    """

    rows: Rows
    similarities: Scores

    @property
    def scaled(self) -> Scores:
        """Return similarities scaled from 0, the lowest, to 1, the highest; 1 if all are equal."""
        if len(self.rows) == 0:
            return self.similarities
        span = self.similarities[0] - self.similarities[-1]
        return (self.similarities - self.similarities[-1]) / span if span > 0 else np.ones(len(self.rows))

    def by_row(self, values: Scores, n_rows: int) -> Scores:
        """Return values by row, ``[n_rows]``; 0 for deleted rows."""
        column = np.zeros(n_rows)
        column[self.rows] = values
        return column


@dataclass(frozen=True)
class Ranked:
    """Ranking for one query, by row; values of deleted rows have no meaning.

    Args:
        scores: higher is better.
        ranks: share of the walk at each passage (without passage nodes: at the entities it names).
        seeds: share of its restarts.
    """

    scores: Scores
    ranks: Scores
    seeds: Scores


def restarts_of(linked: Linked, dense: DenseScores, passage_weight: float, n_rows: int) -> Restarts:
    """Return the restarts of a query's walk: its entities, and all passages by similarity times a weight."""
    rows, weights = linked.entities + n_rows, linked.weights
    if passage_weight > 0:
        order = np.argsort(dense.rows)
        rows, weights = np.r_[dense.rows[order], rows], np.r_[passage_weight * dense.scaled[order], weights]
    return Restarts(np.array([0, len(rows)]), rows, weights)


def walked(graph: WeightedGraph, restarts: Restarts, damping: float, epsilon: float | None) -> Scores:
    """Return the walk's share at each node, ``[nodes]``.

    Args:
        graph: to walk on.
        restarts: of one query.
        damping: probability of following a link.
        epsilon: of the local approximation; None for the exact ranks.
    """
    if epsilon is None:
        # always numpy: compiled code agrees only within the tolerance, so results would depend on what ran before
        ranks: Scores = pagerank(graph, restarts, damping, backend="numpy")[0]
        return ranks
    near = local_pagerank(graph, restarts, damping, epsilon)
    ranks = np.zeros(graph.graph.n_nodes)
    ranks[near.rows] = near.ranks
    return ranks


def ranked_by_walk(knowledge: KnowledgeGraph, dense: DenseScores, restarts: Restarts, nodes: Scores, passages: bool) -> Ranked:
    """Rank passages by the walk, and those it does not reach by similarity.

    Args:
        knowledge: the graph.
        dense: similarities of all passages.
        restarts: of the walk.
        nodes: ``[nodes]``, the walk's share at each.
        passages: whether passages are nodes; if not, a passage's rank is the sum of those of its entities.
    """
    n_rows = knowledge.n_rows
    ranks = nodes[:n_rows] if passages else relevance_of(knowledge, nodes[n_rows:])
    scaled = dense.by_row(dense.scaled, n_rows)
    # as float32: values that differ only by rounding tie, and are ordered by row
    scores = np.where(ranks > 0, ranks.astype(np.float32).astype(np.float64), scaled - 2.0)
    return Ranked(scores, ranks, _shares(restarts, n_rows))


def ranked_by_similarity(knowledge: KnowledgeGraph, dense: DenseScores) -> Ranked:
    """Rank passages if no entity was linked: by similarity alone, as if the walk always restarted."""
    scaled = dense.scaled
    shares = dense.by_row(scaled / (scaled.sum() or 1.0), knowledge.n_rows)
    scores = np.where(shares > 0, shares, -2.0)
    return Ranked(scores, shares, shares)


def ranked_by_product(
    knowledge: KnowledgeGraph, dense: DenseScores, graph: WeightedGraph, linked: Linked, nodes: Scores, hops: int
) -> Ranked:
    """Rank passages by similarity times relevance of their entities, both scaled so that neither is 0 or below.

    Args:
        knowledge: the graph.
        dense: similarities of all passages.
        graph: of the walk.
        linked: the entities of the query.
        nodes: ``[nodes]``, the walk's share at each.
        hops: entities further from those of the query than this many links do not count.
    """
    n_rows = knowledge.n_rows
    near = _within(graph, linked.entities + n_rows, hops)
    ranks = relevance_of(knowledge, np.where(near, nodes, 0.0)[n_rows:])
    relevance = ranks / (ranks.max(initial=0.0) or 1.0)
    similarity = dense.by_row(dense.scaled, n_rows)
    scores = (_FLOOR + (1 - _FLOOR) * similarity) * (_FLOOR + (1 - _FLOOR) * relevance)
    return Ranked(scores, ranks, np.zeros(n_rows))


def relevance_of(knowledge: KnowledgeGraph, entities: Scores) -> Scores:
    """Return per row the sum of the scores of the entities in its passage."""
    rows, named = knowledge.mentions.T
    return np.bincount(rows, entities[named], knowledge.n_rows).astype(np.float64)


def _within(graph: WeightedGraph, start: Rows, hops: int) -> Mask:
    reached = np.zeros(graph.graph.n_nodes, np.bool_)
    reached[start] = True
    last = start
    for _ in range(hops):
        _, neighbours, _ = graph.steps(last)
        last = np.unique(neighbours)
        last = last[~reached[last]]
        reached[last] = True
    return reached


def _shares(restarts: Restarts, n_rows: int) -> Scores:
    here = restarts.rows < n_rows
    shares = np.bincount(restarts.rows[here], restarts.weights[here], n_rows)
    return shares / (restarts.weights.sum() or 1.0)
