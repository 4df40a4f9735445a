"""Columns that are written row by row and read in blocks, so that only one block is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Stream:
    """A ``.npy`` file that is written row by row, not mapped: on a full disk, writing to a map would kill the process.

    Args:
        path: path of the file.
        dtype: dtype of the array.
        columns: the shape of a row.
    """

    def __init__(self, path: Path, dtype: DTypeLike, *columns: int) -> None:
        self._path, self._dtype, self._columns = path, np.dtype(dtype), columns
        self.rows = 0

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        self._write_header()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._file as file:
            if kind is None:
                file.seek(0)
                self._write_header()  # as long as the first one, because numpy leaves room for the number of rows

    def write(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        self._file.write(np.ascontiguousarray(rows, self._dtype).data)
        self.rows += len(rows)

    def _write_header(self) -> None:
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self._file, header | {"shape": (self.rows, *self._columns)})


def read_blocks(path: Path, size: int) -> Iterator[NDArray[Any]]:
    """Yield the rows of a ``.npy`` file, ``size`` at a time; for a file without rows, one empty block.

    They are read, not mapped, so that they do not stay in memory.
    """
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        width = int(np.prod(shape[1:], dtype=np.int64))
        for first in range(0, max(shape[0], 1), size):
            n_rows = min(size, shape[0] - first)
            yield np.fromfile(file, dtype, n_rows * width).reshape(n_rows, *shape[1:])
