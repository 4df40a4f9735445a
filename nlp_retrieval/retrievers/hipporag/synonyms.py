"""Entities that mean the same: pairs of phrases whose vectors are similar, found by range search.

Blocks of vectors are compared with blocks of vectors, so memory holds a block of products and the pairs found, never a matrix
of all entities; and each entity keeps its :data:`MOST_SYNONYMS` best, so the pairs found never grow faster than the entities.
Entities that join an index are compared with all, those that are there are not compared again. Whether a pair counts, and
its similarity, depends on the two vectors alone, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows
from nlp_retrieval.core.progress import progress
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.graph.store.hashed_rows import Hashes
from nlp_retrieval.retrievers.hipporag.tables import Synonyms

MOST_SYNONYMS = 100
"""How many synonyms of an entity count at most: those most similar."""

SHORTEST = 3
"""A phrase of fewer letters and digits has no synonyms: "it" and "us" are similar to everything."""

_ROUNDING = 1e-4
_ROWS_AT_ONCE = 1024
_OTHERS_AT_ONCE = 16_384

_Pairs = tuple[Rows, Rows, NDArray[np.float32]]


def synonyms_of(
    new: Vectors, new_hashes: Hashes, old: list[tuple[Vectors, Hashes]], threshold: float, most: int = MOST_SYNONYMS
) -> Synonyms:
    """Find the synonyms of new entities, among themselves and among those that are there.

    Args:
        new: ``[entities, dimension]``.
        new_hashes: ``[entities]``, what they are known by.
        old: vectors and hashes of entities that are there, in any number of blocks.
        threshold: the least cosine, above 0.
        most: how many per entity.

    Returns:
        Each pair that is among the best of either of its two entities, with a new entity as source.
    """
    blocks = [*old, (new, new_hashes)]
    hashes = np.concatenate([block_hashes for _, block_hashes in blocks])
    first_new = len(hashes) - len(new_hashes)
    kept: _Pairs = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    with progress("hipporag: looking for synonyms", len(new)) as advance:
        for start in range(0, len(new), _ROWS_AT_ONCE):
            part = _directions(new[start : start + _ROWS_AT_ONCE])
            for found in _near(part, start + first_new, blocks, threshold):
                kept = _best(kept, found, hashes, most)
            advance(len(part))
    sources, targets, cosines = kept
    once = (targets < first_new) | (sources < targets)  # pairs of new entities were found from both sides
    return Synonyms(hashes[sources[once]], hashes[targets[once]], cosines[once])


def best_synonyms(sources: Rows, targets: Rows, cosines: NDArray[np.float32], most: int = MOST_SYNONYMS) -> Mask:
    """Say which pairs are among the best of either of their two entities.

    Args:
        sources: ``[pairs]``, numbers of entities that ascend with their hashes; each pair occurs once.
        targets: ``[pairs]``, the other entity of each.
        cosines: ``[pairs]``.
        most: how many per entity.
    """
    both = _foremost(np.r_[sources, targets], np.r_[targets, sources], np.r_[cosines, cosines], most)
    return both[: len(sources)] | both[len(sources) :]


def _near(part: Vectors, first: int, blocks: list[tuple[Vectors, Hashes]], threshold: float) -> Iterator[_Pairs]:
    """Yield the pairs of some entities and all, but themselves, as numbers that count through the blocks."""
    begin = 0
    for vectors, _ in blocks:
        for start in range(0, len(vectors), _OTHERS_AT_ONCE):
            others = _directions(vectors[start : start + _OTHERS_AT_ONCE])
            rows, columns = np.nonzero(part @ others.T >= threshold - _ROUNDING)
            sources, targets = rows + first, columns + begin + start
            different = sources != targets
            rows, columns = rows[different], columns[different]
            cosines = np.empty(len(rows), np.float32)
            for piece in range(0, len(rows), _OTHERS_AT_ONCE):
                here = slice(piece, piece + _OTHERS_AT_ONCE)
                # not BLAS: each sum by itself, in one order, so that a pair's is the same in any block
                np.einsum("ij,ij->i", part[rows[here]], others[columns[here]], out=cosines[here])
            near = cosines >= np.float32(threshold)
            yield sources[different][near], targets[different][near], cosines[near]
        begin += len(vectors)


def _best(pairs: _Pairs, more: _Pairs, hashes: Hashes, most: int) -> _Pairs:
    """Of pairs and further ones, keep those that are among the best of their source, or of their target."""
    sources, targets = np.r_[pairs[0], more[0]], np.r_[pairs[1], more[1]]
    cosines = np.r_[pairs[2], more[2]]
    kept = _foremost(sources, hashes[targets], cosines, most) | _foremost(targets, hashes[sources], cosines, most)
    return sources[kept], targets[kept], cosines[kept]


def _foremost(owner: Rows, other: Rows | Hashes, cosines: NDArray[np.float32], most: int) -> Mask:
    """Which pairs are among the best of their owner; of equal ones those with the lowest hash."""
    counts = np.bincount(owner)
    if counts.max(initial=0) <= most:
        return np.ones(len(owner), np.bool_)
    order = np.lexsort((other, -cosines, owner))
    place = np.arange(len(order)) - (np.cumsum(counts) - counts)[owner[order]]
    kept = np.zeros(len(owner), np.bool_)
    kept[order[place < most]] = True
    return kept


def _directions(vectors: Vectors) -> Vectors:
    """Vectors scaled to length 1; those of length 0 stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    scaled: Vectors = (vectors / np.where(lengths > 0, lengths, 1.0)[:, None]).astype(np.float32)
    return scaled
