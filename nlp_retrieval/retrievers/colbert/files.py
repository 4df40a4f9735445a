"""The files of a ColBERT index: memory-mapped columns, written in bounded memory and checked when they are opened.

An exact index has ``tokens.npy``, as float16; a compressed one has its codec, codes, residuals and inverted lists. Checks go
beyond checksums, because compiled code uses the numbers as indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows, entries_of, offsets_of
from nlp_retrieval.core.files.columns import Stream, check_numbers, check_offsets, damaged, mapped, read_blocks
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.codec import Bits, Codec, Codes, code_type, packed_size

TOKENS_AT_ONCE = 16_384
PAIRS_AT_ONCE = 2**20


@dataclass(frozen=True)
class ExactFiles:
    """The columns of an exact index: passage p has the tokens ``offsets[p]:offsets[p + 1]``."""

    offsets: Rows
    tokens: NDArray[np.float16]


@dataclass(frozen=True)
class CompressedFiles:
    """The columns of a compressed index.

    Args:
        offsets: ``[passages + 1]``; passage p has the tokens ``offsets[p]:offsets[p + 1]``.
        codec: turns codes back into vectors.
        codes: ``[tokens]``, their centroids.
        residuals: ``[tokens, bytes]``.
        list_offsets: ``[centroids + 1]``; the list of centroid c is ``list_rows[list_offsets[c]:list_offsets[c + 1]]``.
        list_rows: for each centroid the passages with a token of it, ascending.
    """

    offsets: Rows
    codec: Codec
    codes: Codes
    residuals: NDArray[np.uint8]
    list_offsets: Rows
    list_rows: NDArray[np.int32]


def open_exact(segments: Sequence[SegmentFolder]) -> list[ExactFiles]:
    """Open the segments of an exact index; raises what :func:`open_compressed` does."""
    opened = []
    for segment in segments:
        tokens = mapped(segment.folder / "tokens.npy", np.float16, (None, None))
        opened.append(ExactFiles(_open_offsets(segment, len(tokens)), tokens))
    _check_equal(segments, [files.tokens.shape[1] for files in opened])
    return opened


def open_compressed(segments: Sequence[SegmentFolder], bits: Bits) -> list[CompressedFiles]:
    """Open the segments of a compressed index."""
    opened: list[CompressedFiles] = []
    for segment in segments:
        folder, codec = segment.folder, open_codec(segment.folder, bits)
        codec = next((files.codec for files in opened if files.codec.equals(codec)), codec)
        n_centroids = len(codec.centroids)
        codes = mapped(folder / "codes.npy", code_type(n_centroids))
        residuals = mapped(folder / "residuals.npy", np.uint8, (len(codes), packed_size(codec.dimension, bits)))
        list_offsets = mapped(folder / "list_offsets.npy", np.int64, (n_centroids + 1,))
        list_rows = mapped(folder / "list_rows.npy", np.int32)
        check_offsets(folder / "list_offsets.npy", list_offsets, len(list_rows))
        check_numbers(folder / "codes.npy", codes, n_centroids)
        check_numbers(folder / "list_rows.npy", list_rows, len(segment))
        opened.append(CompressedFiles(_open_offsets(segment, len(codes)), codec, codes, residuals, list_offsets, list_rows))
    _check_equal(segments, [files.codec.dimension for files in opened])
    return opened


def open_codec(folder: Path, bits: Bits) -> Codec:
    """Open the codec of a compressed index; raises what :func:`open_compressed` does."""
    centroids = mapped(folder / "centroids.npy", np.int16, (None, None))
    weights = mapped(folder / "weights.npy", np.float32, (2**bits,))
    if not centroids.size:
        raise damaged(folder / "centroids.npy", "it holds none")
    if not np.isfinite(weights).all():
        raise damaged(folder / "weights.npy", "it holds NaN or infinity")
    return Codec(centroids, weights)


def open_projection(folder: Path) -> Vectors | None:
    """The matrix that the encoder of an index must multiply by; None if it has none."""
    path = folder / "projection.npy"
    return mapped(path, np.float32, (None, None)) if path.exists() else None


def _open_offsets(segment: SegmentFolder, n_tokens: int) -> Rows:
    path = segment.folder / "offsets.npy"
    offsets: Rows = mapped(path, np.int64)
    if len(offsets) != len(segment) + 1:
        raise damaged(path, f"it is of {len(offsets) - 1} passages, and {len(segment)} items are in the segment")
    check_offsets(path, offsets, n_tokens)
    return offsets


def _check_equal(segments: Sequence[SegmentFolder], dimensions: Sequence[int]) -> None:
    first = segments[0].folder
    for segment, dimension in zip(segments, dimensions, strict=True):
        if dimension != dimensions[0]:
            raise damaged(segment.folder, f"its vectors have dimension {dimension}, and those of {first} {dimensions[0]}")


def token_blocks(folder: Path) -> Iterator[NDArray[np.float16]]:
    """The tokens of ``tokens.npy``, a block at a time."""
    return read_blocks(folder / "tokens.npy", TOKENS_AT_ONCE)


def sample_tokens(folder: Path, n_tokens: int, wanted: int, seed: int) -> Vectors:
    """Draw tokens evenly from all of ``tokens.npy``, in random order, ``[min(n_tokens, wanted), dimension]``."""
    draw = np.random.default_rng(seed)
    wanted = min(wanted, n_tokens)
    parts, first = [], 0
    for block in token_blocks(folder):
        last = first + len(block)
        share = last * wanted // max(n_tokens, 1) - first * wanted // max(n_tokens, 1)
        parts.append(block[np.sort(draw.choice(len(block), share, replace=False))])
        first = last
    sample = np.concatenate(parts)
    shuffled: Vectors = sample[draw.permutation(len(sample))].astype(np.float32)
    return shuffled


def write_compressed(folder: Path, codec: Codec, offsets: Rows, blocks: Iterable[tuple[Codes, NDArray[np.uint8]]]) -> None:
    """Write the codec, the codes and residuals of all tokens, which come in blocks, and the inverted lists."""
    np.save(folder / "centroids.npy", codec.centroids, allow_pickle=False)
    np.save(folder / "weights.npy", codec.weights, allow_pickle=False)
    n_centroids = len(codec.centroids)
    counts = np.zeros(n_centroids, np.int64)
    with (
        Stream(folder / "codes.npy", code_type(n_centroids)) as codes,
        Stream(folder / "residuals.npy", np.uint8, packed_size(codec.dimension, codec.bits)) as residuals,
        progress("colbert: compressing", int(offsets[-1])) as advance,
    ):
        for numbers, packed in blocks:
            counts += np.bincount(numbers, minlength=n_centroids)
            codes.write(numbers)
            residuals.write(packed)
            advance(len(numbers))
    _write_lists(folder, counts, offsets)


def _write_lists(folder: Path, counts: NDArray[np.int64], offsets: Rows) -> None:
    """Write the passages of each centroid in several passes over the codes, each with about a million pairs in memory."""
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
    np.save(folder / "list_offsets.npy", offsets_of(lengths), allow_pickle=False)


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


def join_exact(segments: Sequence[SegmentFolder], opened: Sequence[ExactFiles], folder: Path) -> None:
    """Join adjacent segments into one index, in an empty folder, without deleted passages."""
    np.save(folder / "offsets.npy", live_offsets(segments, [files.offsets for files in opened]), allow_pickle=False)
    with Stream(folder / "tokens.npy", np.float16, opened[0].tokens.shape[1]) as stream:
        for segment, files in zip(segments, opened, strict=True):
            for positions in _live_tokens(segment, files.offsets):
                stream.write(files.tokens[positions])


def join_compressed(segments: Sequence[SegmentFolder], opened: Sequence[CompressedFiles], codec: Codec, folder: Path) -> None:
    """Join adjacent segments as :func:`join_exact` does; what another codec compressed is decoded and compressed again."""

    def blocks() -> Iterator[tuple[Codes, NDArray[np.uint8]]]:
        for segment, files in zip(segments, opened, strict=True):
            same = files.codec.equals(codec)
            for positions in _live_tokens(segment, files.offsets):
                codes, residuals = files.codes[positions], files.residuals[positions]
                yield (codes, residuals) if same else codec.encode(files.codec.decode(codes, residuals))

    offsets = live_offsets(segments, [files.offsets for files in opened])
    np.save(folder / "offsets.npy", offsets, allow_pickle=False)
    write_compressed(folder, codec, offsets, blocks())


def live_offsets(segments: Sequence[SegmentFolder], offsets: Sequence[Rows]) -> Rows:
    """Where the tokens of each passage begin in the index that joins segments, given where they do in each."""
    counts = [np.diff(of_segment)[_live_rows(segment)] for segment, of_segment in zip(segments, offsets, strict=True)]
    return offsets_of(np.concatenate(counts))


def _live_rows(segment: SegmentFolder) -> Rows:
    return np.arange(len(segment)) if segment.live is None else np.flatnonzero(segment.live)


def _live_tokens(segment: SegmentFolder, offsets: Rows) -> Iterator[Rows]:
    """The positions of the tokens that are not deleted, in blocks."""
    rows = _live_rows(segment)
    for block in blocks_of(rows, offsets, TOKENS_AT_ONCE):
        yield entries_of(offsets, rows[block])[0]


def blocks_of(rows: Rows, offsets: Rows, most: int) -> Iterator[slice]:
    """Cut a list of passages into slices with at most ``most`` tokens; a longer passage is a slice of its own."""
    ends = np.cumsum(offsets[rows + 1] - offsets[rows])
    begin = 0
    while begin < len(rows):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield slice(begin, end)
        begin = end
