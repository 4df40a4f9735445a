"""The files of a ColBERT index: memory-mapped columns, checked to fit together when they are opened.

Checks go beyond checksums, because compiled code uses the numbers as indices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, Scores
from nlp_retrieval.core.files.columns import CURE, Stream, check_offsets, damaged, mapped, read_blocks
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.colbert.codec import Codec, Codes, Compressor, code_type, packed_size, parts_of

_SETTINGS = "settings.json"


@dataclass(frozen=True)
class Sizes:
    """The content of ``settings.json``: the sizes of all columns.

    Args:
        passages: number of passages.
        tokens: number of tokens.
        dimension: dimension of a token vector.
        bits: bits per dimension of a residual; 0 in an exact index.
        centroids: number of centroids; 0 in an exact index.
        listed: length of the inverted lists.
        projected_from: dimension before the encoder's projection; 0 if it has none.
    """

    passages: int
    tokens: int
    dimension: int
    bits: int
    centroids: int
    listed: int
    projected_from: int


@dataclass(frozen=True)
class Compressed:
    """The columns of a compressed index.

    Args:
        codec: turns codes back into vectors.
        codes: ``[tokens]``, their centroids.
        residuals: ``[tokens, bytes]``.
        list_offsets: ``[centroids + 1]``; the list of centroid c is ``list_rows[list_offsets[c]:list_offsets[c + 1]]``.
        list_rows: for each centroid the passages with a token of it, ascending.
    """

    codec: Codec
    codes: Codes
    residuals: NDArray[np.uint8]
    list_offsets: Rows
    list_rows: NDArray[np.int32]


@dataclass(frozen=True)
class ColbertFiles:
    """An opened index.

    Args:
        sizes: the sizes of all columns.
        offsets: ``[passages + 1]``; passage p has the tokens ``offsets[p]:offsets[p + 1]``.
        projection: the matrix that the encoder must multiply by, or None.
        tokens: ``[tokens, dimension]`` of an exact index, or the columns of a compressed one.
    """

    sizes: Sizes
    offsets: Rows
    projection: Vectors | None
    tokens: NDArray[np.float16] | Compressed


def write_settings(folder: Path, sizes: Sizes) -> None:
    """Write the sizes."""
    (folder / _SETTINGS).write_text(json.dumps(asdict(sizes)), "utf-8")


def write_projection(folder: Path, matrix: Vectors | None) -> int:
    """Write the matrix that the encoder multiplies by; return the dimension before it, 0 if there is none."""
    if matrix is None:
        return 0
    np.save(folder / "projection.npy", matrix, allow_pickle=False)
    return len(matrix)


def open_files(folder: Path) -> ColbertFiles:
    """Open the files of an index.

    Args:
        folder: folder of the index.

    Raises:
        IndexDamagedError: a file is missing, holds something else, or has a number out of range.
    """
    sizes = _read_sizes(folder / _SETTINGS)
    offsets = _offsets(folder / "offsets.npy", sizes.passages, sizes.tokens)
    projection = _open_projection(folder, sizes)
    if not sizes.bits:
        return ColbertFiles(
            sizes, offsets, projection, mapped(folder / "tokens.npy", np.float16, (sizes.tokens, sizes.dimension))
        )
    return ColbertFiles(sizes, offsets, projection, _open_compressed(folder, sizes))


def open_segments(segments: Sequence[SegmentFolder]) -> list[ColbertFiles]:
    """Open all segments of an index, or several adjacent ones.

    Raises:
        IndexDamagedError: a file is missing, holds something else, or contradicts the others.
    """
    opened = [open_files(segment.folder) for segment in segments]
    first = opened[0]
    for segment, files in zip(segments, opened, strict=True):
        path = segment.folder / _SETTINGS
        if files.sizes.passages != len(segment):
            raise damaged(path, f"it says {files.sizes.passages} passages, and {len(segment)} items are in it")
        if (files.sizes.dimension, files.sizes.bits) != (first.sizes.dimension, first.sizes.bits):
            raise damaged(path, f"it says {files.sizes}, and the segment before it {first.sizes}")
        if not _equal(files.projection, first.projection):
            raise damaged(segment.folder / "projection.npy", f"it is not that of {segments[0].folder}")
    return opened


def codec_of(segments: Sequence[SegmentFolder]) -> Codec | None:
    """The codec with the most centroids of all segments with tokens, the first of equals; None if there is none.

    Raises:
        IndexDamagedError: it cannot be read.
    """
    sizes = [_read_sizes(segment.folder / _SETTINGS) for segment in segments]
    best = max(range(len(segments)), key=lambda number: sizes[number].centroids if sizes[number].tokens else 0)
    if not (sizes[best].tokens and sizes[best].bits):
        return None
    return _open_codec(segments[best].folder, sizes[best])


def start_of(segment: SegmentFolder) -> tuple[Sizes, Vectors | None]:
    """The sizes of a segment, and the projection of its tokens.

    Raises:
        IndexDamagedError: they cannot be read.
    """
    sizes = _read_sizes(segment.folder / _SETTINGS)
    return sizes, _open_projection(segment.folder, sizes)


def _open_projection(folder: Path, sizes: Sizes) -> Vectors | None:
    if not sizes.projected_from:
        return None
    projection: Vectors = mapped(folder / "projection.npy", np.float32, (sizes.projected_from, sizes.dimension))
    return projection


def _equal(first: NDArray[np.generic] | None, second: NDArray[np.generic] | None) -> bool:
    return first is second or (first is not None and second is not None and np.array_equal(first, second))


def _open_codec(folder: Path, sizes: Sizes) -> Codec:
    centroids = mapped(folder / "centroids.npy", np.int16, (sizes.centroids, sizes.dimension))
    weights = mapped(folder / "weights.npy", np.float32, (2**sizes.bits,))
    if not np.isfinite(weights).all():
        raise damaged(folder / "weights.npy", "it holds NaN or infinity")
    return Codec(centroids, weights)


def _open_compressed(folder: Path, sizes: Sizes) -> Compressed:
    codec = _open_codec(folder, sizes)
    codes = mapped(folder / "codes.npy", code_type(sizes.centroids), (sizes.tokens,))
    residuals = mapped(folder / "residuals.npy", np.uint8, (sizes.tokens, packed_size(sizes.dimension, sizes.bits)))
    list_offsets = _offsets(folder / "list_offsets.npy", sizes.centroids, sizes.listed)
    list_rows = mapped(folder / "list_rows.npy", np.int32, (sizes.listed,))
    if codes.size and codes.max() >= sizes.centroids:
        raise damaged(folder / "codes.npy", f"it names centroid {codes.max()} of {sizes.centroids}")
    if list_rows.size and (list_rows.min() < 0 or list_rows.max() >= sizes.passages):
        raise damaged(folder / "list_rows.npy", f"it names a passage outside 0..{sizes.passages - 1}")
    return Compressed(codec, codes, residuals, list_offsets, list_rows)


def _offsets(path: Path, count: int, end: int) -> Rows:
    offsets: Rows = mapped(path, np.int64, (count + 1,))
    check_offsets(path, offsets, end)
    return offsets


def _read_sizes(path: Path) -> Sizes:
    try:
        settings = read_json_file(path)
    except (OSError, ValueError) as error:
        raise IndexDamagedError(f"{path} is missing or damaged ({error}); {CURE}") from error
    wanted = {field.name for field in fields(Sizes)}
    if not isinstance(settings, dict) or settings.keys() != wanted or any(type(size) is not int for size in settings.values()):
        raise damaged(path, "it does not hold the sizes of an index")
    sizes = Sizes(**settings)
    compressed = sizes.bits in (2, 4) and sizes.centroids > 0
    plain = sizes.bits == sizes.centroids == sizes.listed == 0
    if min(settings.values()) < 0 or sizes.dimension == 0 or not (compressed or plain):
        raise damaged(path, f"no index has {sizes}")
    return sizes


# The passes that build a ColBERT index; memory holds a sample and a batch.
#
# Passages are encoded once, by far the most expensive step. Their tokens are first streamed to ``tokens.npy`` as float16. An
# exact index keeps this file; for a compressed one it is temporary: a sample of it trains the codec, a second pass over it
# writes codes and residuals, and then it is deleted. So a build temporarily takes 2 bytes on disk per token and dimension
# (256 bytes per token at 128 dimensions).


TOKENS = "tokens.npy"
TOKENS_AT_ONCE = 16_384
PAIRS_AT_ONCE = 2**20


def sample_tokens(folder: Path, n_tokens: int, wanted: int, seed: int) -> Vectors:
    """Draw tokens evenly from all of ``tokens.npy``, in random order, ``[min(n_tokens, wanted), dimension]``."""
    draw = np.random.default_rng(seed)
    wanted = min(wanted, n_tokens)
    parts, first = [], 0
    for block in read_blocks(folder / TOKENS, TOKENS_AT_ONCE):
        last = first + len(block)
        share = last * wanted // max(n_tokens, 1) - first * wanted // max(n_tokens, 1)
        parts.append(block[np.sort(draw.choice(len(block), share, replace=False))])
        first = last
    sample = np.concatenate(parts)
    shuffled: Vectors = sample[draw.permutation(len(sample))].astype(np.float32)
    return shuffled


def write_compressed(folder: Path, compressor: Compressor, offsets: Rows) -> int:
    """Compress ``tokens.npy``, and write the codec, the compressed tokens and inverted lists.

    Args:
        folder: folder of the index.
        compressor: trained on a sample.
        offsets: ``[passages + 1]``, where the tokens of each passage begin.

    Returns:
        The length of the inverted lists.
    """
    codec = compressor.codec
    n_centroids, dimension = codec.centroids.shape
    write_codec(folder, codec)
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
    return write_lists(folder, counts, offsets)


def write_codec(folder: Path, codec: Codec) -> None:
    """Write the codec, which turns codes back into vectors."""
    np.save(folder / "centroids.npy", codec.centroids, allow_pickle=False)
    np.save(folder / "weights.npy", codec.weights, allow_pickle=False)


def write_lists(folder: Path, counts: NDArray[np.int64], offsets: Rows) -> int:
    """Write the passages of each centroid, in several passes over the codes, each with about a million pairs in memory.

    Args:
        folder: folder of the index, which holds the codes.
        counts: ``[centroids]``, how many tokens have each.
        offsets: ``[passages + 1]``, where the tokens of each passage begin.

    Returns:
        The length of the inverted lists.
    """
    lengths = np.zeros(len(counts), np.int64)
    ends = np.cumsum(counts)
    with Stream(folder / "list_rows.npy", np.int32) as rows:
        begin = 0
        while begin < len(counts):
            before = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, before + PAIRS_AT_ONCE, side="right")))
            centroids, passages = _pairs(folder, begin, end, offsets)
            lengths[begin:end] = np.bincount(centroids - begin, minlength=end - begin)
            rows.write(passages)
            begin = end
    np.save(folder / "list_offsets.npy", np.append(0, np.cumsum(lengths)), allow_pickle=False)
    return rows.rows


def _pairs(folder: Path, begin: int, end: int, offsets: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct pairs of a centroid in ``begin:end`` and a passage with a token of it, in order."""
    parts, first = [np.zeros(0, np.int64)], 0
    n_passages = len(offsets) - 1
    for block in read_blocks(folder / "codes.npy", 16 * TOKENS_AT_ONCE):
        codes = block.astype(np.int64)
        positions = np.flatnonzero((codes >= begin) & (codes < end))
        passages = np.searchsorted(offsets, positions + first, side="right") - 1
        parts.append(np.unique(codes[positions] * n_passages + passages))
        first += len(codes)
    pairs = np.unique(np.concatenate(parts))
    return pairs // n_passages, pairs % n_passages


