"""Results of stages on disk: one file each, named by its key, so that nothing is computed twice.

A file is a checksum and, deflated, a line of JSON with the metadata of the result and the shapes of its arrays, and their
bytes. It is written aside, synced and renamed: a file that is damaged, of another format or name, or possibly written by
another user counts as missing, and is computed again. Reading one runs no code. Deleting the folder only costs computing again.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.environment import describe_environment
from nlp_retrieval.core.candidates import Hits, Mask, Rows, Scores
from nlp_retrieval.core.components.component import Component, Config, digest_of_key, with_held
from nlp_retrieval.core.files.atomic import clear_asides, make_folder, write_atomically
from nlp_retrieval.core.files.cache import read_own
from nlp_retrieval.core.index.generation import Generation, fingerprint_of
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.errors import RetrievalWarning

FORMAT = 5

_SUFFIX = ".stage"
_TYPES = ("<i8", "<i4", "<f8", "<f4")


@dataclass(frozen=True)
class Entry:
    """A result: plain values, and arrays of int64, int32, float64 or float32, which are read-only if read from disk."""

    about: Config
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class StageStore:
    """Entries by group and name, in a folder that is created when the first one is stored."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._held: dict[tuple[str, str], Entry] = {}
        self._warned = False

    def find(self, group: str, name: str) -> Entry | None:
        """Return an entry, or None if there is no valid one."""
        return self._held.get((group, name)) or _read(self._path(group, name))

    def entries(self, group: str) -> Iterator[Entry]:
        """Yield the valid entries of a group on disk, in the order of their names."""
        for path in sorted((self.folder / group).glob(f"[!.]*{_SUFFIX}")):
            if (entry := _read(path)) is not None:
                yield entry

    def hold(self, group: str, name: str, entry: Entry) -> None:
        """Keep an entry for this run alone."""
        self._held[group, name] = entry

    def keep(self, group: str, name: str, entry: Entry) -> None:
        """Write an entry; if the disk refuses it, the run goes on with one warning."""
        path = self._path(group, name)
        try:
            make_folder(path.parent)
            clear_asides(path)
            write_atomically(path, _packed(name, entry))
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"results of stages cannot be kept in {self.folder} ({error.strerror}); they will be computed again",
                    RetrievalWarning,
                    stacklevel=2,
                )

    def _path(self, group: str, name: str) -> Path:
        return self.folder / group / f"{name}{_SUFFIX}"


def _packed(name: str, entry: Entry) -> bytes:
    described = {key: [array.dtype.str, array.shape] for key, array in entry.arrays.items()}
    if not {kind for kind, _ in described.values()} <= {*_TYPES}:
        raise TypeError(f"{described} has a type that is not kept")
    head = json.dumps({"format": FORMAT, "name": name, "about": entry.about, "arrays": described}, allow_nan=False)
    rest = zlib.compress(b"".join([head.encode(), b"\n", *(array.tobytes() for array in entry.arrays.values())]), 1)
    return hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _read(path: Path) -> Entry | None:
    """Return the entry in a file; None if it is missing or invalid."""
    try:
        checksum, _, rest = read_own(path).partition(b"\n")
        if hashlib.sha256(rest).hexdigest().encode() != checksum:
            return None
        content = zlib.decompress(rest)
        head, _, _ = content.partition(b"\n")
        described = json.loads(head)
        if (described["format"], described["name"]) != (FORMAT, path.name.removesuffix(_SUFFIX)):
            return None
        arrays, begin = {}, len(head) + 1
        for key, (kind, shape) in described["arrays"].items():
            if kind not in _TYPES or not all(size >= 0 for size in shape):
                return None
            arrays[key] = np.frombuffer(content, kind, math.prod(shape), begin).reshape(shape)
            begin += arrays[key].nbytes
        return Entry(dict(described["about"]), arrays) if begin == len(content) else None
    except (OSError, zlib.error, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError):
        return None


# Keys of stages: equal keys mean equal results.
#
# A key covers the complete configuration of a component and of its parts (search parameters, batch sizes and backends too:
# they may change the last bit), the files of their models, the corpus, the input, and the versions of the packages.


@cache
def _own_code() -> str:
    """Return the checksum of this package's own files."""
    files = sorted(Path(__file__).parents[1].rglob("*.py"))
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


def key_of(stage: str, content: Mapping[str, Any]) -> str:
    """Return the key of a stage, in hexadecimal, from everything that determines its result, as plain values."""
    own = {"stage": stage, "format": FORMAT, "code": _own_code(), "content": dict(content)}
    # wandb only records runs
    versions = {name: version for name, version in describe_environment()["versions"].items() if name != "wandb"}
    return digest_of_key(own | {"versions": versions}).hex()


def candidates_key(
    retriever: BaseRetriever, processed: list[list[str]], depth: int, generation: Generation, allowed: Mask | None
) -> str:
    """Return the key of an opened retriever's results; the arguments are those of ``Stages.candidates``."""
    content: Config = {"retriever": identity_of(retriever), "queries": processed, "depth": depth}
    if allowed is not None:
        content["allowed"] = hashlib.sha256(np.packbits(allowed).tobytes()).hexdigest()
    return key_of("candidates", content | {"corpus": corpus_of(generation), "index": index_of(generation, retriever)})


