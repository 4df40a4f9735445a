"""Nearest neighbours of a passage among earlier ones, by the cosine of their vectors.

Each passage is compared only with earlier ones, so a pair is considered once. Up to 200 million pairs (20,000 passages among
themselves) are all compared, and added passages get exactly the neighbours that they would have in an index built at once. With
more, passages are grouped in cells of about 512, around evenly spaced passages, and each is compared only with those of its 16
nearest cells: the work is linear in the number of passages, and a few neighbours are missed. Blocks bound the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Rows, Scores

_ROWS, _BEFORE = 256, 4096
_ALL_PAIRS = 20_000**2 // 2
_CELL, _NEAREST_CELLS = 512, 16
_KEPT_PAIRS = 2**20
_DECIMALS = 6  # further ones are rounding noise, which must not decide

VectorsAt = Callable[[Rows], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of passages.

    Args:
        rows: the later of each, ascending.
        before: the earlier of each; of one row the most similar first, ties by row.
        similarities: their cosines.
    """

    rows: Rows
    before: Rows
    similarities: Scores

    @classmethod
    def joined(cls, parts: list[Pairs]) -> Pairs:
        """Put lists of pairs one after another."""
        none = np.zeros(0, np.int64)
        return cls(
            np.concatenate([none, *(part.rows for part in parts)]),
            np.concatenate([none, *(part.before for part in parts)]),
            np.concatenate([np.zeros(0), *(part.similarities for part in parts)]),
        )


def neighbours_before(
    rows: Rows, others: Rows, vectors_at: VectorsAt, most: int, least: float, apart: NDArray[np.int64] | None = None
) -> Pairs:
    """Return the nearest neighbours of each row among earlier rows; nearly all of them if there are very many pairs.

    Args:
        rows: ascending.
        others: rows that may be neighbours, ascending.
        vectors_at: the vectors of rows, of any norm.
        most: the most neighbours.
        least: the least cosine.
        apart: by row, a number; only rows with different numbers are neighbours. None if all may be.
    """
    if most == 0:
        return Pairs.joined([])
    before = np.searchsorted(others, rows)
    with_cells = (len(rows) + len(others)) * (len(others) // _CELL) + len(rows) * _CELL * _NEAREST_CELLS
    if before.sum() > max(_ALL_PAIRS, with_cells):
        return _in_cells(rows, others, vectors_at, most, least, apart)
    parts = []
    for first in range(0, len(rows), _ROWS):
        part = rows[first : first + _ROWS]
        queries, best = _unit(vectors_at(part)), Pairs.joined([])
        for block in _blocks(others[: before[min(first + _ROWS, len(rows)) - 1]], _BEFORE):
            near = _near(part, queries, block, _unit(vectors_at(block)), np.full(len(part), least), apart)
            best = _top_of_row([best, near], most)
        parts.append(best)
    return Pairs.joined(parts)


def _in_cells(
    rows: Rows, others: Rows, vectors_at: VectorsAt, most: int, least: float, apart: NDArray[np.int64] | None
) -> Pairs:
    """Return the same, comparing each row only with those of its nearest cells."""
    centres = _unit(vectors_at(others[_CELL // 2 :: _CELL]))
    centres = _means(others, _nearest(others, vectors_at, centres, 1)[:, 0], vectors_at, centres)
    cells = _nearest(others, vectors_at, centres, 1)[:, 0]
    order = np.argsort(cells, kind="stable")
    bounds = np.searchsorted(cells[order], np.arange(len(centres) + 1))
    asked = _nearest(rows, vectors_at, centres, _NEAREST_CELLS).ravel()
    asking = np.argsort(asked, kind="stable")
    asking_bounds = np.searchsorted(asked[asking], np.arange(len(centres) + 1))
    floors = np.full(len(rows), least)
    best, waiting, n_waiting = Pairs.joined([]), list[Pairs](), 0
    for cell in range(len(centres)):
        members = others[order[bounds[cell] : bounds[cell + 1]]]
        units = _unit(vectors_at(members))
        for places in _blocks(asking[asking_bounds[cell] : asking_bounds[cell + 1]] // _NEAREST_CELLS, _BEFORE):
            part = rows[places]
            waiting.append(_near(part, _unit(vectors_at(part)), members, units, floors[places], apart))
            n_waiting += len(waiting[-1].rows)
        if n_waiting > max(_KEPT_PAIRS, len(best.rows)) or cell == len(centres) - 1:
            best, waiting, n_waiting = _top_of_row([best, *waiting], most), [], 0
            ends = np.flatnonzero(np.diff(best.rows, append=-1))
            full = ends[np.diff(ends, prepend=-1) == most]
            floors[np.searchsorted(rows, best.rows[full])] = best.similarities[full]
    return best


def _nearest(rows: Rows, vectors_at: VectorsAt, centres: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return the n centres nearest to each row, ``[rows, n]``, in no order."""
    n = min(n, len(centres))
    parts = []
    for part in _blocks(rows, _ROWS):
        cosines = (_unit(vectors_at(part)) @ centres.T).round(_DECIMALS)
        parts.append(np.argpartition(-cosines, n - 1, axis=1)[:, :n] if n > 1 else cosines.argmax(axis=1)[:, None])
    return np.concatenate(parts)


def _means(rows: Rows, cells: Rows, vectors_at: VectorsAt, centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of the cells as new centres; those of empty cells stay."""
    sums = np.zeros_like(centres)
    order = np.argsort(cells, kind="stable")
    for part in _blocks(order, _BEFORE):
        inside, first = np.unique(cells[part], return_index=True)
        sums[inside] += np.add.reduceat(_unit(vectors_at(rows[part])), first)
    moved = _unit(sums)
    return np.where((sums != 0).any(axis=1, keepdims=True), moved, centres)


def _near(
    rows: Rows,
    queries: NDArray[np.float64],
    others: Rows,
    units: NDArray[np.float64],
    floors: Scores,
    apart: NDArray[np.int64] | None,
) -> Pairs:
    """Return all pairs of a row and an earlier one with at least the similarity of the row's floor."""
    cosines = (queries @ units.T).round(_DECIMALS)
    allowed = (others[None] < rows[:, None]) & (cosines >= floors[:, None])
    if apart is not None:
        allowed &= apart[others][None] != apart[rows][:, None]
    number, column = np.nonzero(allowed)
    return Pairs(rows[number], others[column], cosines[number, column])


def _blocks(rows: Rows, size: int) -> Iterator[Rows]:
    return (rows[first : first + size] for first in range(0, len(rows), size))


def _top_of_row(parts: list[Pairs], most: int) -> Pairs:
    pairs = Pairs.joined(parts)
    order = np.lexsort((pairs.before, -pairs.similarities, pairs.rows))
    rows = pairs.rows[order]
    begins = np.searchsorted(rows, rows)
    kept = order[np.arange(len(order)) - begins < most]
    return Pairs(pairs.rows[kept], pairs.before[kept], pairs.similarities[kept])


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return vectors of norm 1 in double precision, so that block sizes do not change the decimals used."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return np.asarray(wide / np.where(lengths > 0, lengths, 1.0)[:, None])
