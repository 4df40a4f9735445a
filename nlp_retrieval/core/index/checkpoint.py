"""Checkpoints of an encoding: batches that are already encoded are reused by the next encoding of the same texts.

That is the next build, if one was killed, or the next retriever of a build with the same encoder. A checkpoint is a
file next to the scratch folders of an index directory. It belongs to the items of one segment and to one encoder with its model
and all its settings; a build of other items drops it, and so does the build that publishes. Batches are appended as they are
encoded. Each holds a checksum that includes the one before, and a digest of its texts, so that a batch is used only after the
same batches, for the same texts in the same order. It is not synced to disk: missing or damaged batches are encoded again.
Nothing in it is used before the checksum has been compared, and nothing is unpickled.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
import struct
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from nlp_retrieval._version import __version__
from nlp_retrieval.core.blocks import EncodedBatch, chained, digest_of
from nlp_retrieval.core.components.component import Config, canonical_json
from nlp_retrieval.errors import RetrievalWarning

FORMAT = 1
PREFIX = ".encoding-"

_MAGIC = b"nlp_retrieval encoding\n"
_HEAD = struct.Struct("<IIIQQ")
"""Header of a batch: texts, dimension, texts that are longer than the encoder reads, rows, nanoseconds."""
_DIGEST = hashlib.sha256().digest_size
_NAMED = 16
_LARGEST_BATCH, _LARGEST_DIMENSION = 2**31, 2**20
_NO_FILE = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.EACCES)  # a link, a folder, a socket, another user's file


@dataclass
class CheckpointContext:
    """Location of the checkpoints of a segment while a retriever builds it, and statistics of their use.

    Args:
        directory: the index directory; this process is its writer.
        corpus: fingerprint of all items of the index.
        rows: first row of the segment and the row after its last.
        ends: position up to which each file was read or written in this run; other retrievers' files are included.
        resumed: how many texts an earlier run had encoded.
        shared: how many texts another retriever of this run had encoded, or taken from an earlier one.
        kept: how many texts this retriever read from checkpoints or wrote there, excluding those of the retriever before it.
        seconds: time that the reused texts had taken to encode.
    """

    directory: Path
    corpus: str
    rows: tuple[int, int]
    ends: dict[Path, int] = field(default_factory=dict)
    resumed: int = 0
    shared: int = 0
    kept: int = 0
    seconds: float = 0.0


_current: ContextVar[CheckpointContext | None] = ContextVar("nlp_retrieval_checkpoints", default=None)


@contextmanager
def checkpoints_at(site: CheckpointContext) -> Iterator[None]:
    """Keep checkpoints of everything encoded inside the block."""
    token = _current.set(site)
    try:
        yield
    finally:
        _current.reset(token)


def keep_checkpoints(directory: Path, corpus: str | None = None) -> None:
    """Remove all checkpoints of an index directory except those of items with this fingerprint; only for its writer."""
    kept = "" if corpus is None else corpus[:_NAMED]
    for leftover in directory.glob(f"{PREFIX}*"):
        if leftover.name[len(PREFIX) :].partition("-")[0] != kept:
            _remove(leftover)


EncodeAll = Callable[[Iterator[list[str]]], Generator[tuple[list[str], EncodedBatch], None, None]]
"""Encodes batch by batch, here or elsewhere; yields the results in the order of the batches, with their texts."""


def resumed_batches(
    slot: Config,
    settings: Config,
    batches: Iterator[list[str]],
    encode: EncodeAll,
    dtype: DTypeLike,
    dimension: int | None = None,
) -> Iterator[EncodedBatch]:
    """Yield the result of ``encode`` for each batch; batches already encoded with the same settings are reused.

    Outside of :func:`checkpoints_at` everything is encoded, and no file is written.

    Args:
        slot: name of the encoded data within the segment, including the encoder.
        settings: everything else that determines the result of ``encode``, apart from the texts.
        batches: the texts, in the same batches in every build.
        encode: encodes the remaining batches.
        dtype: type of the stored rows; it must be precise enough for the caller.
        dimension: required dimension of the rows; None if unknown before the first batch.
    """
    site = _current.get()
    if site is None:
        for _, batch in encode(batches):
            yield batch
        return
    with _Checkpoint(site, slot, settings, np.dtype(dtype), dimension) as checkpoint:
        remaining: list[list[str]] = []
        for texts in batches:
            kept = checkpoint.take(texts)
            if kept is None:
                remaining.append(texts)
                break
            yield kept
        with closing(encode(chain(remaining, batches))) as encoded:
            begin = time.perf_counter_ns()
            for texts, batch in encoded:
                checkpoint.add(texts, batch, time.perf_counter_ns() - begin)
                site.kept += len(texts) if checkpoint._file is not None else 0
                yield batch
                begin = time.perf_counter_ns()


class _Checkpoint:
    """One file: its batches are read in order, and the file is rewritten from the first one that does not match."""

    def __init__(
        self, site: CheckpointContext, slot: Config, settings: Config, dtype: np.dtype[Any], dimension: int | None
    ) -> None:
        described = [site.corpus, site.rows, slot, settings, dtype.str]
        self._path = site.directory / f"{PREFIX}{site.corpus[:_NAMED]}-{_hashed(described).hex()[:_NAMED]}"
        self._start = _MAGIC + _hashed([FORMAT, __version__, described])
        self._chain = hashlib.sha256(self._start).digest()
        self._site, self._dtype, self._dimension = site, dtype, dimension
        self._file: BinaryIO | None = None
        self._reading, self._taken = False, 0
        self._end = 0
        """End of the valid part of the file."""

    def __enter__(self) -> _Checkpoint:
        try:
            self._file = _opened(self._path)
            size = os.fstat(self._file.fileno()).st_size
            self._reading = self._file.read(len(self._start)) == self._start
            if not self._reading:
                self._file.seek(0)
                self._file.truncate()
                self._file.write(self._start)
                self._file.flush()
            self._end = len(self._start)
        except OSError as error:
            self._disable(error)
        else:
            if size and not self._reading:
                self._dropped("it is of another version, or damaged")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._site.ends[self._path] = max(self._end, self._site.ends.get(self._path, 0))
            with suppress(OSError):
                self._file.close()

    def take(self, texts: Sequence[str]) -> EncodedBatch | None:
        """Return the next batch if it is one of these texts; None from the first mismatch on."""
        if not self._reading or self._file is None:
            return None
        of_this_run = self._end < self._site.ends.get(self._path, 0)
        try:
            batch, nanoseconds = self._read(texts, self._file)
        except (OSError, ValueError) as error:
            self._reading = False
            if str(error):
                self._dropped(f"damaged: {error}")
            return None
        self._taken += len(texts)
        if of_this_run:
            self._site.shared += len(texts)
        else:
            self._site.resumed += len(texts)
            self._site.kept += len(texts)
        self._site.seconds += nanoseconds / 1e9
        return batch

    def add(self, texts: Sequence[str], batch: EncodedBatch, nanoseconds: int) -> None:
        """Append a batch; if that fails, remove the file and continue without it."""
        if self._file is None:
            return
        rows = np.ascontiguousarray(batch.rows, self._dtype)
        if rows.nbytes > _LARGEST_BATCH:
            self._disable(None)
            return
        head = _HEAD.pack(len(texts), rows.shape[1], batch.n_cut, len(rows), nanoseconds) + digest_of(texts)
        parts = (head, np.ascontiguousarray(batch.counts, "<u4").data, rows.data)
        self._chain = chained(self._chain, parts)
        try:
            self._file.seek(self._end)
            self._file.truncate()
            self._file.writelines((*parts, self._chain))
            self._file.flush()
            self._end = self._file.tell()
        except OSError as error:
            self._disable(error)

    def _read(self, texts: Sequence[str], file: BinaryIO) -> tuple[EncodedBatch, int]:
        """Read the next batch.

        Raises:
            ValueError: it is not a batch of these texts; the message is empty if the file just ends.
        """
        n_bytes_left = os.fstat(file.fileno()).st_size - self._end
        head = file.read(_HEAD.size + _DIGEST)
        if len(head) < _HEAD.size + _DIGEST:
            raise ValueError
        n_texts, dimension, n_cut, n_rows, nanoseconds = _HEAD.unpack_from(head)
        if (n_texts, head[_HEAD.size :]) != (len(texts), digest_of(texts)):
            raise ValueError("it holds other texts")
        n_bytes = n_rows * dimension * self._dtype.itemsize
        fits = dimension == self._dimension or (self._dimension is None and 0 < dimension <= _LARGEST_DIMENSION)
        if not fits or n_cut > n_texts or n_bytes > _LARGEST_BATCH:
            raise ValueError(f"it says that {n_texts} texts have {n_rows} rows of dimension {dimension}")
        if n_bytes_left < len(head) + 4 * n_texts + n_bytes + _DIGEST:
            raise ValueError
        counts, rows = file.read(4 * n_texts), file.read(n_bytes)
        chain = chained(self._chain, (head, counts, rows))
        if file.read(_DIGEST) != chain:
            raise ValueError("a checksum does not match")
        batch = EncodedBatch(
            np.frombuffer(rows, self._dtype).reshape(n_rows, dimension), np.frombuffer(counts, "<u4").astype(np.uint32), n_cut
        )
        if int(batch.counts.sum(dtype=np.uint64)) != n_rows or not np.isfinite(batch.rows).all():
            raise ValueError("its rows are not those of its texts, or not finite")
        self._chain, self._end, self._dimension = chain, file.tell(), dimension
        return batch, nanoseconds

    def _dropped(self, reason: str) -> None:
        warnings.warn(
            f"{self._path}, left by an interrupted build, cannot be continued ({reason}); all passages but the first "
            f"{self._taken:,} are encoded again",
            RetrievalWarning,
            stacklevel=2,
        )

    def _disable(self, error: OSError | None) -> None:
        """Continue without a checkpoint."""
        self.__exit__()
        self._file, self._reading = None, False
        _remove(self._path)
        reason = "a batch is too large" if error is None else error.strerror or str(error)
        warnings.warn(
            f"{self._path} cannot be written ({reason}); if this build is interrupted, it will encode everything again",
            RetrievalWarning,
            stacklevel=2,
        )


def _opened(path: Path) -> BinaryIO:
    """Open a checkpoint for reading and writing; anything at its path that is not this user's own file is removed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
    else:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid():
            return os.fdopen(descriptor, "r+b")
        os.close(descriptor)
    _remove(path)
    return os.fdopen(os.open(path, flags | os.O_EXCL, 0o600), "r+b")


def _hashed(content: object) -> bytes:
    return hashlib.sha256(canonical_json(content).encode("utf-8", "surrogatepass")).digest()


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)  # does not follow links
