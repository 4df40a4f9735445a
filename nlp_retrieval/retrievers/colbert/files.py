"""The files of a ColBERT index: memory-mapped columns, checked to fit together when they are opened.

Checks go beyond checksums, because compiled code uses the numbers as indices.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.files.columns import CURE, check_offsets, damaged, mapped
from nlp_retrieval.core.files.json_text import read_json_file
from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import IndexDamagedError
from nlp_retrieval.retrievers.colbert.codec import Codec, Codes, code_type, packed_size

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


def _equal(one: NDArray[np.generic] | None, other: NDArray[np.generic] | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


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
