"""Blocks of passages to encode, in this process or by workers, and their results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
