"""Encoding the passages of an index, in batches that survive a killed build.

Every retriever that encodes its items does it here, so that all encoders are checked and resumed alike, and retrievers that are
built together encode shared passages once. A resumed build has the same batches as the build before: a model's vectors depend
on which texts are encoded together.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nlp_retrieval.core.blocks import EncodedBatch, encoded_here
from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.columns import Stream
from nlp_retrieval.core.index.checkpoint import resumed_batches
from nlp_retrieval.encoders.base import BaseEncoder, require_shape
from nlp_retrieval.encoders.sparse_base import BaseSparseEncoder, TermWeights, checked_terms
from nlp_retrieval.encoders.token_base import BaseTokenEncoder
from nlp_retrieval.encoders.workers.starting import names_gpu, pool_at_hand
from nlp_retrieval.encoders.workers.task import AnyEncoder, PassageTask, computed_by, digest_of_matrix


def encoded_passages(
    encoder: BaseEncoder, batches: Iterator[list[str]], n_passages: int, dimension: int | None = None, part: str = ""
) -> Iterator[EncodedBatch]:
    """Encode passages, and yield ``[passages, dimension]`` float32 of each batch.

    Args:
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: number of passages in them.
        dimension: required of the vectors; None for any.
        part: the part of the segment that they are, if not its passages.

    Raises:
        ModelError: vectors that cannot be searched, or two batches of different dimensions.
    """
    task = PassageTask(encoder, dimension)
    for batch in _resumed(task, {}, part, batches, n_passages, np.float32):
        require_shape(batch.rows, len(batch.counts), encoder, dimension)
        dimension = batch.rows.shape[1]
        yield batch


class WrittenVectors(NamedTuple):
    """The dimension of written vectors, None without any; and how many texts are longer than the encoder reads."""

    dimension: int | None
    n_cut: int


def write_passages(
    encoder: BaseEncoder,
    batches: Iterator[list[str]],
    n_passages: int,
    path: Path,
    dimension: int | None = None,
    part: str = "",
) -> WrittenVectors:
    """Encode passages into a ``.npy`` file, ``[passages, dimension]`` float32, a batch in memory at a time.

    Args:
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: number of passages in them; without any, no file is written.
        path: path of the file.
        dimension: required of the vectors; None for any.
        part: the part of the segment that they are, if not its passages.

    Raises:
        ModelError: vectors that cannot be searched, or two batches of different dimensions.
    """
    n_cut = 0
    stream: Stream | None = None
    with ExitStack() as opened:
        for batch in encoded_passages(encoder, batches, n_passages, dimension, part):
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
        n_passages: number of passages in them.
        part: name of the part, if the segment is encoded in parts.

    Raises:
        ModelError: vectors that cannot be searched.
    """
    matrix = encoder.projection_matrix()
    also = {"projection_matrix": None if matrix is None else digest_of_matrix(matrix)}
    return _resumed(PassageTask(encoder, encoder.dimension, matrix), also, part, batches, n_passages, np.float16)


class EncodedTerms(NamedTuple):
    """The weights of a batch of passages, and how many of them are longer than the encoder reads."""

    weights: TermWeights
    n_cut: int


def encoded_terms(encoder: BaseSparseEncoder, batches: Iterator[list[str]], n_passages: int) -> Iterator[EncodedTerms]:
    """Encode passages as weights of terms, and yield those of each batch.

    Args:
        encoder: the encoder.
        batches: the passages of a segment; the same batches whenever it is built.
        n_passages: number of passages in them.

    Raises:
        ModelError: weights that cannot be searched.
    """
    for batch in _resumed(PassageTask(encoder, 2), {}, "", batches, n_passages, np.float32):
        terms, weights = batch.rows.T
        weighed = TermWeights(offsets_of(batch.counts.astype(np.int64)), terms.astype(np.int32), weights)
        yield EncodedTerms(checked_terms(weighed, [""] * len(batch.counts), encoder), batch.n_cut)  # it may be a checkpoint's


def _resumed(
    task: PassageTask,
    also: Config,
    part: str,
    batches: Iterator[list[str]],
    n_passages: int,
    dtype: type[np.floating],
) -> Iterator[EncodedBatch]:
    """A single batch is encoded here without a checkpoint, which would be written only when it is done."""
    first = next(batches, [])
    whole = chain([first] if first else [], batches)
    if len(first) >= n_passages:
        return (batch for _, batch in encoded_here(task, whole))
    slot = {"encoder": task.encoder.identity, "part": part}
    pool = pool_at_hand() if task.encoder.in_workers and not names_gpu(task.encoder) else None
    encode = partial(encoded_here if pool is None else pool.encoded, task)
    return resumed_batches(slot, _settings_of(task.encoder) | also, whole, encode, dtype, task.dimension)


def _settings_of(encoder: AnyEncoder) -> Config:
    """All settings that decide the vectors besides the model, even those that affect only rounding, and the backend."""
    kinds = {BaseTokenEncoder: "tokens", BaseSparseEncoder: "terms"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(encoder, cls)), "vectors")
    return {"kind": kind, "config": encoder.config, "computed_by": computed_by()}
