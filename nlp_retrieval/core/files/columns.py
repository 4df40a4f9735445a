"""Columns in ``.npy`` files, memory-mapped, and checks of their numbers before they are used as indices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nlp_retrieval.core.files.opening import MAX_BYTES, explain_file_limit, open_regular, parse_json
from nlp_retrieval.errors import IndexDamagedError, IndexStateError

CURE = "restore it from a copy, or index again with replace=True"
"""The advice of an error about a damaged file of an index."""


def damaged(path: Path, problem: str) -> IndexDamagedError:
    """Return the error for a file with unexpected content.

    Examples:
        >>> damaged(Path("words.json"), "it is not a list")
        IndexDamagedError('words.json is damaged: it is not a list; restore it from a copy, or index again with replace=True')
    """
    return IndexDamagedError(f"{path} is damaged: {problem}; {CURE}")


def unreadable(path: Path, error: OSError) -> IndexDamagedError:
    """Return the error for a file that cannot be opened; a new index does not help where permission is missing."""
    cure = "make it readable for this user" if isinstance(error, PermissionError) else CURE
    return IndexDamagedError(f"{path} is missing or unreadable ({error.strerror or error}); {cure}")


def mapped(path: Path, dtype: type[np.generic], shape: tuple[int | None, ...] = (None,)) -> NDArray[Any]:
    """Map a column that ``numpy.save`` wrote; IndexDamagedError if it has another dtype or shape, where None is any length.

    Examples:
        >>> np.save("scores.npy", np.array([0.5, 1.0]))
        >>> mapped(Path("scores.npy"), np.float64).tolist()
        [0.5, 1.0]
    """
    try:
        with explain_file_limit(path), open_regular(path) as file, np.errstate(over="raise"):
            if b"L" in file.readline(256):  # numpy would read it, with a warning
                raise TypeError("its header is that of Python 2")  # noqa: TRY301
            size = file.seek(0, 2)
            column = np.load(path, "r", allow_pickle=False)
            if not isinstance(column, np.memmap):
                raise TypeError("it is not one column")  # noqa: TRY301
    except IndexStateError:
        raise
    except OSError as error:
        raise unreadable(path, error) from error
    except Exception as error:  # whatever numpy raises for a header that is not its own
        raise damaged(path, str(error)[:200]) from error
    fits = column.ndim == len(shape) and all(wanted in (None, n) for wanted, n in zip(shape, column.shape, strict=True))
    if not fits or column.dtype != np.dtype(dtype) or not column.flags.c_contiguous:
        expected = " x ".join("any" if n is None else str(n) for n in shape)
        held = f"{column.dtype.str} of shape {column.shape}{'' if column.flags.c_contiguous else ' by column'}"
        raise damaged(path, f"it holds {held}, not {np.dtype(dtype).str} of {expected}")
    if size != column.offset + column.nbytes:
        raise damaged(path, f"it has {size} bytes, its header says {column.offset + column.nbytes}")
    return np.asarray(column)  # the same map without the slow indexing of np.memmap


def check_offsets(path: Path, offsets: NDArray[np.integer], end: int) -> None:
    """Raise an :class:`IndexDamagedError` unless offsets begin at 0, never decrease, and stop at ``end``.

    Examples:
        >>> check_offsets(Path("offsets.npy"), np.array([0, 2, 2]), end=2)
    """
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != end or (offsets[1:] < offsets[:-1]).any():
        raise damaged(path, f"its numbers do not ascend from 0 to {end}")


def check_numbers(path: Path, numbers: NDArray[np.integer], end: int) -> None:
    """Raise an :class:`IndexDamagedError` unless numbers are at least 0 and below ``end``.

    Examples:
        >>> check_numbers(Path("rows.npy"), np.array([0, 4]), end=5)
    """
    if numbers.size and (numbers.min() < 0 or numbers.max() >= end):
        raise damaged(path, f"it names {numbers.min()}..{numbers.max()} of {end}")


def read_texts(path: Path) -> list[str]:
    """Return the texts of a file that holds them as a list in JSON; IndexDamagedError for anything else."""
    try:
        with explain_file_limit(path), open_regular(path) as file:
            texts = parse_json(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        raise damaged(path, str(error)) from error
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise damaged(path, "it is not a list of texts")
    return texts


class Stream:
    """A ``.npy`` file of rows of shape ``columns``, not mapped: on a full disk, writing to a map would kill the process.

    Examples:
        >>> with Stream(Path("lengths.npy"), np.int32) as stream:
        ...     stream.write(np.array([3, 1], np.int32))
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
    """Yield the rows of a ``.npy`` file, ``size`` at a time, read and not mapped; for a file without rows, one empty block."""
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        width = int(np.prod(shape[1:], dtype=np.int64))
        for first in range(0, max(shape[0], 1), size):
            n_rows = min(size, shape[0] - first)
            yield np.fromfile(file, dtype, n_rows * width).reshape(n_rows, *shape[1:])
