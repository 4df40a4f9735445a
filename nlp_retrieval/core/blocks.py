"""Encoding in blocks, in this process or by workers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.errors import ConfigurationError

# Settings of the running call: how many workers encode, and where.
#
# This package knows only that workers may exist; `workers` starts them for the first block, and they end with the
# call that started them.

MOST_WORKERS = 4096


@dataclass(frozen=True)
class Workers:
    """Workers that encode the passages of an index and compute the stages of a benchmark.

    Args:
        n: number of workers, of one core each; None for as many as the cluster has room for, or for none without a cluster.
        ray: address of a Ray cluster, or ``auto`` for the one that this machine belongs to; None for processes of this machine.

    Raises:
        ConfigurationError: the number is below 1 or too large, or the address is invalid.
    """

    n: int | None = None
    ray: str | None = None

    def __post_init__(self) -> None:
        if self.n is not None and (isinstance(self.n, bool) or not isinstance(self.n, int) or not 1 <= self.n <= MOST_WORKERS):
            raise ConfigurationError(
                f"workers={self.n!r}: expected a whole number from 1 to {MOST_WORKERS:,}; each worker is a process that uses "
                "one core, and 1 means no further process"
            )
        if self.ray is not None and (not isinstance(self.ray, str) or not self.ray.strip()):
            raise ConfigurationError(f"ray={self.ray!r}: expected 'auto', or the address of a cluster such as '10.0.0.5:6379'")

    @property
    def elsewhere(self) -> bool:
        """Return whether anything is encoded outside of this process."""
        return self.ray is not None or (self.n or 1) > 1


THIS_PROCESS = Workers()
"""No workers: the caller encodes in this process."""


class Closable(Protocol):
    """A pool of workers that can be ended."""

    def close(self) -> None:
        """End them."""


class WorkerLease:
    """The workers of one call; started when they are first needed."""

    def __init__(self, wanted: Workers) -> None:
        self.wanted = wanted
        self._pool: Closable | None = None

    def pool(self, start: Callable[[Workers], Closable]) -> Closable:
        """Return the pool of this call; if there is none yet, ``start`` starts it."""
        if self._pool is None:
            self._pool = start(self.wanted)
        return self._pool

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


_crew: ContextVar[WorkerLease | None] = ContextVar("nlp_retrieval_workers", default=None)


@contextmanager
def use_workers(wanted: Workers) -> Iterator[None]:
    """Let these workers encode the passages of everything built inside the block, and end them afterwards."""
    if not wanted.elsewhere:
        yield
        return
    crew: WorkerLease = WorkerLease(wanted)
    token = _crew.set(crew)
    try:
        yield
    finally:
        _crew.reset(token)
        crew.close()


def current_crew() -> WorkerLease | None:
    """The workers of the running call; None if it encodes in this process."""
    return _crew.get()


# Blocks of passages, and their results.
#
# A block is a batch cut by its retriever, and it is encoded in one call, wherever that happens: a model's vectors depend on
# which texts are encoded together, so equal blocks give equal bytes.


@dataclass(frozen=True)
class EncodedBatch:
    """Vectors of a batch of texts.

    Args:
        rows: ``[rows, dimension]``, vectors of all texts, in order.
        counts: ``[texts]``, how many rows each text has.
        n_cut: how many texts were longer than the encoder's limit.
    """

    rows: NDArray[Any]
    counts: NDArray[np.uint32]
    n_cut: int = 0

    def is_sound(self, n_texts: int) -> bool:
        """Return whether it holds the declared number of rows of finite numbers, for this many texts."""
        rows, counts = self.rows, self.counts
        are_arrays = isinstance(rows, np.ndarray) and isinstance(counts, np.ndarray)
        if not are_arrays or rows.ndim != 2 or rows.dtype.kind != "f" or counts.dtype != np.uint32:
            return False
        whole = counts.shape == (n_texts,) and int(counts.sum(dtype=np.uint64)) == len(rows)
        return whole and 0 <= self.n_cut <= n_texts and bool(np.isfinite(rows).all())

    def checksum(self) -> bytes:
        """Digest of the whole batch."""
        head = f"{self.rows.dtype.str} {self.rows.shape} {len(self.counts)} {self.n_cut}\n".encode()
        counts, rows = np.ascontiguousarray(self.counts, "<u4"), np.ascontiguousarray(self.rows)
        return chained(b"", (head, counts.data, rows.data))


@dataclass(frozen=True)
class WorkBlock:
    """Passages to encode in one call.

    Args:
        number: place of the block among those of its segment.
        first: place of its first passage.
        texts: the passages.
        dimension: required dimension of the vectors; None if any will do.
    """

    number: int
    first: int
    texts: list[str]
    dimension: int | None = None

    def __str__(self) -> str:
        return f"passages {self.first:,} to {self.first + len(self.texts) - 1:,}"

    @property
    def work(self) -> list[str]:
        """Return the message to a worker."""
        return self.texts

    def fits(self, encoded: object) -> bool:
        """Return whether a worker's reply was made from these texts, arrived unchanged, and can be searched.

        Args:
            encoded: the reply.
        """
        if not isinstance(encoded, EncodedBlock) or not encoded.batch.is_sound(len(self.texts)):
            return False
        if self.dimension not in (None, encoded.batch.rows.shape[1]):
            return False
        return encoded.texts == digest_of(self.texts) and encoded.vectors == encoded.batch.checksum()


@dataclass(frozen=True)
class EncodedBlock:
    """A worker's result for a block.

    Args:
        batch: the vectors.
        texts: digest of the texts, as the worker had them.
        vectors: checksum of ``batch``, as the worker made it.
        warned: warnings raised while encoding.
    """

    batch: EncodedBatch
    texts: bytes
    vectors: bytes
    warned: tuple[str, ...] = ()

    @classmethod
    def of(cls, batch: EncodedBatch, texts: Sequence[str], warned: Sequence[str] = ()) -> EncodedBlock:
        """Return the message from a worker."""
        return cls(batch, digest_of(texts), batch.checksum(), tuple(warned))


def blocks_of(batches: Iterator[list[str]], dimension: int | None = None) -> Iterator[WorkBlock]:
    """Number batches, and number their passages across all batches.

    Args:
        batches: the passages.
        dimension: required dimension of the vectors; None if any will do.
    """
    first = 0
    for number, texts in enumerate(batches):
        yield WorkBlock(number, first, texts, dimension)
        first += len(texts)


def encoded_here(
    encode: Callable[[list[str]], EncodedBatch], batches: Iterator[list[str]]
) -> Generator[tuple[list[str], EncodedBatch], None, None]:
    """Encode batches in this process, and yield each with its texts."""
    for texts in batches:
        yield texts, encode(texts)


def chained(before: bytes, parts: Iterable[bytes | memoryview]) -> bytes:
    """The digest of parts, and of a digest before them."""
    digest = hashlib.sha256(before)
    for part in parts:
        digest.update(part)
    return digest.digest()


def digest_of(texts: Sequence[str]) -> bytes:
    """A digest of texts that also covers where each text ends."""
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    return chained(b"", (part for text in encoded for part in (len(text).to_bytes(8, "little"), text)))
