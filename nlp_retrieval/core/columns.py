"""Columns in ``.npy`` files, memory-mapped, and the checks that a reader makes before it follows the numbers in them.

A file is exactly as long as its header says, and holds no objects; nothing is unpickled. What cannot be read so, and
numbers that lead outside, are a typed error naming the file, whatever the checksums said.
"""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.errors import IndexDamagedError

CURE = "restore it from a copy, or index again with replace=True"

_UNREADABLE = (OSError, ValueError, SyntaxError, TokenError, TypeError, OverflowError, MemoryError, RecursionError)
"""What numpy raises on a header that is damaged: it is read by Python's own parser."""


def mapped(path: Path, dtype: type[np.generic], shape: tuple[int | None, ...] = (None,)) -> NDArray[Any]:
    """Map a column that ``numpy.save`` wrote.

    Args:
        path: of the file, whose checksum was compared.
        dtype: what it must hold.
        shape: what it must have; None stands for any length.

    Raises:
        IndexDamagedError: the file is missing, of another length than it says, or holds something else.
    """
    try:
        column = np.lib.format.open_memmap(path, mode="r")
        size = path.stat().st_size
    except _UNREADABLE as error:
        raise IndexDamagedError(f"{path} is missing or damaged ({error}); {CURE}") from error
    fits = len(column.shape) == len(shape) and all(n in (None, found) for n, found in zip(shape, column.shape, strict=True))
    if not fits or column.dtype != dtype or not column.flags.c_contiguous:
        expected = " x ".join("any" if n is None else str(n) for n in shape)
        raise IndexDamagedError(
            f"{path} is damaged: it holds {column.dtype} of shape {column.shape}, not {np.dtype(dtype)} of {expected}; {CURE}"
        )
    stated = column.offset + column.nbytes
    if size != stated:
        raise IndexDamagedError(f"{path} is damaged: it has {size} bytes, its header says {stated}; {CURE}")
    return np.asarray(column)  # the same map without the slow indexing of np.memmap


def check_offsets(path: Path, offsets: NDArray[np.integer], end: int) -> None:
    """Check that offsets begin at 0, never fall, and stop at ``end``.

    Raises:
        IndexDamagedError: they do not; the message names ``path``.
    """
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, -1)
    if (first, last) != (0, end):
        raise IndexDamagedError(f"{path} is damaged: it runs from {first} to {last}, not from 0 to {end}; {CURE}")
    if (offsets[1:] < offsets[:-1]).any():
        raise IndexDamagedError(f"{path} is damaged: it does not rise from 0 to {end}; {CURE}")


def check_numbers(path: Path, numbers: NDArray[np.integer], end: int) -> None:
    """Check that numbers of something are at least 0 and below ``end``.

    Raises:
        IndexDamagedError: one is not; the message names ``path``.
    """
    if numbers.size and (numbers.min() < 0 or numbers.max() >= end):
        raise IndexDamagedError(f"{path} is damaged: it names {numbers.min()}..{numbers.max()} of {end}; {CURE}")