# The steps of one query, divided among threads by the number of tokens they read; results do not depend on the division.


_WORTH_A_THREAD = 4096  # tokens; handing work to a thread costs as much as some hundred


class Steps(Protocol):
    """The inner loops, in numpy or compiled; see :mod:`nlp_retrieval.retrievers.colbert.steps`."""

    def centroid_scores(self, query: Vectors, centroids: Vectors, scores: Vectors) -> None: ...

    def closest_centroids(self, scores: Vectors, nprobe: int, probed: Mask) -> None: ...

    def close_centroids(self, scores: Vectors, least: np.float32, close: Mask) -> None: ...

    def interaction(self, scores: Vectors, kept: Mask, codes: Codes, offsets: Rows, rows: Rows, sums: Scores) -> None: ...

    def maxsim(
        self,
        query: Vectors,
        centroids: Vectors,
        table: Vectors,
        codes: Codes,
        residuals: NDArray[np.uint8],
        offsets: Rows,
        rows: Rows,
        sums: Scores,
    ) -> None: ...


class DividedSteps:
    """Runs steps, each in as many threads as pay off.

    Args:
        steps: the inner loops.
        threads: run all parts except the first; None for one thread.
        count: how many threads to use, the calling one counted.
    """

    def __init__(self, steps: Steps, threads: ThreadPoolExecutor | None = None, count: int = 1) -> None:
        self.steps = steps
        self._threads = threads
        self._count = count

    def centroid_scores(self, query: Vectors, centroids: Vectors) -> Vectors:
        """Return ``[centroids, query tokens]``, their inner products."""
        scores = np.empty((len(centroids), query.shape[1]), np.float32)
        numbers = np.arange(len(centroids) + 1)
        self._run(lambda part: self.steps.centroid_scores(query, centroids[part], scores[part]), numbers[:-1], numbers)
        return scores

    def interaction(self, scores: Vectors, kept: Mask, columns: Compressed, offsets: Rows, rows: Rows) -> Scores:
        """Score passages by the centroids of their tokens."""
        sums = np.zeros(len(rows))
        self._run(
            lambda part: self.steps.interaction(scores, kept, columns.codes, offsets, rows[part], sums[part]), rows, offsets
        )
        return sums

    def maxsim(
        self, query: Vectors, centroids: Vectors, table: Vectors, columns: Compressed, offsets: Rows, rows: Rows
    ) -> Scores:
        """Score passages by their decoded tokens."""
        sums, stored = np.zeros(len(rows)), (columns.codes, columns.residuals)
        self._run(
            lambda part: self.steps.maxsim(query, centroids, table, *stored, offsets, rows[part], sums[part]), rows, offsets
        )
        return sums

    def _run(self, work: Callable[[slice], None], rows: Rows, offsets: Rows) -> None:
        n_tokens = 0 if self._threads is None else int((offsets[rows + 1] - offsets[rows]).sum())
        count = min(self._count, n_tokens // _WORTH_A_THREAD)
        if self._threads is None or count < 2:
            work(slice(0, len(rows)))
            return
        first, *others = parts_of(rows, offsets, count)
        waiting = [self._threads.submit(work, part) for part in others]
        work(first)
        for part in waiting:
            part.result()
