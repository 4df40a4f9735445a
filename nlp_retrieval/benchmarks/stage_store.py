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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.core.candidates import CandidateBatch, Mask, Rows, Scores
from nlp_retrieval.core.components.code import own_code
from nlp_retrieval.core.components.component import Component, Config, canonical_json, with_held
from nlp_retrieval.core.files.atomic import make_folder, write_atomically
from nlp_retrieval.core.files.cache import read_own
from nlp_retrieval.core.index.generation import Generation, fingerprint_of
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.encoders.base import Vectors
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
    expected, recorded = _messages(name, "0" * min(length, len(content)), alike)
    message = pa.ipc.read_message(reader)
    end = len(content) - message.body.size
    if not expected.equals(described, check_metadata=True) or recorded[: end - begin] != content[begin:end]:
        raise ValueError("it is of another name, or no batch of these arrays")
    batch = pa.ipc.read_record_batch(message, schema)
    batch.validate(full=True)
    plain = json.loads(batch.column(0)[0].as_py())
    if not isinstance(plain, dict):
        raise TypeError("it does not describe the result")
    arrays = [column.values.to_numpy() for column in batch.columns[1:]]
    return Entry(plain, {name: array.reshape(shape) for name, array, shape in zip(alike, arrays, shapes, strict=True)})


def _length(value: object) -> int:
    return len(value) if isinstance(value, list | dict | str) else 1


# Keys of stages: equal keys mean equal results.
#
# A key covers the complete configuration of a component and of its parts (search parameters, batch sizes and backends too:
# they may change the last bit), the files of their models, the corpus, the input, and the versions of the packages.

CANDIDATES = "candidates"
"""The group of the store for lists of retrievers."""

_NO_PART_IN_RESULTS = ("wandb",)


def key_of(stage: str, content: Mapping[str, Any]) -> str:
    """Return the key of a stage, in hexadecimal.

    Args:
        stage: the kind of stage.
        content: plain values, as in JSON: everything that determines the result.
    """
    whole = {"stage": stage, "format": FORMAT, "versions": versions(), "content": dict(content)}
    return hashlib.sha256(canonical_json(whole).encode("utf-8", "surrogatepass")).hexdigest()


def candidates_key(
    retriever: BaseRetriever, processed: list[list[str]], depth: int, generation: Generation, allowed: Mask | None
) -> str:
    """Return the key of an opened retriever's results; the arguments are those of ``Stages.candidates``."""
    content: Config = {"retriever": identity_of(retriever), "queries": processed, "depth": depth}
    if allowed is not None:
        content["allowed"] = hashlib.sha256(np.packbits(allowed).tobytes()).hexdigest()
    return key_of(CANDIDATES, content | {"corpus": corpus_of(generation), "index": index_of(generation, retriever)})


def scores_group(reranker: BaseReranker, generation: Generation) -> str:
    """Return the group of the store for a reranker's scores of the items of an index."""
    identity = {"reranker": identity_of(reranker, without="blend"), "corpus": corpus_of(generation)}
    return f"scores/{key_of('scores', identity)}"


def pairs_key(queries: Sequence[str], rows: Rows) -> str:
    """Return the key of the scores of pairs ``[pairs]``, within their group."""
    return key_of("scores", {"queries": list(queries), "rows": hashlib.sha256(rows.astype(np.int64).tobytes()).hexdigest()})


def identity_of(component: Component, without: str | None = None) -> Config:
    """Return everything that determines a component's results.

    Args:
        component: the component, with its parts at any depth.
        without: a parameter of the component itself to ignore.
    """
    own = {key: value for key, value in component.config.items() if key != without}
    models = [part.identity for part in with_held(component)]
    return {"config": own, "models": [{key: value for key, value in models[0].items() if key != without}, *models[1:]]}


def corpus_of(generation: Generation) -> str:
    """Return the fingerprint of the items of an index."""
    return generation.manifest.corpus.fingerprint


def index_of(generation: Generation, retriever: BaseRetriever) -> list[str]:
    """Return the checksums of the files that a retriever and its parts search.

    There may be several indexes of the same items: one with joined segments may keep the training on its first items.
    """
    manifest = generation.manifest
    prints = {fingerprint_of(manifest.corpus.fingerprint, part.identity) for part in with_parts([retriever])}
    searched = [segment for record in manifest.retrievers if record.fingerprint in prints for segment in record.segments]
    return [file.sha256 for segment in searched for _, file in sorted(segment.files.items())]


