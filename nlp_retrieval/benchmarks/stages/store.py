"""Results of stages on disk: one file each, named by what it is a result of, so that nothing is computed twice.

A file is written aside, synced and renamed, so it is there whole or not at all. It carries its own checksum and name: what
is damaged, cut off, of another format or of another name, or could have been written by another user, is not there, and is
computed again. Arrays are stored as their plain bytes with type and shape, so that reading one runs no code. Files are never
changed; the folder may be deleted at any time, at the price of computing again.
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
from numpy.typing import NDArray

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.files.atomic import make_folder, write_atomically
from nlp_retrieval.core.files.cache import read_own
from nlp_retrieval.errors import RetrievalWarning

Arrays = Mapping[str, NDArray[Any]]

FORMAT = 1

_MAGIC = f"nlp-retrieval stage {FORMAT} ".encode()
_SUFFIX = ".stage"
_DTYPES = ("<i8", "<i4", "<f8", "<f4")
_DIGEST = 64
_ALIGNED = 64
_SCRATCH_AFTER = 3600.0
"""Seconds after which a file that was never renamed belongs to a process that is gone."""


@dataclass(frozen=True)
class Entry:
    """A result.

    Args:
        told: plain values, as of JSON.
        arrays: by name; int64, int32, float64 or float32. Those that were read cannot be written to.
    """

    told: Config
    arrays: Arrays = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Roughly what it takes in memory."""
        return sum(array.nbytes for array in self.arrays.values()) + 1024 + 64 * sum(map(_length, self.told.values()))


class StageStore:
    """Entries by group and name.

    Args:
        folder: made when the first entry is kept.
        memory_bytes: entries that were used last stay in memory, up to this size.
    """

    def __init__(self, folder: str | Path, memory_bytes: int = 2**28) -> None:
        self.folder = Path(folder)
        self._memory_bytes = memory_bytes
        self._held: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._held_bytes = 0
        self._told = False
        self._clear_scratch()

    def find(self, group: str, name: str) -> Entry | None:
        """Return an entry, or None where there is none that can be believed."""
        held = self._held.get((group, name))
        if held is not None:
            self._held.move_to_end((group, name))
            return held
        entry = _read(self._path(group, name))
        if entry is not None:
            self.remember(group, name, entry)
        return entry

    def entries(self, group: str) -> Iterator[Entry]:
        """Yield the entries of a group that are on disk and can be believed, in the order of their names."""
        for path in sorted((self.folder / group).glob(f"*{_SUFFIX}")):
            if not path.name.startswith(".") and (entry := _read(path)) is not None:
                yield entry

    def remember(self, group: str, name: str, entry: Entry) -> None:
        """Hold an entry in memory alone, at the expense of those that were not used for longest."""
        if (before := self._held.pop((group, name), None)) is not None:
            self._held_bytes -= before.bytes
        self._held[group, name] = entry
        self._held_bytes += entry.bytes
        while self._held_bytes > self._memory_bytes and len(self._held) > 1:
            self._held_bytes -= self._held.popitem(last=False)[1].bytes

    def keep(self, group: str, name: str, entry: Entry) -> None:
        """Write an entry; where the disk does not take it, the run goes on and one warning says so."""
        path = self._path(group, name)
        try:
            make_folder(path.parent)
            write_atomically(path, _packed(name, entry))
        except OSError as error:
            if not self._told:
                self._told = True
                warnings.warn(
                    f"results of stages cannot be kept in {self.folder} ({error.strerror}); they will be computed again",
                    RetrievalWarning,
                    stacklevel=2,
                )

    def bytes(self) -> int:
        """What the files take on disk."""
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
    """One line with the checksum of all that follows; one line of JSON; the arrays, each at a multiple of 64 bytes."""
    arrays = {key: np.ascontiguousarray(array) for key, array in entry.arrays.items()}
    for key, array in arrays.items():
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"{key} is an array of {array.dtype}, which is not kept")
    shapes = [[key, array.dtype.str, list(array.shape)] for key, array in arrays.items()]
    head = json.dumps({"name": name, "arrays": shapes, "told": entry.told}, allow_nan=False).encode()
    parts = [head]
    size = len(_MAGIC) + _DIGEST + 1 + len(head)
    for array in arrays.values():
        gap = b"\n" + b" " * (-(size + 1) % _ALIGNED)
        parts += [gap, array.tobytes()]
        size += len(gap) + array.nbytes
    body = b"".join([*parts, b"\n"])
    return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _read(path: Path) -> Entry | None:
    """The entry in a file; None where it is missing, or anything about it is not as it was written."""
    try:
        content = read_own(path)
    except OSError:
        return None
    begin = len(_MAGIC) + _DIGEST + 1
    checksum = hashlib.sha256(memoryview(content)[begin:]).hexdigest().encode()
    if content[:begin] != _MAGIC + checksum + b"\n":
        return None
    try:
        return _unpacked(content, begin, path.name.removesuffix(_SUFFIX))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _unpacked(content: bytes, begin: int, name: str) -> Entry:
    end = content.index(b"\n", begin)
    head = json.loads(content[begin:end])
    if head["name"] != name:
        raise ValueError(f"this is {head['name']!r}")
    arrays: dict[str, NDArray[Any]] = {}
    for key, dtype, shape in head["arrays"]:
        if dtype not in _DTYPES:
            raise TypeError(f"{key} is of type {dtype!r}")
        start = end + 1 + -(end + 1) % _ALIGNED
        count = math.prod(shape)
        arrays[key] = np.frombuffer(content, dtype, count, start).reshape(shape) if count else np.zeros(shape, dtype)
        end = start + count * arrays[key].itemsize
    if not isinstance(head["told"], dict):
        raise TypeError("it tells nothing")
    return Entry(head["told"], arrays)


def _length(value: object) -> int:
    return len(value) if isinstance(value, list | dict | str) else 1
