"""Encoding the passages of an index, in batches that survive a killed build.

Every retriever that encodes its items does it here, so that all encoders are checked and resumed alike. The batches of a
resumed build are those of the build before: a model's vectors depend on which texts are encoded together.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.column_streams import Stream
from nlp_retrieval.core.index.checkpoint import EncodedBatch, resumed_batches
from nlp_retrieval.encoders.base import BaseEncoder, checked_vectors
from nlp_retrieval.encoders.sparse_base import BaseSparseEncoder, TermWeights, checked_terms
from nlp_retrieval.encoders.token_base import BaseTokenEncoder, checked_tokens

AnyEncoder = BaseEncoder | BaseTokenEncoder | BaseSparseEncoder

_COMPUTING = ("numpy", "sentence-transformers", "tokenizers", "torch", "transformers", "onnxruntime", "model2vec")


def encoded_passages(
    encoder: BaseEncoder, batches: Iterator[list[str]], n_passages: int, dimension: int | None = None
) -> Iterator[EncodedBatch]:
    """Encode passages, and yield ``[passages, dimension]`` float32 of each batch.

    Args:
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: how many passages they hold.
        dimension: what the vectors must have; None where any will do.

    Raises:
        ModelError: vectors that cannot be searched, or two batches of different dimensions.
    """

    def encode(texts: list[str]) -> EncodedBatch:
        rows = checked_vectors(encoder.encode_passages(texts), texts, encoder, dimension)
        return EncodedBatch(rows, np.ones(len(texts), np.uint32), encoder.cut_passages(texts))

    for batch in _resumed(encoder, {"dimension": dimension}, "", batches, n_passages, encode, np.float32, dimension):
        dimension = batch.rows.shape[1]
        yield batch


class WrittenVectors(NamedTuple):
    """The dimension of vectors that were written, None without any; and how many texts are longer than the encoder reads."""

    dimension: int | None
    n_cut: int


def write_passages(
    encoder: BaseEncoder, batches: Iterator[list[str]], n_passages: int, path: Path, dimension: int | None = None
) -> WrittenVectors:
    """Encode passages into a ``.npy`` file, ``[passages, dimension]`` float32, a batch in memory at a time.

    Args:
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: how many passages they hold; without any, no file is written.
        path: path of the file.
        dimension: what the vectors must have; None where any will do.

    Raises:
        ModelError: vectors that cannot be searched, or two batches of different dimensions.
    """
    n_cut = 0
    stream: Stream | None = None
    with ExitStack() as opened:
        for batch in encoded_passages(encoder, batches, n_passages, dimension):
            if stream is None:
                dimension = batch.rows.shape[1]
                stream = opened.enter_context(Stream(path, np.float32, dimension))
            stream.write(batch.rows)
            n_cut += batch.n_cut
    return WrittenVectors(dimension, n_cut)


def encoded_tokens(
    encoder: BaseTokenEncoder, batches: Iterator[list[str]], n_passages: int, part: str = ""
) -> Iterator[EncodedBatch]:
    """Encode passages token by token, and yield ``[tokens, dimension]`` of each batch, float32 or float16 of the same numbers.

    Args:
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: how many passages they hold.
        part: which part of the segment it is, where it is encoded in parts.

    Raises:
        ModelError: vectors that cannot be searched.
    """

    def encode(texts: list[str]) -> EncodedBatch:
        matrices = checked_tokens(encoder.encode_passages(texts), texts, encoder)
        counts = np.array([len(matrix) for matrix in matrices], np.uint32)
        rows = np.concatenate([*matrices, np.zeros((0, encoder.dimension), np.float32)])
        return EncodedBatch(rows, counts, encoder.cut_passages(texts))

    matrix = encoder.projection_matrix()
    projection = None if matrix is None else hashlib.sha256(np.ascontiguousarray(matrix).data).hexdigest()
    return _resumed(
        encoder, {"projection_matrix": projection}, part, batches, n_passages, encode, np.float16, encoder.dimension
    )


class EncodedTerms(NamedTuple):
    """The weights of a batch of passages, and how many of them are longer than the encoder reads."""

    weights: TermWeights
    n_cut: int


def encoded_terms(encoder: BaseSparseEncoder, batches: Iterator[list[str]], n_passages: int) -> Iterator[EncodedTerms]:
    """Encode passages as weights of terms, and yield those of each batch.

    Args:
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: how many passages they hold.

    Raises:
        ModelError: weights that cannot be searched.
    """

    def encode(texts: list[str]) -> EncodedBatch:
        offsets, terms, weights = checked_terms(encoder.encode_passages(texts), texts, encoder)
        counts = np.diff(offsets).astype(np.uint32)
        return EncodedBatch(np.stack([terms.astype(np.float32), weights], axis=1), counts, encoder.cut_passages(texts))

    for batch in _resumed(encoder, {}, "", batches, n_passages, encode, np.float32, 2):
        terms, weights = batch.rows.T
        weighed = TermWeights(offsets_of(batch.counts.astype(np.int64)), terms.astype(np.int32), weights)
        yield EncodedTerms(checked_terms(weighed, [""] * len(batch.counts), encoder), batch.n_cut)  # it may be a checkpoint's


def _resumed(
    encoder: AnyEncoder,
    also: Config,
    part: str,
    batches: Iterator[list[str]],
    n_passages: int,
    encode: Callable[[list[str]], EncodedBatch],
    dtype: type[np.floating],
    dimension: int | None,
) -> Iterator[EncodedBatch]:
    """A single batch is encoded without a checkpoint, which would not be written before it is done."""
    first = next(batches, [])
    whole = chain([first] if first else [], batches)
    if len(first) >= n_passages:
        return map(encode, whole)
    slot = {"encoder": encoder.identity, "part": part}
    return resumed_batches(slot, _settings_of(encoder) | also, whole, encode, dtype, dimension)


def _settings_of(encoder: AnyEncoder) -> Config:
    """What decides the vectors besides the model: all settings, also those that matter only in rounding, and what computes."""
    kinds = {BaseTokenEncoder: "tokens", BaseSparseEncoder: "terms"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(encoder, cls)), "vectors")
    return {"kind": kind, "config": encoder.config, "computed_by": _computed_by()}


@cache
def _computed_by() -> dict[str, str]:
    versions = {"machine": platform.machine()}
    for package in _COMPUTING:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
