"""The passes that build a ColBERT index; memory holds a sample and a batch.

Passages are encoded once, by far the most expensive step. Their tokens are first streamed to ``tokens.npy`` as float16. An
exact index keeps this file; for a compressed one it is temporary: a sample of it trains the codec, a second pass over it writes
codes and residuals, and then it is deleted. So a build temporarily takes 2 bytes on disk per token and dimension (256 bytes per
token at 128 dimensions).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.candidates import Rows
from nlp_retrieval.core.files.columns import Stream, read_blocks
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert.codec import Codec, Compressor, code_type, packed_size

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
            done = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + PAIRS_AT_ONCE, side="right")))
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
        here = np.flatnonzero((codes >= begin) & (codes < end))
        passages = np.searchsorted(offsets, here + first, side="right") - 1
        parts.append(np.unique(codes[here] * n_passages + passages))
        first += len(codes)
    pairs = np.unique(np.concatenate(parts))
    return pairs // n_passages, pairs % n_passages
