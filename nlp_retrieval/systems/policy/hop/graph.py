"""Walks along the strongest paths of relations.

The strength of a path is that of its start, times the confidence, type weight and decay of each relation. Relations are walked
both ways. No path leads back to its start, over a passage that the filter excludes, or over more than the allowed relations;
and the total number of steps is limited.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nlp_retrieval.core import Mask, Rows, Scores, offsets_of
from nlp_retrieval.systems.policy.hop.relation import Relations

OTHER_WEIGHT = 0.7
"""Weight of types that tables of other programs name."""

_DECIMALS = 9


@dataclass(frozen=True)
class RelationPath:
    """The strongest path to a passage: its rows from the start, and the numbers of the relations between them."""

    strength: float
    rows: tuple[int, ...]
    relations: tuple[int, ...]

    @property
    def row(self) -> int:
        """Return the row of the passage."""
        return self.rows[-1]


@dataclass(frozen=True, eq=False)
class RelationGraph:
    """Relations by passage, with their weights in a walk."""

    relations: Relations
    n_rows: int
    type_weights: Mapping[str, float]
    most: int

    @cached_property
    def _steps(self) -> tuple[Rows, Rows, Scores, Rows]:
        """Return offsets by row, and for each step the row that it reaches, its weight, and the number of its relation."""
        weights = np.array([self.type_weights.get(kind, OTHER_WEIGHT) for kind in self.relations.names])
        worth = (self.relations.confidences * weights[self.relations.types]).round(_DECIMALS)
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
        """Return the strongest path to each passage reached from another one, strongest first, ties by row."""
        offsets, others, worths, numbers = self._steps
        # strength downwards, then the shorter path, the lower row, and the order of discovery
        queue: list[tuple[float, int, int, int]] = []
        paths: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

        def push(strength: float, rows: tuple[int, ...], relations: tuple[int, ...]) -> None:
            heapq.heappush(queue, (-strength, len(relations), rows[-1], len(paths)))
            paths.append((rows, relations))

        for row, strength in zip(starts, strengths, strict=True):
            if strength > 0:
                push(strength, (row,), ())
        fewest: dict[tuple[int, int], int] = {}
        reached: dict[int, RelationPath] = {}
        n_steps = 0
        while queue:
            minus, hops, row, number = heapq.heappop(queue)
            rows, relations = paths[number]
            origin = rows[0]
            if fewest.get((origin, row), max_hops + 1) <= hops:
                continue  # reached by a path that is stronger and no longer
            fewest[origin, row] = hops
            if hops and row not in reached:
                reached[row] = RelationPath(-minus, rows, relations)
            if hops == max_hops or n_steps == max_steps:
                continue
            n_steps += 1
            for step in range(int(offsets[row]), int(offsets[row + 1])):
                other = int(others[step])
                strength = round(-minus * float(worths[step]) * decay, 12)
                if other == origin or strength <= 0 or (allowed is not None and not allowed[other]):
                    continue
                if fewest.get((origin, other), max_hops + 1) > hops + 1:
                    push(strength, (*rows, other), (*relations, int(numbers[step])))
        return sorted(reached.values(), key=lambda path: (-path.strength, path.row))
