"""Results of stages on disk: one file each, named by its key, so that nothing is computed twice.

A file is an Arrow IPC stream of one row: the metadata of the result, as JSON, and a list for each array, with
its shape in the field's metadata. The schema names the result and has a checksum of the whole file. A file is written aside,
synced and renamed, so it exists completely or not at all: a file that is damaged, truncated, of another format or name, or
possibly written by another user counts as missing, and is computed again. Reading one runs no code, and needs at most a
few times its size in memory. Files are never changed; deleting the folder only costs computing again.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import make_folder, write_atomically
from nlp_retrieval.core.files.cache import read_own
from nlp_retrieval.errors import RetrievalWarning

Arrays = Mapping[str, NDArray[Any]]

FORMAT = 2

_SUFFIX = ".stage"
_LISTS = {pa.large_list(pa.from_numpy_dtype(dtype)): np.dtype(dtype) for dtype in ("<i8", "<i4", "<f8", "<f4")}
_SHAPE, _CHECKSUM = b"shape", b"sha256"
_SCRATCH_AFTER = 3600.0
"""Seconds after which an unrenamed file is assumed to belong to a dead process."""


@dataclass(frozen=True)
class Entry:
    """A result.

    Args:
        about: plain values, as of JSON.
        arrays: by name; int64, int32, float64 or float32. Arrays read from disk are read-only.
    """

    about: Config
    arrays: Arrays = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Approximate size in memory."""
        return sum(array.nbytes for array in self.arrays.values()) + 1024 + 64 * sum(map(_length, self.about.values()))


