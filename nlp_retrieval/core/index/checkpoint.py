"""Checkpoints of an encoding: a batch that is already encoded is not encoded again.

Each batch is a file of its own beside the folders of an index, named by all that decides its vectors: the texts, the encoder
with its model and settings, and this version. So the next build finds it if one was killed, and so does the next retriever of a
build if it has the same encoder. The build that publishes removes all. Nothing is used before its checksum has been compared.
"""

from __future__ import annotations

import hashlib
import struct
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nlp_retrieval._version import __version__
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.core.files.atomic import write_atomically
from nlp_retrieval.core.files.cache import read_own
from nlp_retrieval.errors import RetrievalWarning

PREFIX = ".encoding-"
_DIGEST = hashlib.sha256().digest_size
_HEAD = struct.Struct("<IIQ")
"""Head of a batch: dimension, texts that are longer than the encoder reads, nanoseconds."""


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


@dataclass
class Checkpoints:
    """The checkpoints of one writer of an index directory, and statistics of their use.

    Args:
        directory: the index directory.
        known: the batches read or written by this writer.
        resumed: how many texts an earlier run had encoded.
        shared: how many texts another retriever of this run had needed too.
        kept: how many texts are stored.
        seconds: time that the reused texts had taken to encode.
    """

    directory: Path
    known: set[Path] = field(default_factory=set)
    resumed: int = 0
    shared: int = 0
    kept: int = 0
    seconds: float = 0.0
    _writable: bool = True

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep checkpoints of everything encoded inside the block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def remove(self) -> None:
        """Remove all checkpoints of the directory, and what killed writers left of them."""
        for file in (*self.directory.glob(f"{PREFIX}*"), *self.directory.glob(f".{PREFIX}*")):
            with suppress(OSError):
                file.unlink()

    def find(self, path: Path, n_texts: int, dtype: np.dtype[Any]) -> EncodedBatch | None:
        """Return the batch of a file; None if it is missing or damaged, or anyone else could have written it."""
        try:
            content = read_own(path)
            head, rest = content[_DIGEST : _DIGEST + _HEAD.size], content[_DIGEST + _HEAD.size :]
            if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
                return None
            dimension, n_cut, nanoseconds = _HEAD.unpack(head)
            counts = np.frombuffer(rest, "<u4", n_texts).astype(np.uint32)
            rows = np.frombuffer(rest, dtype, offset=4 * n_texts).reshape(int(counts.sum()), dimension)
        except (OSError, ValueError, struct.error):
            return None
        if not np.isfinite(rows).all():
            return None
        if path in self.known:
            self.shared += n_texts
        else:
            self.known.add(path)
            self.resumed += n_texts
            self.kept += n_texts
        self.seconds += nanoseconds / 1e9
        return EncodedBatch(rows, counts, n_cut)

    def keep(self, path: Path, batch: EncodedBatch, dtype: np.dtype[Any], nanoseconds: int) -> None:
        """Write the file of a batch; if that fails, warn, and keep none from then on."""
        if not self._writable:
            return
        rows = np.ascontiguousarray(batch.rows, dtype)
        head = _HEAD.pack(rows.shape[1], batch.n_cut, nanoseconds)
        content = head + batch.counts.astype("<u4").tobytes() + rows.tobytes()
        try:
            write_atomically(path, hashlib.sha256(content).digest() + content, durable=False)
            self.known.add(path)
            self.kept += len(batch.counts)
        except OSError as error:
            self._writable = False
            self.remove()
            warnings.warn(
                f"{path} cannot be written ({error.strerror}); if this build is interrupted, it will encode everything again",
                RetrievalWarning,
                stacklevel=2,
            )


_current: ContextVar[Checkpoints | None] = ContextVar("nlp_retrieval_checkpoints", default=None)

EncodeAll = Callable[[Iterator[list[str]]], Iterator[tuple[list[str], EncodedBatch]]]
"""Encodes batch by batch, here or elsewhere; yields the results in the order of the batches, with their texts."""


def resumed_batches(
    slot: Config, settings: Config, batches: Iterator[list[str]], encode: EncodeAll, dtype: DTypeLike
) -> Iterator[EncodedBatch]:
    """Yield the result of ``encode`` for each batch; batches already encoded with the same settings are reused.

    Args:
        slot: name of the encoded data within the segment, including the encoder.
        settings: everything else that determines the result of ``encode``, apart from the texts.
        batches: the texts, in the same batches in every build.
        encode: encodes the batches that are missing.
        dtype: type of the stored rows; it must be precise enough for the caller.
    """
    site = _current.get()
    if site is None:
        yield from (batch for _, batch in encode(batches))
        return
    kind: np.dtype[Any] = np.dtype(dtype)
    decided = canonical_json([__version__, slot, settings, kind.str]).encode("utf-8", "surrogatepass")

    def path_of(texts: list[str]) -> Path:
        named = canonical_json(texts).encode("utf-8", "surrogatepass")
        return site.directory / f"{PREFIX}{hashlib.sha256(decided + named).hexdigest()[:32]}"

    found: list[tuple[list[str], EncodedBatch]] = []

    def missing() -> Iterator[list[str]]:
        """The batches up to the next one that is stored, which is found."""
        for texts in batches:
            batch = site.find(path_of(texts), len(texts), kind)
            if batch is not None:
                found.append((texts, batch))
                return
            yield texts

    while True:
        begin, n_encoded = time.perf_counter_ns(), 0
        for texts, batch in encode(missing()):
            site.keep(path_of(texts), batch, kind, time.perf_counter_ns() - begin)
            n_encoded += 1
            yield batch
            begin = time.perf_counter_ns()
        if not found and not n_encoded:
            return
        yield from (batch for _, batch in found)
        found.clear()
