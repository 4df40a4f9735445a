"""Synonymous entities: pairs of phrases with similar vectors, found by range search.

Blocks of vectors are compared with blocks of vectors, so memory holds a block of products and the pairs found, never a matrix
of all entities; and each entity keeps its :data:`MOST_SYNONYMS` best, so the pairs found never grow faster than the entities.
Added entities are compared with all; existing ones are not compared again. Whether a pair counts, and its similarity, depends
on the two vectors alone, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Mask, Rows, progress
from nlp_retrieval.encoders import Vectors
from nlp_retrieval.retrievers import Hashes, Stack
from nlp_retrieval.systems.hipporag.tables import Synonyms

MOST_SYNONYMS = 100
"""The most synonyms of an entity: the most similar ones."""

SHORTEST = 3
"""A phrase of fewer letters and digits has no synonyms: "it" and "us" are similar to everything."""

_ROUNDING = 1e-4
_ROWS_AT_ONCE = 1024
_OTHERS_AT_ONCE = 16_384
_PAIRS_AT_ONCE = 2**20

_Pairs = tuple[Rows, Rows, NDArray[np.float32]]


def synonyms_of(new: Vectors, new_hashes: Hashes, old: list[tuple[Vectors, Hashes]], threshold: float) -> Synonyms:
    """Find the synonyms of new entities, among themselves and among existing ones."""
    vectors = Stack(*(block for block, _ in old), new)
    hashes = np.concatenate([*(block_hashes for _, block_hashes in old), new_hashes])
    first_new = len(hashes) - len(new_hashes)
    kept: _Pairs = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    waiting, n_waiting = [kept], 0
    for pairs in _near(vectors, first_new, threshold):
        waiting.append(pairs)
        n_waiting += len(pairs[0])
        if n_waiting > max(_PAIRS_AT_ONCE, len(waiting[0][0])):
            waiting, n_waiting = [_best(waiting, hashes)], 0
    sources, targets, cosines = _best(waiting, hashes)
    return Synonyms(hashes[sources], hashes[targets], cosines)


def best_synonyms(sources: Rows, targets: Rows, cosines: NDArray[np.float32], hashes: Rows | Hashes) -> Mask:
    """Return which pairs, each given once by the numbers of two entities, are among the best of either of them."""
    is_best = _among_best(np.r_[sources, targets], hashes[np.r_[targets, sources]], np.r_[cosines, cosines])
    return is_best[: len(sources)] | is_best[len(sources) :]


def _near(vectors: Stack, first_new: int, threshold: float) -> Iterator[_Pairs]:
    """Yield each pair of a new entity and one before it, by their numbers."""
    everything = np.arange(len(vectors))
    with progress("hipporag: finding synonyms", len(vectors) - first_new) as advance:
        for first in range(first_new, len(vectors), _ROWS_AT_ONCE):
            numbers = everything[first : first + _ROWS_AT_ONCE]
            part = _directions(vectors.at(numbers))
            for start in range(0, int(numbers[-1]) + 1, _OTHERS_AT_ONCE):
                others = everything[start : start + _OTHERS_AT_ONCE]
                block = _directions(vectors.at(others))
                rows, columns = np.nonzero(part @ block.T >= threshold - _ROUNDING)
                before = others[columns] < numbers[rows]
                rows, columns = rows[before], columns[before]
                cosines = np.empty(len(rows), np.float32)
                for piece in range(0, len(rows), _OTHERS_AT_ONCE):
                    here = slice(piece, piece + _OTHERS_AT_ONCE)
                    # not BLAS: each sum separately, in one order, so that a pair's is the same in any block
                    np.einsum("ij,ij->i", part[rows[here]], block[columns[here]], out=cosines[here])
                near = cosines >= np.float32(threshold)
                yield numbers[rows[near]], others[columns[near]], cosines[near]
            advance(len(numbers))


def _best(batches: list[_Pairs], hashes: Hashes) -> _Pairs:
    """Keep the pairs that are among the best of their source, or of their target."""
    sources, targets, cosines = (np.concatenate(columns) for columns in zip(*batches, strict=True))
    kept = best_synonyms(sources, targets, cosines, hashes)
    return sources[kept], targets[kept], cosines[kept]


def _among_best(owner: Rows, other: Rows | Hashes, cosines: NDArray[np.float32]) -> Mask:
    """Return which pairs are among the best of their owner; of equal ones those with the lowest hash."""
    counts = np.bincount(owner)
    if counts.max(initial=0) <= MOST_SYNONYMS:
        return np.ones(len(owner), np.bool_)
    order = np.lexsort((other, -cosines, owner))
    position = np.arange(len(order)) - (np.cumsum(counts) - counts)[owner[order]]
    kept = np.zeros(len(owner), np.bool_)
    kept[order[position < MOST_SYNONYMS]] = True
    return kept


def _directions(vectors: Vectors) -> Vectors:
    """Return vectors scaled to length 1; those of length 0 stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return scaled