def scores_group(reranker: BaseReranker, generation: Generation) -> str:
    """Return the group of the store for a reranker's scores of the items of an index."""
    identity = {"reranker": identity_of(reranker, without="blend"), "corpus": corpus_of(generation)}
    return f"scores/{key_of('scores', identity)}"


def identity_of(component: Component, without: str | None = None) -> Config:
    """Return everything that determines the results of a component and its parts, ``without`` one parameter of its own."""
    own = {key: value for key, value in component.config.items() if key != without}
    models = [part.identity for part in with_held(component)]
    return {"config": own, "models": [{key: value for key, value in models[0].items() if key != without}, *models[1:]]}


def corpus_of(generation: Generation) -> str:
    """Return the fingerprint of the items of an index."""
    return generation.manifest.corpus.fingerprint


def index_of(generation: Generation, retriever: BaseRetriever) -> list[str]:
    """Return the checksums of the files that a retriever and its parts search: one corpus may have several indexes."""
    manifest = generation.manifest
    prints = {fingerprint_of(manifest.corpus.fingerprint, part.identity) for part in with_parts([retriever])}
    searched = [segment for record in manifest.retrievers if record.fingerprint in prints for segment in record.segments]
    return [file.sha256 for segment in searched for _, file in sorted(segment.files.items())]


# Candidates as an entry of a store: without their retriever's label, which belongs to the searcher, and without repeats.

_SCORES, _RANKS = "scores", "ranks"


def packed_candidates(batch: Hits, label: str) -> Entry | None:
    """Return candidates as an entry; None if a signal does not begin with the label, so that another could not take them."""
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
    return Entry({"signals": signals}, arrays | columns)


def unpacked_candidates(entry: Entry, label: str) -> Hits:
    """Return the candidates of an entry under a label."""
    arrays = entry.arrays
    scores: Scores = arrays["scores"]
    rows = arrays["rows"].astype(np.int64)
    batch = Hits(arrays["offsets"], rows, scores)
    derived = {_SCORES: scores, _RANKS: batch.ranks.astype(np.float64)}
    signals = {f"{label}{rest}": derived[name] if name in derived else arrays[name] for rest, name in entry.about["signals"]}
    return Hits(batch.offsets, rows, scores, signals)


# Scores of single pairs: pools of different configurations overlap, and only what is missing is scored.


class PairTable:
    """Scores of pairs of a query and an item row, from entries of :func:`pairs_entry`."""

    def __init__(self, n_items: int, entries: Iterable[Entry]) -> None:
        self._n_items = n_items
        self._numbers: dict[str, int] = {}
        self._keys: Rows = np.zeros(0, np.int64)
        self._columns: dict[str, Scores] = {}
        self.add(*entries)

    def keys(self, queries: Sequence[str], owner: Rows, rows: Rows) -> Rows:
        """Return one number per pair ``[pairs]``, of the query of its list and its row."""
        numbers = [self._numbers.setdefault(query, len(self._numbers)) for query in queries]
        keys: Rows = np.array(numbers, np.int64)[owner] * self._n_items + rows
        return keys

    def unknown(self, keys: Rows) -> Rows:
        """Return the positions of unknown pairs, each pair once, at its first position."""
        distinct, first = np.unique(keys, return_index=True)
        missing: Rows = np.sort(first[~np.isin(distinct, self._keys, assume_unique=True)])
        return missing

    def scores(self, keys: Rows) -> dict[str, Scores]:
        """Return the columns ``[pairs]`` of known pairs."""
        positions = np.searchsorted(self._keys, keys)
        return {name: column[positions] for name, column in self._columns.items()}

    def add(self, *entries: Entry) -> None:
        """Add the pairs of entries that are not known yet."""
        keys = [self._keys]
        columns = {name: [column] for name, column in self._columns.items()}
        size = len(self._keys)
        for entry in entries:
            added = self.keys(entry.about["queries"], entry.arrays["query"], entry.arrays["rows"])
            keys.append(added)
            for name in dict.fromkeys([*columns, *entry.about["columns"]]):
                known = columns.setdefault(name, [np.zeros(size)])
                known.append(entry.arrays[f"column:{name}"] if name in entry.about["columns"] else np.zeros(len(added)))
            size += len(added)
        self._keys, first = np.unique(np.concatenate(keys), return_index=True)
        self._columns = {name: np.concatenate(parts)[first] for name, parts in columns.items()}


def pairs_entry(queries: Sequence[str], rows: Rows, columns: Mapping[str, Scores]) -> Entry:
    """Return scored pairs as an entry: ``[pairs]`` each."""
    numbers: dict[str, int] = {}
    owner = np.array([numbers.setdefault(query, len(numbers)) for query in queries], np.int32)
    arrays: dict[str, NDArray[Any]] = {"query": owner, "rows": rows.astype(np.int64)}
    arrays |= {f"column:{name}": column.astype(np.float64) for name, column in columns.items()}
    return Entry({"queries": list(numbers), "columns": list(columns)}, arrays)
