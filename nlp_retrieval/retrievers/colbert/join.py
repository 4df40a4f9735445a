"""Joining the segments of a ColBERT index: tokens of passages that are not deleted are copied unchanged, in blocks.

Only passages that another codec compressed are encoded again. Segments have different codecs where the first was trained
on too few tokens to be used for the items that joined later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Mask, Rows, offsets_of
from nlp_retrieval.core.files.column_streams import Stream, read_blocks
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ModelError
from nlp_retrieval.retrievers.colbert.build import TOKENS, TOKENS_AT_ONCE, write_codec, write_lists
from nlp_retrieval.retrievers.colbert.codec import Codec, Codes, code_type, compressor_of, packed_size
from nlp_retrieval.retrievers.colbert.files import (
    ColbertFiles,
    Compressed,
    Sizes,
    write_projection,
    write_settings,
)


class Encode(Protocol):
    """Encodes passages of the joined index."""

    def __call__(self, first: int, end: int) -> Iterator[Vectors]:
        """Yield the tokens of passages ``first:end``, several passages at a time."""


def live_counts(segments: Sequence[SegmentFolder], opened: Sequence[ColbertFiles]) -> list[Rows]:
    """Per segment, how many tokens each of its passages has that is not deleted."""
    counts = [np.diff(files.offsets) for files in opened]
    return [lengths if s.live is None else lengths[s.live] for s, lengths in zip(segments, counts, strict=True)]


def join_segments(
    segments: Sequence[SegmentFolder],
    opened: Sequence[ColbertFiles],
    live: Sequence[Rows],
    codec: Codec | None,
    folder: Path,
    encode: Encode,
) -> None:
    """Join several segments into one index without deleted passages.

    Args:
        segments: adjacent segments.
        opened: their files.
        live: what :func:`live_counts` returns for them.
        codec: codec of the index; None where no segment has tokens, or tokens are not compressed.
        folder: an empty folder.
        encode: encodes passages that another codec compressed.

    Raises:
        ModelError: a passage that is encoded again has a different number of tokens.
    """
    offsets = offsets_of(np.concatenate(live))
    np.save(folder / "offsets.npy", offsets, allow_pickle=False)
    first = opened[0]
    n_centroids = n_listed = 0
    if isinstance(first.tokens, Compressed):
        codec = codec or first.tokens.codec
        n_centroids = len(codec.centroids)
        write_codec(folder, codec)
        n_tokens = [int(lengths.sum()) for lengths in live]
        bounds = offsets_of([len(lengths) for lengths in live])
        counts_of = np.zeros(n_centroids, np.int64)
        with (
            Stream(folder / "codes.npy", code_type(n_centroids)) as codes,
            Stream(folder / "residuals.npy", np.uint8, packed_size(codec.dimension, codec.bits)) as residuals,
        ):
            for part, (segment, files) in enumerate(zip(segments, opened, strict=True)):
                passages = (int(bounds[part]), int(bounds[part + 1]))
                for numbers, packed in _codes(segment, files, codec, encode, passages, n_tokens[part]):
                    counts_of += np.bincount(numbers, minlength=n_centroids)
                    codes.write(numbers)
                    residuals.write(packed)
        n_listed = write_lists(folder, counts_of, offsets)
    else:
        with Stream(folder / TOKENS, np.float16, first.sizes.dimension) as stream:
            for segment, files in zip(segments, opened, strict=True):
                for tokens in _live_blocks(segment, files, TOKENS):
                    stream.write(tokens)
    projected_from = write_projection(folder, first.projection)
    sizes = (len(offsets) - 1, int(offsets[-1]), first.sizes.dimension, first.sizes.bits, n_centroids, n_listed, projected_from)
    write_settings(folder, Sizes(*sizes))


def _codes(
    segment: SegmentFolder, files: ColbertFiles, codec: Codec, encode: Encode, passages: tuple[int, int], n_tokens: int
) -> Iterator[tuple[Codes, NDArray[np.uint8]]]:
    """Yield codes and residuals of the passages of a segment that are not deleted, a block at a time."""
    if n_tokens == 0:
        return
    if isinstance(files.tokens, Compressed) and files.tokens.codec.equals(codec):
        columns = (_live_blocks(segment, files, name) for name in ("codes.npy", "residuals.npy"))
        yield from zip(*columns, strict=True)
        return
    compressor, n_encoded = compressor_of(codec, n_tokens, 0), 0
    for tokens in encode(*passages):
        n_encoded += len(tokens)
        yield compressor.compress(tokens.astype(np.float16).astype(np.float32))  # rounded as in tokens.npy
    if n_encoded != n_tokens:
        raise ModelError(f"the encoder gives {n_encoded} tokens for passages that had {n_tokens}; index again")


def _live_blocks(segment: SegmentFolder, files: ColbertFiles, name: str) -> Iterator[NDArray[Any]]:
    """Yield a column of tokens, a block at a time, without those of deleted passages."""
    first = 0
    for block in read_blocks(segment.folder / name, TOKENS_AT_ONCE) if files.sizes.tokens else ():
        yield block if segment.live is None else block[_tokens_of(segment.live, files.offsets, first, len(block))]
        first += len(block)


def _tokens_of(live: Mask, offsets: Rows, first: int, count: int) -> Mask:
    """Which of ``count`` tokens from ``first`` on belong to passages that are not deleted."""
    passages = np.searchsorted(offsets, np.arange(first, first + count), side="right") - 1
    is_live: Mask = live[passages]
    return is_live
