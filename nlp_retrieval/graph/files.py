"""Columns in ``.npy`` files, memory-mapped: what every structure of this room lies in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.errors import IndexDamagedError

CURE = "restore it from a copy, or index again with replace=True"


def mapped(path: Path, dtype: type[np.generic], shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Map a column that ``numpy.save`` wrote.

    Args:
        path: of the file, whose checksum was compared.
        dtype: what it must hold.
        shape: what it must have; by default any one-dimensional.

    Raises:
        IndexDamagedError: the file is missing, cut off, or holds something else.
    """
    try:
        column = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise IndexDamagedError(f"{path} is missing or damaged ({error}); {CURE}") from error
    if column.dtype != dtype or column.ndim != 1 if shape is None else column.shape != shape or column.dtype != dtype:
        expected = "a list" if shape is None else f"shape {shape}"
        raise IndexDamagedError(
            f"{path} is damaged: it holds {column.dtype} of shape {column.shape}, not {np.dtype(dtype)} of {expected}; {CURE}"
        )
    return np.asarray(column)  # the same map without the slow indexing of np.memmap
