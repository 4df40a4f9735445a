"""Synonymous entities: pairs of phrases with similar vectors, found by range search.

Blocks of vectors are compared with blocks of vectors, so memory holds a block of products and the pairs found, never a matrix
of all entities; and each entity keeps its :data:`MOST_SYNONYMS` best, so the pairs found never grow faster than the entities.
Added entities are compared with all; existing ones are not compared again.

Up to :data:`EXACT_PAIRS` comparisons all pairs are compared, and whether a pair counts, and its similarity, depends on the two
vectors alone, to the bit. Beyond, those that share a cell are: the work grows with the square root of what is compared, and a
few pairs are missed; bench/HIPPORAG.md says how many. A pair that is found has the same similarity either way.

Some entities are pivots, and every entity is in the cells of its most similar pivots: similar entities are near the same
entities. The pivots are the entities with the lowest hashes, four times the square root of all, so the cells hold a multiple of
that root, wherever entities are dense. Similarities to pivots are computed in whole numbers: the cells of an entity depend on
it and on the pivots, but not on the computer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Mask, Rows, offsets_of, progress
from nlp_retrieval.encoders import Vectors
from nlp_retrieval.retrievers import Hashes, Stack
from nlp_retrieval.systems.hipporag.tables import Synonyms

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
        chosen = _in_units(vectors.at(np.sort(np.argsort(hashes, kind="stable")[:count])))
        of_entity = np.empty((len(hashes), per_entity), np.int32)
        for start, piece in vectors.pieces(max(1, _SCORES_AT_ONCE // count)):
            products = _in_units(piece) @ chosen.T
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


MOST_SYNONYMS = 100
"""The most synonyms of an entity: the most similar ones."""

SHORTEST = 3
"""A phrase of fewer letters and digits has no synonyms: "it" and "us" are similar to everything."""

EXACT_PAIRS = 10**10
"""The most pairs that are all compared: 100,000 entities at once, which takes less time than encoding them."""

_ROUNDING = 1e-4
_ROWS_AT_ONCE = 1024
_OTHERS_AT_ONCE = 16_384
_PAIRS_AT_ONCE = 2**20

_Pairs = tuple[Rows, Rows, NDArray[np.float32]]


def synonyms_of(
    new: Vectors, new_hashes: Hashes, old: list[tuple[Vectors, Hashes]], threshold: float, most: int = MOST_SYNONYMS
) -> Synonyms:
    """Find the synonyms of new entities, among themselves and among existing ones.

    Args:
        new: ``[entities, dimension]``.
        new_hashes: ``[entities]``, of the new entities.
        old: vectors and hashes of existing entities, in any number of blocks.
        threshold: the least cosine, above 0.
        most: the most per entity.

    Returns:
        Each pair that is among the best of either of its two entities, with a new entity as source.
    """
    vectors = Stack(*(block for block, _ in old), new)
    hashes = np.concatenate([*(block_hashes for _, block_hashes in old), new_hashes])
    first_new = len(hashes) - len(new_hashes)
    exact = len(new) * len(hashes) <= EXACT_PAIRS
    near = _all_near(vectors, first_new, threshold) if exact else _cells_near(vectors, hashes, first_new, threshold)
    kept: _Pairs = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    waiting, n_waiting = [kept], 0
    for pairs in near:
        waiting.append(pairs)
        n_waiting += len(pairs[0])
        if n_waiting > max(_PAIRS_AT_ONCE, len(waiting[0][0])):
            waiting, n_waiting = [_best(waiting, hashes, most)], 0
    sources, targets, cosines = _best(waiting, hashes, most)
    once = (targets < first_new) | (sources < targets)  # pairs of new entities were found from both sides
    return Synonyms(hashes[sources[once]], hashes[targets[once]], cosines[once])


def best_synonyms(sources: Rows, targets: Rows, cosines: NDArray[np.float32], most: int = MOST_SYNONYMS) -> Mask:
    """Return which pairs are among the best of either of their two entities.

    Args:
        sources: ``[pairs]``, numbers of entities that ascend with their hashes; each pair occurs once.
        targets: ``[pairs]``, the other entity of each.
        cosines: ``[pairs]``.
        most: the most per entity.
    """
    is_best = _among_best(np.r_[sources, targets], np.r_[targets, sources], np.r_[cosines, cosines], most)
    return is_best[: len(sources)] | is_best[len(sources) :]


def _all_near(vectors: Stack, first_new: int, threshold: float) -> Iterator[_Pairs]:
    """Yield the pairs of new entities and all, but themselves, by their numbers."""
    everything = np.arange(len(vectors))
    with progress("hipporag: finding synonyms", len(vectors) - first_new) as advance:
        for start in range(first_new, len(vectors), _ROWS_AT_ONCE):
            part = everything[start : start + _ROWS_AT_ONCE]
            yield from _near(vectors, part, everything, threshold)
            advance(len(part))


def _cells_near(vectors: Stack, hashes: Hashes, first_new: int, threshold: float) -> Iterator[_Pairs]:
    """Yield the pairs of new entities and those that share a cell with them, each pair in the first cell that they share."""
    cells = Cells.of(vectors, hashes)
    with progress("hipporag: finding synonyms", cells.count) as advance:
        for cell in range(cells.count):
            members = cells.members(cell)
            for sources, targets, cosines in _near(vectors, members[members >= first_new], members, threshold):
                first = cells.first_shared(sources, targets) == cell
                yield sources[first], targets[first], cosines[first]
            advance(1)


def _near(vectors: Stack, some: Rows, others: Rows, threshold: float) -> Iterator[_Pairs]:
    """Yield the pairs of some entities and others, but themselves, by their numbers."""
    for first in range(0, len(some), _ROWS_AT_ONCE):
        numbers = some[first : first + _ROWS_AT_ONCE]
        part = _directions(vectors.at(numbers))
        for start in range(0, len(others), _OTHERS_AT_ONCE):
            other_numbers = others[start : start + _OTHERS_AT_ONCE]
            block = _directions(vectors.at(other_numbers))
            rows, columns = np.nonzero(part @ block.T >= threshold - _ROUNDING)
            different = numbers[rows] != other_numbers[columns]
            rows, columns = rows[different], columns[different]
            cosines = np.empty(len(rows), np.float32)
            for piece in range(0, len(rows), _OTHERS_AT_ONCE):
                here = slice(piece, piece + _OTHERS_AT_ONCE)
                # not BLAS: each sum separately, in one order, so that a pair's is the same in any block
                np.einsum("ij,ij->i", part[rows[here]], block[columns[here]], out=cosines[here])
            near = cosines >= np.float32(threshold)
            yield numbers[rows[near]], other_numbers[columns[near]], cosines[near]


def _best(batches: list[_Pairs], hashes: Hashes, most: int) -> _Pairs:
    """Keep the pairs that are among the best of their source, or of their target."""
    sources, targets, cosines = (np.concatenate(columns) for columns in zip(*batches, strict=True))
    kept = _among_best(sources, hashes[targets], cosines, most) | _among_best(targets, hashes[sources], cosines, most)
    return sources[kept], targets[kept], cosines[kept]


def _among_best(owner: Rows, other: Rows | Hashes, cosines: NDArray[np.float32], most: int) -> Mask:
    """Return which pairs are among the best of their owner; of equal ones those with the lowest hash."""
    counts = np.bincount(owner)
    if counts.max(initial=0) <= most:
        return np.ones(len(owner), np.bool_)
    order = np.lexsort((other, -cosines, owner))
    position = np.arange(len(order)) - (np.cumsum(counts) - counts)[owner[order]]
    kept = np.zeros(len(owner), np.bool_)
    kept[order[position < most]] = True
    return kept


def _in_units(vectors: Vectors) -> Vectors:
    """Return directions in whole units, 4,000 to a length of 1: float32 adds their products exactly, in any order."""
    units: Vectors = np.rint(_directions(vectors) * np.float32(4000))
    return units


def _directions(vectors: Vectors) -> Vectors:
    """Return vectors scaled to length 1; those of length 0 stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return scaled
