"""Relations between passages, the place of each passage in its family, and the files that hold both.

A relation never leads from a passage to itself, its confidence is 0 to 1, and a type relates a pair at most once. The newest
segment of an index holds those of the whole index; rows are those of the whole index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import Mask, Rows, Scores, SegmentFolder, check_numbers, damaged, mapped, read_json_file, write_output
from nlp_retrieval.retrievers import Hashes, live_of
from nlp_retrieval.systems.policy.chunk_tables.rows import RELATION_TYPES, ChunkRelation

FOLLOWS, TEMPORAL_FOLLOWS = RELATION_TYPES.index("FOLLOWS"), RELATION_TYPES.index("TEMPORAL_FOLLOWS")

_NAMES = "relation_names.json"


@dataclass(frozen=True)
class Relation:
    """A relation from the passage in one row to that in another, of :data:`RELATION_TYPES` or a type of another program."""

    source: int
    target: int
    type: str
    confidence: float


@dataclass(frozen=True, eq=False)
class Relations:
    """Relations as columns, ordered by source, target and type."""

    sources: Rows
    targets: Rows
    types: NDArray[np.int32]
    confidences: Scores
    names: tuple[str, ...] = RELATION_TYPES

    @classmethod
    def of(cls, relations: Iterable[Relation]) -> Relations:
        """Put relations into columns; of several of one type between the same passages the most certain stays."""
        best: dict[tuple[int, int, str], float] = {}
        for one in relations:
            key = one.source, one.target, one.type
            best[key] = max(one.confidence, best.get(key, 0.0))
        names = tuple(dict.fromkeys([*RELATION_TYPES, *sorted({kind for _, _, kind in best})]))
        numbers = {name: number for number, name in enumerate(names)}
        rows = sorted((source, target, numbers[kind], confidence) for (source, target, kind), confidence in best.items())
        columns = np.array(rows, np.float64).reshape(-1, 4).T
        return cls(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2].astype(np.int32), columns[3], names)

    def __len__(self) -> int:
        """Return the number of relations."""
        return len(self.sources)

    def __iter__(self) -> Iterator[Relation]:
        """Yield them in order."""
        columns = (self.sources.tolist(), self.targets.tolist(), self.types.tolist(), self.confidences.tolist())
        for source, target, kind, confidence in zip(*columns, strict=True):
            yield Relation(source, target, self.names[kind], confidence)

    def kind(self, number: int) -> str:
        """Return the type of a relation by its number."""
        return self.names[int(self.types[number])]

    def where(self, kept: Mask) -> Relations:
        """Return those that a mask selects."""
        return Relations(self.sources[kept], self.targets[kept], self.types[kept], self.confidences[kept], self.names)


def chunk_relations(
    relations: Iterable[Relation], item_ids: Sequence[str], method: str = "nlp_retrieval"
) -> Iterator[ChunkRelation]:
    """Yield relations between rows as relations between items, for :meth:`ChunkTables.write_relations`.

    Args:
        relations: by rows, such as those of an opened :class:`HopRetriever`.
        item_ids: of all rows.
        method: that found them; stored with each.

    Examples:
        >>> hop = HopRetriever("bm25")
        >>> report = Searcher([hop]).index(plans, "hop")
        >>> from nlp_retrieval.core import open_generation
        >>> generation = open_generation("hop")
        >>> found = chunk_relations(hop.open(generation).relations, generation.items.ids())
        >>> next(found).type
        'FOLLOWS'
    """
    for one in relations:
        yield ChunkRelation(item_ids[one.source], item_ids[one.target], one.type, one.confidence, {"method": method})


@dataclass(frozen=True, eq=False)
class RelationTables:
    """Relations of an index, and by row what is known of each passage."""

    relations: Relations
    families: Hashes
    versions: NDArray[np.int32]
    new: Scores
    gone: Scores

    @classmethod
    def empty(cls, n_rows: int) -> RelationTables:
        """Return tables of passages of no family, without relations."""
        unknown = np.full(n_rows, np.nan)
        return cls(Relations.of([]), np.zeros(n_rows, np.uint64), np.full(n_rows, -1, np.int32), unknown, unknown.copy())

    def write(self, folder: Path) -> None:
        """Write them as flat files; the same tables give the same bytes."""
        for name, column in self._columns().items():
            np.save(folder / f"{name}.npy", column, allow_pickle=False)
        write_output(folder / _NAMES, json.dumps(self.relations.names).encode())

    def _columns(self) -> dict[str, NDArray[Any]]:
        columns = {one.name: getattr(self.relations, one.name) for one in fields(Relations) if one.name != "names"}
        return columns | {one.name: getattr(self, one.name) for one in fields(self) if one.name != "relations"}

    @classmethod
    def open(cls, folder: Path, n_rows: int) -> RelationTables:
        """Map the tables, and check each once."""
        families = mapped(folder / "families.npy", np.uint64, (n_rows,))
        sources = mapped(folder / "sources.npy", np.int64)
        targets = mapped(folder / "targets.npy", np.int64, sources.shape)
        confidences = mapped(folder / "confidences.npy", np.float64, sources.shape)
        types, names = mapped(folder / "types.npy", np.int32, sources.shape), _names_in(folder / _NAMES)
        check_numbers(folder / "types.npy", types, len(names))
        for name, rows in (("sources", sources), ("targets", targets)):
            check_numbers(folder / f"{name}.npy", rows, len(families))
        if (sources == targets).any():
            raise damaged(folder / "targets.npy", "a passage is related to itself")
        versions = mapped(folder / "versions.npy", np.int32, families.shape)
        new, gone = (mapped(folder / f"{name}.npy", np.float64, families.shape) for name in ("new", "gone"))
        for name, column, unknown in (
            ("confidences", confidences, False),
            ("new", new, np.isnan(new)),
            ("gone", gone, np.isnan(gone)),
        ):
            if not (unknown | ((column >= 0) & (column <= 1))).all():
                raise damaged(folder / f"{name}.npy", "it holds a number outside 0 to 1")
        return cls(Relations(sources, targets, types, confidences, names), families, versions, new, gone)

    @classmethod
    def of_segments(cls, segments: Sequence[SegmentFolder]) -> RelationTables:
        """Return the tables of the newest segment, without relations to or from deleted passages."""
        tables = cls.open(segments[-1].folder, segments[-1].end_row)
        live = np.concatenate([np.ones(segments[0].first_row, bool), live_of(segments)])
        relations = tables.relations
        return replace(tables, relations=relations.where(live[relations.sources] & live[relations.targets]))

    def among(self, live: Mask) -> RelationTables:
        """Return the same without some rows; the others are numbered anew."""
        rows = np.cumsum(live) - 1
        kept = self.relations.where(live[self.relations.sources] & live[self.relations.targets])
        relations = replace(kept, sources=rows[kept.sources], targets=rows[kept.targets])
        return RelationTables(relations, self.families[live], self.versions[live], self.new[live], self.gone[live])


def _names_in(path: Path) -> tuple[str, ...]:
    try:
        names = read_json_file(path, max_bytes=1 << 20)
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from None
    known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not known or tuple(names[: len(RELATION_TYPES)]) != RELATION_TYPES or len(set(names)) != len(names):
        raise damaged(path, "it does not hold distinct names of types")
    return tuple(names)
