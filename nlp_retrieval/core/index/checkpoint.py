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
"""Dimension, texts that are longer than the encoder reads, nanoseconds; the numbers of rows and the rows follow."""


@dataclass(frozen=True)
class EncodedBatch:
    """The vectors of a batch of texts in order, how many each text has, and how many texts the encoder cut."""

    rows: NDArray[Any]
    counts: NDArray[np.uint32]
    n_cut: int = 0


@dataclass
class Checkpoints:
    """The checkpoints of one writer, with the seconds that the reused texts had taken, and how many texts are stored."""

    directory: Path
    resumed: int = 0
    kept: int = 0
    seconds: float = 0.0
    _known: set[Path] = field(default_factory=set)
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
            digest, head, rest = content[:_DIGEST], content[_DIGEST:][: _HEAD.size], content[_DIGEST + _HEAD.size :]
            dimension, n_cut, nanoseconds = _HEAD.unpack(head)
            counts = np.frombuffer(rest, "<u4", n_texts).astype(np.uint32)
            rows = np.frombuffer(rest, dtype, offset=4 * n_texts).reshape(int(counts.sum()), dimension)
        except (OSError, ValueError, struct.error):
            return None
        if hashlib.sha256(content[_DIGEST:]).digest() != digest or not np.isfinite(rows).all():
            return None
        if path not in self._known:  # or another retriever of this run needed it too
            self._known.add(path)
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
            self._known.add(path)
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
    settings: Config, batches: Iterator[list[str]], encode: EncodeAll, dtype: DTypeLike
) -> Iterator[EncodedBatch]:
    """Yield the result of ``encode`` for each batch, reused where it is stored; ``settings`` decides all but the texts.

    Rows are stored as ``dtype``, which must be precise enough for the caller.
    """
    site = _current.get()
    if site is None:
        yield from (batch for _, batch in encode(batches))
        return
    kind: np.dtype[Any] = np.dtype(dtype)
    found: EncodedBatch | None = None

    def path_of(texts: list[str]) -> Path:
        decided = canonical_json([__version__, settings, kind.str, texts]).encode("utf-8", "surrogatepass")
        return site.directory / f"{PREFIX}{hashlib.sha256(decided).hexdigest()[:32]}"

    def missing() -> Iterator[list[str]]:
        """The batches up to the next one that is stored, which is found."""
        nonlocal found
        for texts in batches:
            if (found := site.find(path_of(texts), len(texts), kind)) is not None:
                return
            yield texts

    while True:
        begin, found = time.perf_counter_ns(), None
        for texts, batch in encode(missing()):
            site.keep(path_of(texts), batch, kind, time.perf_counter_ns() - begin)
            yield batch
            begin = time.perf_counter_ns()
        if found is None:
            return
        yield found