def hardware() -> Config:
    """Return what timings depend on besides configuration and versions."""
    return describe_environment()["hardware"]  # type: ignore[no-any-return]


def versions() -> Config:
    """Return the versions of everything that may change a result."""
    known = {name: version for name, version in describe_environment()["versions"].items() if name not in _NO_PART_IN_RESULTS}
    return known | {"own code": own_code()}


# Candidates as an entry of a store: without their retriever's label, which belongs to the searcher, and without repeats.

_SCORES, _RANKS = "scores", "ranks"


def packed(batch: CandidateBatch, label: str, about: Config) -> Entry | None:
    """Create an entry of candidates; None if a signal does not begin with the label, so it could not be reused under another.

    Args:
        batch: a retriever's output.
        label: its label there.
        about: more about it.
    """
    signals: list[list[str]] = []
    columns: dict[str, NDArray[np.float64]] = {}
    for key, column in batch.signals.items():
        rest = key.removeprefix(label)
        if rest == key or rest[:1] not in {".", "["}:
            return None
        if np.array_equal(column, batch.scores):
            signals.append([rest, _SCORES])
        elif np.array_equal(column, batch.ranks):
            signals.append([rest, _RANKS])
        else:
            signals.append([rest, name := f"signal{len(columns)}"])
            columns[name] = column.astype(np.float64, copy=False)
    small = np.int32 if batch.rows.max(initial=0) <= np.iinfo(np.int32).max else np.int64
    arrays: dict[str, NDArray[Any]] = {
        "offsets": batch.offsets.astype(np.int64, copy=False),
        "rows": batch.rows.astype(small),
        "scores": batch.scores.astype(np.float64, copy=False),
    }
    if batch.subquery.any():
        arrays["subquery"] = batch.subquery.astype(np.int32, copy=False)
    return Entry({"signals": signals} | about, arrays | columns)


def unpacked(entry: Entry, label: str) -> CandidateBatch:
    """Return the candidates of an entry under a label."""
    arrays = entry.arrays
    scores: Scores = arrays["scores"]
    rows = arrays["rows"].astype(np.int64)
    subquery = arrays.get("subquery", np.zeros(len(rows), np.int32))
    batch = CandidateBatch(arrays["offsets"], rows, scores, subquery)
    derived = {_SCORES: scores, _RANKS: batch.ranks.astype(np.float64)}
    signals = {f"{label}{rest}": derived[name] if name in derived else arrays[name] for rest, name in entry.about["signals"]}
    return CandidateBatch(batch.offsets, rows, scores, subquery, signals)


# Known results for single pairs and single queries, collected from the entries of a store.
#
# Pools of different configurations overlap, so a reranker's scores are stored by pair and an encoder's vectors by query, and
# only missing ones are computed. Each value comes from the first entry that has it.


