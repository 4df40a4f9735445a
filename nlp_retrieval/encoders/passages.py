"""Encoding the passages of an index, in batches that survive a killed build.

Every retriever that encodes its items does it here, so that all encoders are checked and resumed alike, and retrievers that are
built together encode shared passages once. A resumed build has the same batches as the build before: a model's vectors depend
on which texts are encoded together.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from nlp_retrieval._version import __version__
from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.core.components.component import Component, Config, canonical_json, with_held
from nlp_retrieval.core.context import search_context
from nlp_retrieval.core.files.columns import Stream
from nlp_retrieval.core.index.checkpoint import EncodedBatch, resumed_batches
from nlp_retrieval.encoders.base import (
    BaseEncoder,
    BaseSparseEncoder,
    BaseTokenEncoder,
    TermWeights,
    checked_terms,
    checked_tokens,
    checked_vectors,
    require_shape,
)
from nlp_retrieval.encoders.workers import WorkerPool, pool_of
from nlp_retrieval.errors import ConfigurationError

AnyEncoder = BaseEncoder | BaseTokenEncoder | BaseSparseEncoder

_COMPUTING = ("numpy", "sentence-transformers", "tokenizers", "torch", "transformers", "onnxruntime", "model2vec")


@dataclass(frozen=True)
class PassageTask:
    """Encodes batches of passages, and checks the result; ``dimension`` is that of dense vectors, None for any."""

    encoder: AnyEncoder
    dimension: int | None = None

    def do(self, texts: list[str]) -> EncodedBatch:
        """Encode one batch."""
        match self.encoder:
            case BaseTokenEncoder() as encoder:
                matrices = checked_tokens(encoder.encode_passages(texts), texts, encoder)
                counts = np.array([len(matrix) for matrix in matrices], np.uint32)
                rows = np.concatenate([*matrices, np.zeros((0, encoder.dimension), np.float32)])
            case BaseSparseEncoder() as encoder:
                offsets, terms, weights = checked_terms(encoder.encode_passages(texts), texts, encoder)
                counts = np.diff(offsets).astype(np.uint32)
                rows = np.stack([terms.astype(np.float32), weights], axis=1)
            case BaseEncoder() as encoder:
                rows = checked_vectors(encoder.encode_passages(texts), texts, encoder, self.dimension)
                counts = np.ones(len(texts), np.uint32)
        return EncodedBatch(rows, counts, self.encoder.cut_passages(texts))

    def facts(self) -> dict[str, str]:
        """Return what must be equal wherever passages are encoded together: versions and the model, which is not opened."""
        versions = {f"version of {name}": number for name, number in computed_by().items()}
        identity = {f"encoder.{key}": canonical_json(value) for key, value in self.encoder.identity.items()}
        return versions | {"version of nlp_retrieval": __version__} | identity


@cache
def computed_by() -> dict[str, str]:
    """Versions of the packages that compute vectors."""
    versions = {"machine": platform.machine()}
    for package in _COMPUTING:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def pool_at_hand() -> WorkerPool | None:
    """Return the workers of the current call, started with its first blocks; None if it encodes in this process."""
    workers = search_context().workers
    return None if workers is None else cast("WorkerPool", workers.pool(pool_of))


def names_gpu(component: Component) -> bool:
    """Return whether a component or a part of it is set to compute on another device than a CPU, which workers do not have."""
    devices = [getattr(part, "device", None) for part in with_held(component)]
    return any(device is not None and not str(device).startswith("cpu") for device in devices)


def encoded_by(
    pool: WorkerPool, task: PassageTask, batches: Iterator[list[str]]
) -> Generator[tuple[list[str], EncodedBatch], None, None]:
    """Let workers encode batches, and yield each with its texts, in order."""
    for part in with_held(task.encoder):
        if type(part).__module__ == "__main__" or "<locals>" in type(part).__qualname__:
            raise ConfigurationError(
                f"workers cannot import {type(part).__qualname__}, which is defined in the script or notebook that runs, "
                "or in a function; move it into a module"
            )
    with closing(pool.results(task, batches)) as results:
        yield from results


def encoded_here(
    encode: Callable[[list[str]], EncodedBatch], batches: Iterator[list[str]]
) -> Generator[tuple[list[str], EncodedBatch], None, None]:
    """Encode batches in this process, and yield each with its texts."""
    for texts in batches:
        yield texts, encode(texts)


# Passages of an index.


def encoded_passages(
    encoder: BaseEncoder, batches: Iterator[list[str]], n_passages: int, dimension: int | None = None, part: str = ""
) -> Iterator[EncodedBatch]:
    """Encode passages, and yield ``[passages, dimension]`` float32 of each batch."""
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

    Examples:
        >>> encoder = StaticEncoder("minishlab/potion-base-8M")
        >>> write_passages(encoder, iter([["It hunts."]]), 1, Path("vectors.npy"))  # doctest: +SKIP
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
    """Encode passages token by token, and yield ``[tokens, dimension]`` of each batch, float32 or float16."""
    matrix = encoder.projection_matrix()
    also = {"projection_matrix": None if matrix is None else hashlib.sha256(np.ascontiguousarray(matrix).data).hexdigest()}
    return _resumed(PassageTask(encoder, encoder.dimension), also, part, batches, n_passages, np.float16)


class EncodedTerms(NamedTuple):
    """The weights of a batch of passages, and how many of them are longer than the encoder reads."""

    weights: TermWeights
    n_cut: int


def encoded_terms(encoder: BaseSparseEncoder, batches: Iterator[list[str]], n_passages: int) -> Iterator[EncodedTerms]:
    """Encode passages as weights of terms, and yield those of each batch."""
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
    all_batches = chain([first] if first else [], batches)
    if len(first) >= n_passages:
        return (batch for _, batch in encoded_here(task.do, all_batches))
    settings = {"encoder": task.encoder.identity, "part": part} | _settings_of(task.encoder) | also
    pool = pool_at_hand() if task.encoder.in_workers and not names_gpu(task.encoder) else None
    encode = partial(encoded_here, task.do) if pool is None else partial(encoded_by, pool, task)
    return resumed_batches(settings, all_batches, encode, dtype)


def _settings_of(encoder: AnyEncoder) -> Config:
    """All settings that decide the vectors besides the model, even those that affect only rounding, and the backend."""
    kinds = {BaseTokenEncoder: "tokens", BaseSparseEncoder: "terms"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(encoder, cls)), "vectors")
    return {"kind": kind, "config": encoder.config, "computed_by": computed_by()}
