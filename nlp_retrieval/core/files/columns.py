"""Columns in ``.npy`` files, memory-mapped, and the checks that a reader makes before it follows the numbers in them.

A file is exactly as long as its header says, and holds no objects; nothing is unpickled. What cannot be read so, and
numbers that lead outside, are a typed error naming the file, whatever the checksums said.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.files.limits import enough_files
from nlp_retrieval.errors import IndexDamagedError

CURE = "restore it from a copy, or index again with replace=True"

_FORM = re.compile(
    rb"\{'descr': '([<>|=]?[a-zA-Z][0-9]{1,4})', 'fortran_order': False, 'shape': "
    rb"\(((?:[0-9]{1,18},)?|[0-9]{1,18}(?:, [0-9]{1,18})+)\), \} *\n"
)


def damaged(path: Path, found: str) -> IndexDamagedError:
    """Return the error to raise for a file that is not what was written."""
    return IndexDamagedError(f"{path} is damaged: {found}; {CURE}")


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
        with enough_files(path), path.open("rb") as file:
            kind, found, begin = _header(file)
            size = file.seek(0, 2)
    except (OSError, ValueError) as error:
        raise IndexDamagedError(f"{path} is missing or damaged ({error}); {CURE}") from error
    fits = len(found) == len(shape) and all(n in (None, one) for n, one in zip(shape, found, strict=True))
    if not fits or kind != np.dtype(dtype).str:
        expected = " x ".join("any" if n is None else str(n) for n in shape)
        raise damaged(path, f"it holds {kind} of shape {found}, not {np.dtype(dtype).str} of {expected}")
    stated = begin + math.prod(found) * np.dtype(dtype).itemsize
    if size != stated:
        raise damaged(path, f"it has {size} bytes, its header says {stated}")
    try:
        with enough_files(path):
            column = np.memmap(path, dtype, "r", begin, found)
    except (OSError, ValueError) as error:
        raise IndexDamagedError(f"{path} cannot be mapped ({error}); {CURE}") from error
    return np.asarray(column)  # the same map without the slow indexing of np.memmap


def _header(file: BinaryIO) -> tuple[str, tuple[int, ...], int]:
    """Return what an array's file says of it, and where its numbers begin.

    Numpy's own reader has Python parse the header; this one takes the form that numpy writes, and no other.
    """
    start = file.read(10)
    if len(start) < 10 or start[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("it does not begin as an array of numpy does")
    length = int.from_bytes(start[8:], "little")
    told = _FORM.fullmatch(file.read(length))
    if told is None or (10 + length) % 64:
        raise ValueError("its header is none that numpy writes")
    return told[1].decode(), tuple(int(one) for one in told[2].split(b",") if one.strip()), 10 + length


def check_offsets(path: Path, offsets: NDArray[np.integer], end: int) -> None:
    """Check that offsets begin at 0, never fall, and stop at ``end``.

    Raises:
        IndexDamagedError: they do not; the message names ``path``.
    """
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, -1)
    if (first, last) != (0, end):
        raise damaged(path, f"it runs from {first} to {last}, not from 0 to {end}")
    if (offsets[1:] < offsets[:-1]).any():
        raise damaged(path, f"it does not rise from 0 to {end}")


def check_numbers(path: Path, numbers: NDArray[np.integer], end: int) -> None:
    """Check that numbers of something are at least 0 and below ``end``.

    Raises:
        IndexDamagedError: one is not; the message names ``path``.
    """
    if numbers.size and (numbers.min() < 0 or numbers.max() >= end):
        raise damaged(path, f"it names {numbers.min()}..{numbers.max()} of {end}")
