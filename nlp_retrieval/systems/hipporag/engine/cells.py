"""Cells of entities, so that not all pairs are compared: similar entities are near the same entities.

Some entities are pivots, and every entity is in the cells of its most similar pivots. Two entities are compared if they share a
cell; this is symmetric. The pivots are the entities with the lowest hashes, four times the square root of all, so the cells
hold a multiple of that root, wherever entities are dense. Similarities to pivots are computed in whole numbers: the cells of an
entity depend on it and on the pivots, but not on the computer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Rows, offsets_of
from nlp_retrieval.retrievers import Hashes, Stack, directions

CELLS = 4
"""Number of cells of an entity."""

_PIVOTS = 4.0
_SCORES_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class Cells:
    """Assignment of entities to cells.

    Args:
        count: number of cells.
        of_entity: ``[entities, cells of each]``, ascending.
        order: entities, cell by cell, and ascending in each.
        offsets: ``[count + 1]``, begins of the cells in it.
    """

    count: int
    of_entity: NDArray[np.int32]
    order: Rows
    offsets: Rows

    @classmethod
    def of(cls, vectors: Stack, hashes: Hashes, per_entity: int = CELLS, pivots: float = _PIVOTS) -> Cells:
        """Sort entities into cells.

        Args:
            vectors: of all entities, at least one.
            hashes: ``[entities]``, of the entities.
            per_entity: number of cells of each.
            pivots: number of pivots, in square roots of the number of entities.
        """
        count = max(1, min(len(hashes), math.ceil(pivots * math.sqrt(len(hashes)))))
        per_entity = min(per_entity, count)
        chosen = directions(vectors.at(np.sort(np.argsort(hashes, kind="stable")[:count])))
        of_entity = np.empty((len(hashes), per_entity), np.int32)
        for start, piece in vectors.pieces(max(1, _SCORES_AT_ONCE // count)):
            products = directions(piece) @ chosen.T
            nearest = np.argpartition(-products, per_entity - 1, axis=1)[:, :per_entity]
            of_entity[start : start + len(piece)] = np.sort(nearest, axis=1)
        order = np.argsort(of_entity.ravel(), kind="stable") // per_entity
        return cls(count, of_entity, order, offsets_of(np.bincount(of_entity.ravel(), minlength=count)))

    def members(self, cell: int) -> Rows:
        """Return the entities of a cell, ascending."""
        members: Rows = self.order[self.offsets[cell] : self.offsets[cell + 1]]
        return members

    def first_shared(self, ones: Rows, others: Rows) -> Rows:
        """Return the lowest cell that both of each pair are in, or ``count`` if there is none."""
        mine, theirs = self.of_entity[ones], self.of_entity[others]
        shared = (mine[:, :, None] == theirs[:, None, :]).any(axis=2)
        first: Rows = np.where(shared, mine, self.count).min(axis=1, initial=self.count).astype(np.int64)
        return first
