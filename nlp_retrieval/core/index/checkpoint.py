"""Checkpoints of an encoding: a batch that is already encoded is not encoded again.

Each batch is a file beside the folders of an index, named by all that decides its vectors. So the next build finds it if one
was killed, and so does the next retriever of a build with the same encoder. The build that publishes removes all.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
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


@dataclass(frozen=True)
class EncodedBatch:
    """The vectors of a batch of texts in order, how many each text has, and how many texts the encoder cut."""

    rows: NDArray[Any]
    counts: NDArray[np.uint32]
    n_cut: int = 0


@dataclass
class Checkpoints:
    """The checkpoints of one writer: how many texts each has, how many were found, and the seconds that those had taken."""

    directory: Path
    stored: dict[Path, int] = field(default_factory=dict)
    resumed: int = 0
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

    def find(self, path: Path) -> EncodedBatch | None:
        """Return the batch of a file; None if it is missing or damaged, or anyone else could have written it."""
        try:
            content = read_own(path)
        except OSError:
            return None
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            return None
        with np.load(BytesIO(content[_DIGEST:]), allow_pickle=False) as file:
            batch = EncodedBatch(file["rows"], file["counts"], int(file["n_cut"]))
            self.seconds += float(file["seconds"])
        if path not in self.stored:  # or another retriever of this run needed it too
            self.resumed += len(batch.counts)
            self.stored[path] = len(batch.counts)
        return batch

    def keep(self, path: Path, batch: EncodedBatch, dtype: DTypeLike, seconds: float) -> None:
        """Write the file of a batch; if that fails, warn, and keep none from then on."""
        if not self._writable:
            return
        file = BytesIO()
        np.savez(file, rows=batch.rows.astype(dtype), counts=batch.counts, n_cut=batch.n_cut, seconds=seconds)
        content = file.getvalue()
        try:
            write_atomically(path, hashlib.sha256(content).digest() + content, durable=False)
            self.stored[path] = len(batch.counts)
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
    """Yield the result of ``encode`` for each batch, reused where it is stored as ``dtype``; ``settings`` decides the rest."""
    site = _current.get()
    if site is None:
        yield from (batch for _, batch in encode(batches))
        return
    found: EncodedBatch | None = None

    def path_of(texts: list[str]) -> Path:
        decided = canonical_json([__version__, settings, np.dtype(dtype).str, texts]).encode("utf-8", "surrogatepass")
        return site.directory / f"{PREFIX}{hashlib.sha256(decided).hexdigest()[:32]}"

    def missing() -> Iterator[list[str]]:
        """The batches up to the next one that is stored, which is found."""
        nonlocal found
        for texts in batches:
            if (found := site.find(path_of(texts))) is not None:
                return
            yield texts

    while True:
        begin, found = time.perf_counter(), None
        for texts, batch in encode(missing()):
            site.keep(path_of(texts), batch, dtype, time.perf_counter() - begin)
            yield batch
            begin = time.perf_counter()
        if found is None:
            return
        yield found
