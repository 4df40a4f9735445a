"""The passages most like a passage among those before it, by the cosine of their vectors.

Each passage looks back only. So a pair is considered once, and passages that join an index find exactly what they would have
found in an index built at once. Memory is bounded by blocks; the work is that of comparing all that may be neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, Scores

__all__ = ["Pairs", "neighbours_before"]

_ROWS, _BEFORE = 256, 4096
_DECIMALS = 6  # further ones are noise of rounding, which must decide nothing

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
    """Return the nearest neighbours of each row among the rows before it.

    Args:
        rows: ascending.
        others: which rows may be neighbours, ascending.
        vectors_at: the vectors of rows, of any length.
        most: how many neighbours at most.
        least: the least cosine.
        apart: by row, a number; only rows of other numbers are neighbours. None where all may be.
    """
    if most == 0:
        return Pairs.joined([])
    return Pairs.joined(
        [_of_block(rows[first : first + _ROWS], others, vectors_at, most, least, apart) for first in range(0, len(rows), _ROWS)]
    )


def _of_block(
    rows: Rows, others: Rows, vectors_at: VectorsAt, most: int, least: float, apart: NDArray[np.int64] | None
) -> Pairs:
    queries = _unit(vectors_at(rows))
    best = Pairs.joined([])
    others = others[: np.searchsorted(others, rows[-1])]
    for first in range(0, len(others), _BEFORE):
        block = others[first : first + _BEFORE]
        cosines = (queries @ _unit(vectors_at(block)).T).round(_DECIMALS)
        allowed = (block[None] < rows[:, None]) & (cosines >= least)
        if apart is not None:
            allowed &= apart[block][None] != apart[rows][:, None]
        number, place = np.nonzero(allowed)
        found = Pairs.joined([best, Pairs(rows[number], block[place], cosines[number, place])])
        best = _foremost(found, most)
    return best


def _foremost(pairs: Pairs, most: int) -> Pairs:
    order = np.lexsort((pairs.before, -pairs.similarities, pairs.rows))
    rows = pairs.rows[order]
    begins = np.searchsorted(rows, rows)
    kept = order[np.arange(len(order)) - begins < most]
    return Pairs(pairs.rows[kept], pairs.before[kept], pairs.similarities[kept])


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Vectors of length 1 in double precision, in which block sizes change no decimal that counts."""
    wide = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return np.asarray(wide / np.where(lengths > 0, lengths, 1.0)[:, None])
