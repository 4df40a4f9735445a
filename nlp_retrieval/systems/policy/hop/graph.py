"""Graph of relations: walks along the strongest paths, and the centrality of passages.

The strength of a path is that of its start, times the confidence, type weight and decay of each relation. Relations are walked
both ways: an effect is as near to its cause as the cause to it. No path leads back to its start, over a passage that the filter
excludes, or over more than the allowed relations; and the total number of steps is limited.

Degree is the number of related passages, divided by the largest. PageRank (Page et al., 1999) follows relations along their
direction (SUPPORTS and CONTRADICTS both ways), by their confidence, with damping .85, and is divided by the largest.
Betweenness (Brandes, 2001) is the share of shortest paths between other passages that lead through one, divided by the largest;
above 2,000 passages it is estimated from 256 starts (Brandes and Pich, 2007) drawn with a fixed seed.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Mask, Rows, Scores, entries_of, offsets_of
from nlp_retrieval.systems.policy.hop.relation import RELATION_TYPES, Relations

OTHER_WEIGHT = 0.7
"""Weight of types that tables of other programs name, as of the least of the package's own."""

_DECIMALS = 9


@dataclass(frozen=True)
class RelationPath:
    """The strongest path to a passage.

    Args:
        row: the passage.
        strength: above 0.
        rows: from the start to the passage; at least two.
        relations: the numbers of the relations between them.
    """

    row: int
    strength: float
    rows: tuple[int, ...]
    relations: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class RelationGraph:
    """Relations by passage, with their weights in a walk.

    Args:
        relations: the relations.
        n_rows: rows of the index.
        type_weights: by type, 0 to 1; :data:`OTHER_WEIGHT` of others.
        most: the most relations of a passage that are walked; those of the highest weight.
    """

    relations: Relations
    n_rows: int
    type_weights: Mapping[str, float]
    most: int

    @cached_property
    def _steps(self) -> tuple[Rows, Rows, Scores, Rows]:
        """Return offsets by row, and for each step the row that it reaches, its weight, and the number of its relation."""
        weights = np.array([self.type_weights.get(kind, OTHER_WEIGHT) for kind in self.relations.names])
        worth = (self.relations.confidences.astype(np.float64) * weights[self.relations.types]).round(_DECIMALS)
        numbers = np.flatnonzero(worth > 0)
        owners = np.concatenate([self.relations.sources[numbers], self.relations.targets[numbers]])
        others = np.concatenate([self.relations.targets[numbers], self.relations.sources[numbers]])
        numbers = np.concatenate([numbers, numbers])
        order = np.lexsort((numbers, others, -worth[numbers], owners))
        owners = owners[order]
        kept = np.arange(len(order)) - np.searchsorted(owners, owners) < self.most
        order, owners = order[kept], owners[kept]
        return offsets_of(np.bincount(owners, minlength=self.n_rows)), others[order], worth[numbers[order]], numbers[order]

    def walk(
        self,
        starts: Sequence[int],
        strengths: Sequence[float],
        max_hops: int,
        decay: float,
        allowed: Mask | None,
        max_steps: int,
    ) -> list[RelationPath]:
        """Return the strongest path to each passage reached from another one, strongest first, ties by row.

        Args:
            starts: rows, each once.
            strengths: of the starts; one of 0 is ignored.
            max_hops: the most relations of a path.
            decay: factor of a path's strength for each relation, at most 1.
            allowed: ``[rows]``, whether paths may lead there; None for anywhere.
            max_steps: the most passages to expand.
        """
        offsets, others, worths, numbers = self._steps
        # strength downwards, then the shorter path, the lower row, and the order of discovery
        queue: list[tuple[float, int, int, int, int]] = []
        paths: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        for row, strength in zip(starts, strengths, strict=True):
            if strength > 0:
                heapq.heappush(queue, (-strength, 0, row, row, len(paths)))
                paths.append(((row,), ()))
        fewest: dict[tuple[int, int], int] = {}
        reached: dict[int, RelationPath] = {}
        n_steps = 0
        while queue:
            minus, hops, row, origin, number = heapq.heappop(queue)
            if fewest.get((origin, row), max_hops + 1) <= hops:
                continue  # reached by a path that is stronger and no longer
            fewest[origin, row] = hops
            rows, relations = paths[number]
            if hops and row not in reached:
                reached[row] = RelationPath(row, -minus, rows, relations)
            if hops == max_hops or n_steps == max_steps:
                continue
            n_steps += 1
            for step in range(int(offsets[row]), int(offsets[row + 1])):
                other = int(others[step])
                strength = round(-minus * float(worths[step]) * decay, 12)
                if other == origin or strength <= 0 or (allowed is not None and not allowed[other]):
                    continue
                if fewest.get((origin, other), max_hops + 1) > hops + 1:
                    heapq.heappush(queue, (-strength, hops + 1, other, origin, len(paths)))
                    paths.append(((*rows, other), (*relations, int(numbers[step]))))
        return sorted(reached.values(), key=lambda path: (-path.strength, path.row))

    def adjacent(self, kind: int) -> tuple[Rows, Rows]:
        """Return the relations of a type, by the rows of both ends."""
        of_kind: NDArray[np.bool_] = self.relations.types == kind
        return self.relations.sources[of_kind], self.relations.targets[of_kind]


NODE_CLASSES = ("PERIPHERAL", "CONNECTOR", "AUTHORITY", "CORE_HUB")
"""Classes by number: a CORE_HUB is high in two of the three measures, an AUTHORITY in PageRank, a CONNECTOR in betweenness."""

HIGH = 0.9
"""Quantile of the related passages from which a measure is high, if it is also above their median."""

_EXACT_UP_TO, _SAMPLE, _SEED = 2000, 256, 0
_DAMPING, _ROUNDS, _TOLERANCE = 0.85, 100, 1e-10


def centrality_of(relations: Relations, n_rows: int) -> NDArray[np.float32]:
    """Return ``[rows, 3]``: degree, PageRank and betweenness, each 0 to 1, the largest 1; 0 for rows without relations."""
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
    columns = (np.diff(offsets).astype(np.float64), pagerank_of(*arrows, len(rows)), betweenness_of(offsets, neighbours))
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