class PairTable:
    """Scores of pairs of a query and an item row.

    Args:
        n_items: number of items of the index.
        entries: entries of :func:`pairs_entry`.
    """

    def __init__(self, n_items: int, entries: Iterable[Entry]) -> None:
        self._n_items = n_items
        self._numbers: dict[str, int] = {}
        self._keys: Rows = np.zeros(0, np.int64)
        self._columns: dict[str, Scores] = {}
        self._sources: NDArray[np.int32] = np.zeros(0, np.int32)
        self._about: list[Config] = []
        self._pending: list[Entry] = list(entries)

    def keys(self, queries: Sequence[str], owner: Rows, rows: Rows) -> Rows:
        """Return one number per pair.

        Args:
            queries: one per list.
            owner: ``[pairs]``, the list of each.
            rows: ``[pairs]``.
        """
        numbers = [self._numbers.setdefault(query, len(self._numbers)) for query in queries]
        keys: Rows = np.array(numbers, np.int64)[owner] * self._n_items + rows
        return keys

    def add(self, entry: Entry) -> None:
        """Add the pairs of an entry that are not known yet."""
        self._pending.append(entry)

    def unknown(self, keys: Rows) -> Rows:
        """Return the positions of unknown pairs, each pair once, at its first position."""
        self._settle()
        distinct, first = np.unique(keys, return_index=True)
        missing: Rows = np.sort(first[~np.isin(distinct, self._keys, assume_unique=True)])
        return missing

    def scores(self, keys: Rows) -> tuple[dict[str, Scores], list[tuple[Config, float]]]:
        """Return the columns of known pairs, and the metadata of their entries.

        Returns:
            Columns ``[pairs]``, and per entry its metadata with the share of its pairs that are among these.
        """
        self._settle()
        positions = np.searchsorted(self._keys, keys)
        sources = np.bincount(self._sources[np.unique(positions)], minlength=len(self._about))
        used: list[int] = np.flatnonzero(sources).tolist()
        names = dict.fromkeys(name for number in used for name in self._about[number]["columns"])
        about = [(self._about[number], sources[number] / max(self._about[number]["pairs"], 1)) for number in used]
        return {name: self._columns[name][positions] for name in names}, about

    def _settle(self) -> None:
        if not self._pending:
            return
        keys, sources = [self._keys], [self._sources]
        columns = {name: [column] for name, column in self._columns.items()}
        size = len(self._keys)
        for entry in self._pending:
            numbers = [self._numbers.setdefault(query, len(self._numbers)) for query in entry.about["queries"]]
            rows = entry.arrays["rows"].astype(np.int64)
            keys.append(np.array(numbers, np.int64)[entry.arrays["query"]] * self._n_items + rows)
            sources.append(np.full(len(rows), len(self._about), np.int32))
            for name in dict.fromkeys([*columns, *entry.about["columns"]]):
                known = columns.setdefault(name, [np.zeros(size)])
                known.append(entry.arrays[f"column:{name}"] if name in entry.about["columns"] else np.zeros(len(rows)))
            size += len(rows)
            self._about.append(entry.about | {"pairs": len(rows)})
        self._keys, first = np.unique(np.concatenate(keys), return_index=True)
        self._sources = np.concatenate(sources)[first]
        self._columns = {name: np.concatenate(parts)[first] for name, parts in columns.items()}
        self._pending = []


def pairs_entry(queries: Sequence[str], rows: Rows, columns: dict[str, Scores], about: Config) -> Entry:
    """Create an entry of scored pairs.

    Args:
        queries: ``[pairs]``.
        rows: ``[pairs]``.
        columns: ``[pairs]`` each.
        about: more about it.
    """
    numbers: dict[str, int] = {}
    owner = np.array([numbers.setdefault(query, len(numbers)) for query in queries], np.int32)
    arrays: dict[str, NDArray[Any]] = {"query": owner, "rows": rows.astype(np.int64)}
    arrays |= {f"column:{name}": column.astype(np.float64) for name, column in columns.items()}
    return Entry({"queries": list(numbers), "columns": list(columns)} | about, arrays)


class VectorTable:
    """Vectors of queries.

    Args:
        entries: entries of :func:`vectors_entry`.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._known: dict[str, tuple[Vectors, Config]] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add the queries of an entry that are not known yet."""
        for query, vector in zip(entry.about["queries"], entry.arrays["vectors"], strict=True):
            self._known.setdefault(query, (vector, entry.about))

    def unknown(self, queries: Sequence[str]) -> list[str]:
        """Return the unknown queries, each once."""
        return [query for query in dict.fromkeys(queries) if query not in self._known]

    def vectors(self, queries: Sequence[str]) -> tuple[Vectors, list[tuple[Config, float]]]:
        """Return ``[queries, dimension]``, and per entry its metadata with the share of its queries that are among these."""
        known = [self._known[query] for query in queries]
        used: dict[int, tuple[Config, set[str]]] = {}
        for query, (_, about) in zip(queries, known, strict=True):
            used.setdefault(id(about), (about, set()))[1].add(query)
        return np.stack([vector for vector, _ in known]), [
            (about, len(asked) / len(about["queries"])) for about, asked in used.values()
        ]


def vectors_entry(queries: Sequence[str], vectors: Vectors, about: Config) -> Entry:
    """Create an entry of the vectors of distinct queries, ``[queries, dimension]``."""
    return Entry({"queries": list(queries)} | about, {"vectors": vectors.astype(np.float32, copy=False)})


def parts_between_lists(offsets: Rows, at_least: int) -> Iterator[tuple[int, int]]:
    """Split pairs at list boundaries into parts of a minimum size; yield the start and end of each."""
    first = 0
    for end in offsets[1:].tolist():
        if end - first >= at_least or (end == offsets[-1] and end > first):
            yield first, end
            first = end
