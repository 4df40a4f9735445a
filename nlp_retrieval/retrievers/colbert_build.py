"""The passes that build a ColBERT index, in memory for a sample and a batch.

Passages are encoded once. Their tokens stand first in ``tokens.npy`` as float16, as a stream. An exact index keeps this
file; for a compressed one it is scratch: a sample of it trains the codec, a second pass over it writes codes and residuals,
and it is deleted. So building takes 2 bytes on disk per token and dimension (256 bytes a token at 128 dimensions) for as
long as it lasts, and encodes, by far the dearest step, once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.progress import progress
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert_codec import Compressor, code_type, packed_size

TOKENS = "tokens.npy"
TOKENS_AT_ONCE = 16_384
PAIRS_AT_ONCE = 4 * 2**20


class Stream:
    """A ``.npy`` file that is written row by row; a map that is written to kills the process where the disk is full.

    Args:
        path: of the file.
        dtype: of the array.
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
                self._write_header()  # as long as the first, for numpy leaves room for the number of rows to grow

    def write(self, rows: NDArray[np.generic]) -> None:
        """Append rows."""
        self._file.write(np.ascontiguousarray(rows, self._dtype).data)
        self.rows += len(rows)

    def _write_header(self) -> None:
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self._file, header | {"shape": (self.rows, *self._columns)})


def read_blocks(path: Path, size: int) -> Iterator[NDArray[np.generic]]:
    """Yield the rows of a ``.npy`` file, ``size`` at a time; of a file without rows, one block without rows.

    They are read, not mapped, so that they do not stay in memory.
    """
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        width = int(np.prod(shape[1:], dtype=np.int64))
        for first in range(0, max(shape[0], 1), size):
            n_rows = min(size, shape[0] - first)
            yield np.fromfile(file, dtype, n_rows * width).reshape(n_rows, *shape[1:])


def sample_tokens(folder: Path, n_tokens: int, wanted: int, seed: int) -> Vectors:
    """Draw tokens evenly from all over ``tokens.npy``, in random order, ``[the lower of the numbers, dimension]``."""
    draw = np.random.default_rng(seed)
    wanted = min(wanted, n_tokens)
    parts, first = [], 0
    for block in read_blocks(folder / TOKENS, TOKENS_AT_ONCE):
        last = first + len(block)
        share = last * wanted // max(n_tokens, 1) - first * wanted // max(n_tokens, 1)
        parts.append(block[np.sort(draw.choice(len(block), share, replace=False))])
        first = last
    sample = np.concatenate(parts)
    found: Vectors = sample[draw.permutation(len(sample))].astype(np.float32)
    return found


def write_compressed(folder: Path, compressor: Compressor, offsets: Rows) -> int:
    """Compress ``tokens.npy``, and write the codec, the compressed tokens and inverted lists.

    Args:
        folder: of the index.
        compressor: what was trained on a sample.
        offsets: ``[passages + 1]``, where the tokens of each passage begin.

    Returns:
        The length of the inverted lists.
    """
    codec = compressor.codec
    n_centroids, dimension = codec.centroids.shape
    np.save(folder / "centroids.npy", codec.centroids, allow_pickle=False)
    np.save(folder / "weights.npy", codec.weights, allow_pickle=False)
    counts = np.zeros(n_centroids, np.int64)
    with (
        Stream(folder / "codes.npy", code_type(n_centroids)) as codes,
        Stream(folder / "residuals.npy", np.uint8, packed_size(dimension, codec.bits)) as residuals,
        progress("colbert: compressing", int(offsets[-1])) as advance,
    ):
        for tokens in read_blocks(folder / TOKENS, TOKENS_AT_ONCE):
            numbers, packed = compressor.compress(tokens.astype(np.float32))
            counts += np.bincount(numbers, minlength=n_centroids)
            codes.write(numbers)
            residuals.write(packed)
            advance(len(tokens))
    return _write_lists(folder, counts, offsets)


def _write_lists(folder: Path, counts: NDArray[np.int64], offsets: Rows) -> int:
    """Write the passages of each centroid, in as many passes over the codes as hold a few million pairs at once."""
    lengths = np.zeros(len(counts), np.int64)
    ends = np.cumsum(counts)
    with Stream(folder / "list_rows.npy", np.int32) as rows:
        begin = 0
        while begin < len(counts):
            done = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")))
            centroids, passages = _pairs(folder, begin, end, offsets)
            lengths[begin:end] = np.bincount(centroids - begin, minlength=end - begin)
            rows.write(passages)
            begin = end
    np.save(folder / "list_offsets.npy", np.append(0, np.cumsum(lengths)), allow_pickle=False)
    return rows.rows


def _pairs(folder: Path, begin: int, end: int, offsets: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct pairs of a centroid in ``begin:end`` and a passage that holds a token of it, in order."""
    found, first = [np.zeros(0, np.int64)], 0
    n_passages = len(offsets) - 1
    for block in read_blocks(folder / "codes.npy", 16 * TOKENS_AT_ONCE):
        codes = block.astype(np.int64)
        here = np.flatnonzero((codes >= begin) & (codes < end))
        passages = np.searchsorted(offsets, here + first, side="right") - 1
        found.append(np.unique(codes[here] * n_passages + passages))
        first += len(codes)
    pairs = np.unique(np.concatenate(found))
    return pairs // n_passages, pairs % n_passages
