"""Centrality of passages in the graph of relations: degree, PageRank and betweenness, and a class that summarises them.

Degree is the number of related passages, divided by the largest. PageRank (Page et al., 1999) follows relations along their
direction (SUPPORTS and CONTRADICTS both ways), by their confidence, with damping .85, and is divided by the largest.
Betweenness (Brandes, 2001) is the share of shortest paths between other passages that lead through one, divided by the largest;
above 2,000 passages it is estimated from 256 starts (Brandes and Pich, 2007) drawn with a fixed seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Rows, Scores, entries_of, offsets_of
from nlp_retrieval.systems.policy.relations.relation import RELATION_TYPES, Relations

__all__ = ["NODE_CLASSES", "betweenness_of", "centrality_of", "classes_of", "pagerank_of"]

NODE_CLASSES = ("PERIPHERAL", "CONNECTOR", "AUTHORITY", "CORE_HUB")
"""Classes by number: a CORE_HUB is high in two of the three measures, an AUTHORITY in PageRank, a CONNECTOR in betweenness."""

HIGH = 0.9
"""Quantile of the related passages from which a measure is high, if it is also above their median."""

_EXACT_UP_TO, _SAMPLE, _SEED = 2000, 256, 0
_DAMPING, _ROUNDS, _TOLERANCE = 0.85, 100, 1e-10


def centrality_of(relations: Relations, n_rows: int) -> NDArray[np.float32]:
    """Return ``[rows, 3]``: degree, PageRank and betweenness, each 0 to 1, the largest 1; 0 for rows without relations.

    Args:
        relations: of an index.
        n_rows: number of its rows.
    """
    result = np.zeros((n_rows, 3), np.float32)
    rows, ends = np.unique(np.concatenate([relations.sources, relations.targets]), return_inverse=True)
    if not len(rows):
        return result
    sources, targets = ends[: len(relations)], ends[len(relations) :]
    offsets, neighbours = _undirected(sources, targets, len(rows))
    mutual = np.flatnonzero(np.isin(relations.types, [RELATION_TYPES.index(kind) for kind in ("SUPPORTS", "CONTRADICTS")]))
    confidences = relations.confidences.astype(np.float64)
    arrows = (
        np.concatenate([sources, targets[mutual]]),
        np.concatenate([targets, sources[mutual]]),
        np.concatenate([confidences, confidences[mutual]]),
    )
    columns = (
        np.diff(offsets).astype(np.float64),
        pagerank_of(*arrows, len(rows)),
        betweenness_of(offsets, neighbours),
    )
    for number, column in enumerate(columns):
        largest = float(column.max())
        result[rows, number] = (column / largest).round(6) if largest > 0 else 0.0
    return result


def classes_of(centrality: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the class of each row, as a number of :data:`NODE_CLASSES`.

    Args:
        centrality: what :func:`centrality_of` returned.
    """
    related = centrality[:, 0] > 0
    high = np.zeros(centrality.shape, bool)
    if related.any():
        bounds = np.quantile(centrality[related], HIGH, axis=0)
        median = np.quantile(centrality[related], 0.5, axis=0)
        high = (centrality >= bounds) & (centrality > median) & related[:, None]
    classes = np.zeros(len(centrality), np.int8)
    classes[high[:, 2]] = NODE_CLASSES.index("CONNECTOR")
    classes[high[:, 1]] = NODE_CLASSES.index("AUTHORITY")
    classes[high.sum(1) >= 2] = NODE_CLASSES.index("CORE_HUB")
    return classes


def pagerank_of(sources: Rows, targets: Rows, weights: Scores, n_nodes: int) -> Scores:
    """Return the PageRank of each node; nodes without outgoing arrows lead to all.

    Args:
        sources: of the arrows.
        targets: of the arrows.
        weights: of the arrows, at least 0.
        n_nodes: number of nodes.
    """
    totals = np.bincount(sources, weights, n_nodes)
    shares = weights / np.where(totals > 0, totals, 1.0)[sources]
    dangling = totals <= 0
    ranks = np.full(n_nodes, 1 / n_nodes)
    for _ in range(_ROUNDS):
        before = ranks
        flow = np.bincount(targets, before[sources] * shares, n_nodes) + before[dangling].sum() / n_nodes
        ranks = _DAMPING * flow + (1 - _DAMPING) / n_nodes
        if np.abs(ranks - before).sum() < _TOLERANCE:
            break
    return ranks


def betweenness_of(offsets: Rows, neighbours: Rows) -> Scores:
    """Return the number of shortest paths through each node, counted once per pair and direction.

    Args:
        offsets: ``[nodes + 1]``.
        neighbours: of each node, each at most once; an arrow back for each.
    """
    n_nodes = len(offsets) - 1
    starts = np.arange(n_nodes)
    if n_nodes > _EXACT_UP_TO:
        starts = np.sort(np.random.default_rng(_SEED).choice(n_nodes, _SAMPLE, replace=False))
    total = np.zeros(n_nodes)
    for start in starts.tolist():
        total += _dependencies(offsets, neighbours, start, n_nodes)
    return total * (n_nodes / len(starts))


def _dependencies(offsets: Rows, neighbours: Rows, start: int, n_nodes: int) -> Scores:
    """Brandes' sums for one start, a level of the breadth-first search at a time."""
    depth = np.full(n_nodes, -1)
    paths = np.zeros(n_nodes)
    depth[start], paths[start] = 0, 1.0
    frontier, levels = np.array([start]), []
    while len(frontier):
        entries, counts = entries_of(offsets, frontier)
        owners, others = np.repeat(frontier, counts), neighbours[entries]
        depth[others[depth[others] < 0]] = depth[frontier[0]] + 1
        onward = depth[others] == depth[frontier[0]] + 1
        owners, others = owners[onward], others[onward]
        np.add.at(paths, others, paths[owners])
        levels.append((owners, others))
        frontier = np.unique(others)
    sums = np.zeros(n_nodes)
    for owners, others in reversed(levels):
        np.add.at(sums, owners, paths[owners] / paths[others] * (1 + sums[others]))
    sums[start] = 0
    return sums


def _undirected(sources: Rows, targets: Rows, n_nodes: int) -> tuple[Rows, Rows]:
    keys = np.unique(np.concatenate([sources * n_nodes + targets, targets * n_nodes + sources]))
    ones, others = np.divmod(keys, n_nodes)
    return offsets_of(np.bincount(ones, minlength=n_nodes)), others
