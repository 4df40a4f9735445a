"""Walking along relations, the strongest path first.

The strength of a path is that of its start, times the confidence, type weight and decay of each relation. Relations are walked
both ways: an effect is as near to its cause as the cause to it. No path leads back to its start, over a passage that the filter
excludes, or over more than the allowed relations; and the total number of steps is limited.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Mask, Rows, Scores, offsets_of
from nlp_retrieval.systems.policy.relations.relation import RELATION_TYPES, Relations

__all__ = ["RelationGraph", "RelationPath"]

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
        type_weights: of each of :data:`~nlp_retrieval.systems.policy.relations.relation.RELATION_TYPES`, 0 to 1.
        most: the most relations of a passage that are walked; those of the highest weight.
    """

    relations: Relations
    n_rows: int
    type_weights: Mapping[str, float]
    most: int

    @cached_property
    def _steps(self) -> tuple[Rows, Rows, Scores, Rows]:
        """Return offsets by row, and for each step the row that it reaches, its weight, and the number of its relation."""
        weights = np.array([self.type_weights[kind] for kind in RELATION_TYPES])
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
        found: dict[int, RelationPath] = {}
        n_steps = 0
        while queue:
            minus, hops, row, origin, number = heapq.heappop(queue)
            if fewest.get((origin, row), max_hops + 1) <= hops:
                continue  # reached by a path that is stronger and no longer
            fewest[origin, row] = hops
            rows, relations = paths[number]
            if hops and row not in found:
                found[row] = RelationPath(row, -minus, rows, relations)
            if hops == max_hops or n_steps == max_steps:
                continue
            n_steps += 1
            for place in range(int(offsets[row]), int(offsets[row + 1])):
                other = int(others[place])
                strength = round(-minus * float(worths[place]) * decay, 12)
                if other == origin or strength <= 0 or (allowed is not None and not allowed[other]):
                    continue
                if fewest.get((origin, other), max_hops + 1) > hops + 1:
                    heapq.heappush(queue, (-strength, hops + 1, other, origin, len(paths)))
                    paths.append(((*rows, other), (*relations, int(numbers[place]))))
        return sorted(found.values(), key=lambda path: (-path.strength, path.row))

    def adjacent(self, kind: int) -> tuple[Rows, Rows]:
        """Return the relations of a type, by the rows of both ends.

        Args:
            kind: number of the type.
        """
        of_kind: NDArray[np.bool_] = self.relations.types == kind
        return self.relations.sources[of_kind], self.relations.targets[of_kind]
