"""Known results for single pairs and single queries, collected from the entries of a store.

Pools of different configurations overlap, so a reranker's scores are stored by pair and an encoder's vectors by query, and
only missing ones are computed. Each value comes from the first entry that has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.benchmarks.stages.store import Entry
from nlp_retrieval.core.candidates import Rows, Scores
from nlp_retrieval.core.components.component import Config
from nlp_retrieval.encoders.base import Vectors


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