class StageStore:
    """Entries by group and name.

    Args:
        folder: created when the first entry is stored.
        memory_bytes: the most recently used entries stay in memory, up to this size.
    """

    def __init__(self, folder: str | Path, memory_bytes: int = 2**28) -> None:
        self.folder = Path(folder)
        self._memory_bytes = memory_bytes
        self._held: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._held_bytes = 0
        self._warned = False
        self._clear_scratch()

    def find(self, group: str, name: str) -> Entry | None:
        """Return an entry, or None if there is no valid one."""
        held = self._held.get((group, name))
        if held is not None:
            self._held.move_to_end((group, name))
            return held
        entry = _read(self._path(group, name))
        if entry is not None:
            self.remember(group, name, entry)
        return entry

    def has(self, group: str, name: str) -> bool:
        """Return whether there is a file for an entry; whether it is valid is only known when it is read."""
        path = self._path(group, name)
        try:
            return path in path.parent.iterdir()  # unlike exists(), this is not cached on a network file system
        except FileNotFoundError:
            return False

    def entries(self, group: str) -> Iterator[Entry]:
        """Yield the valid entries of a group on disk, in the order of their names."""
        for path in sorted((self.folder / group).glob(f"*{_SUFFIX}")):
            if not path.name.startswith(".") and (entry := _read(path)) is not None:
                yield entry

    def remember(self, group: str, name: str, entry: Entry) -> None:
        """Keep an entry in memory alone, evicting the least recently used ones."""
        if (before := self._held.pop((group, name), None)) is not None:
            self._held_bytes -= before.bytes
        self._held[group, name] = entry
        self._held_bytes += entry.bytes
        while self._held_bytes > self._memory_bytes and len(self._held) > 1:
            self._held_bytes -= self._held.popitem(last=False)[1].bytes

    def keep(self, group: str, name: str, entry: Entry) -> None:
        """Write an entry; if the disk refuses it, the run continues with one warning."""
        path = self._path(group, name)
        try:
            make_folder(path.parent)
            write_atomically(path, _packed(name, entry))
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"results of stages cannot be kept in {self.folder} ({error.strerror}); they will be computed again",
                    RetrievalWarning,
                    stacklevel=2,
                )

    def bytes(self) -> int:
        """Return the size of the files on disk."""
        total = 0
        for path in self.folder.rglob(f"*{_SUFFIX}"):
            with suppress(OSError):
                total += path.stat().st_size
        return total

    def _path(self, group: str, name: str) -> Path:
        return self.folder / group / f"{name}{_SUFFIX}"

    def _clear_scratch(self) -> None:
        for path in self.folder.rglob(f".*{_SUFFIX}.*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _SCRATCH_AFTER:
                    path.unlink()


def _packed(name: str, entry: Entry) -> bytes:
    """An entry as the content of a file."""
    for key, array in entry.arrays.items():
        if array.dtype not in _LISTS.values():
            raise TypeError(f"{key} is an array of {array.dtype}, which is not kept")
    return _sealed(*_messages(name, json.dumps(entry.about, allow_nan=False), entry.arrays))


def _messages(name: str, about: str, arrays: Arrays) -> tuple[pa.Schema, bytes]:
    """The schema of an entry, without its checksum, and its one batch."""
    columns = [pa.array([about], pa.large_string())]
    fields = [pa.field("about", columns[0].type, metadata={_SHAPE: json.dumps([len(about)])})]
    for key, array in arrays.items():
        values = pa.array(np.ascontiguousarray(array).reshape(-1))
        columns.append(pa.LargeListArray.from_arrays(pa.array([0, len(values)]), values))
        fields.append(pa.field(key, columns[-1].type, metadata={_SHAPE: json.dumps(array.shape)}))
    schema = pa.schema(fields, {"format": str(FORMAT), "name": name})
    return schema, pa.record_batch(columns, schema).serialize().to_pybytes()


def _sealed(schema: pa.Schema, batch: bytes) -> bytes:
    """The content of a file: the schema, including a checksum of schema and batch, and the batch."""
    checksum = hashlib.sha256(schema.serialize().to_pybytes())
    checksum.update(batch)
    head: bytes = schema.with_metadata(schema.metadata | {_CHECKSUM: checksum.hexdigest()}).serialize().to_pybytes()
    return head + batch


def _read(path: Path) -> Entry | None:
    """The entry in a file; None if it is missing or invalid."""
    try:
        return _unpacked(read_own(path), path.name.removesuffix(_SUFFIX))
    except (OSError, EOFError, ValueError, KeyError, TypeError, OverflowError, RecursionError, MemoryError, pa.ArrowException):
        return None


def _unpacked(content: bytes, name: str) -> Entry:
    reader = pa.BufferReader(content)
    schema = pa.ipc.read_schema(reader)
    begin = reader.tell()
    described = schema.with_metadata({key: value for key, value in (schema.metadata or {}).items() if key != _CHECKSUM})
    if _sealed(described, content[begin:]) != content:
        raise ValueError("it is not what was written")
    about, *columns = list(schema)
    (length,) = json.loads(about.metadata[_SHAPE])
    shapes = [json.loads(column.metadata[_SHAPE]) for column in columns]
    if any(size < 0 for shape in shapes for size in shape):
        raise ValueError("there is no array of such a shape")
    # a batch may claim more memory than its file has: its head must match what is written for arrays of these shapes
    alike = {
        column.name: np.frombuffer(content, _LISTS[column.type], math.prod(shape)).reshape(shape)
        for column, shape in zip(columns, shapes, strict=True)
    }
    expected, written = _messages(name, "0" * min(length, len(content)), alike)
    message = pa.ipc.read_message(reader)
    end = len(content) - message.body.size
    if not expected.equals(described, check_metadata=True) or written[: end - begin] != content[begin:end]:
        raise ValueError("it is of another name, or no batch of these arrays")
    batch = pa.ipc.read_record_batch(message, schema)
    batch.validate(full=True)
    plain = json.loads(batch.column(0)[0].as_py())
    if not isinstance(plain, dict):
        raise TypeError("it says nothing about the result")
    arrays = [column.values.to_numpy() for column in batch.columns[1:]]
    return Entry(plain, {name: array.reshape(shape) for name, array, shape in zip(alike, arrays, shapes, strict=True)})


def _length(value: object) -> int:
    return len(value) if isinstance(value, list | dict | str) else 1
