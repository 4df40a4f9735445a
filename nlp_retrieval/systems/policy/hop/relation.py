"""Relations between passages, and the files that hold those of one segment.

A relation never leads from a passage to itself, its confidence is 0 to 1, and a type relates a pair at most once. A segment has
the relations of its passages to one another and to earlier ones. The order in a family is stored as a whole, again in each
segment with a passage of the family; only the newest counts. Rows are those of the whole index.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core import (
    Mask,
    Rows,
    Scores,
    SegmentFolder,
    check_numbers,
    damaged,
    mapped,
    read_json_file,
    write_output,
)
from nlp_retrieval.errors import EngineError
from nlp_retrieval.retrievers import Hashes, live_of

RELATION_TYPES = ("SUPPORTS", "EXPLAINS", "CONTRADICTS", "FOLLOWS", "TEMPORAL_FOLLOWS", "CAUSES")
"""The types; a relation is stored with the number of its type.

The source FOLLOWS the target as the next passage of its document, TEMPORAL_FOLLOWS it in the next version of a document, and
SUPPORTS, EXPLAINS, CONTRADICTS or CAUSES what the target says.
"""

MOST_TYPES = 255
"""Most types of an index: those above, and others that tables of other programs name."""

OTHER = "OTHER"
"""Type of relations of further types."""


def limited(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of types, each once; of more than :data:`MOST_TYPES`, the last is that of all others."""
    distinct = tuple(dict.fromkeys(names))
    return distinct if len(distinct) <= MOST_TYPES else (*distinct[: MOST_TYPES - 1], OTHER)


FOLLOWS, TEMPORAL_FOLLOWS = RELATION_TYPES.index("FOLLOWS"), RELATION_TYPES.index("TEMPORAL_FOLLOWS")

Span = tuple[int, int]


@dataclass(frozen=True)
class Relation:
    """A relation between two passages.

    Args:
        source: row of the passage that the relation leaves.
        target: row of the passage that it reaches.
        type: one of :data:`RELATION_TYPES`, or the name of another in a table of another program.
        confidence: 0 to 1.
        source_span: the evidence in the source's content, in characters; empty if there is none.
        target_span: the evidence in the target's content.
        carried: of a temporal relation, the share of words that both have in runs of four; else NaN.
        changed: of a temporal relation, the number of quantities with another value.
    """

    source: int
    target: int
    type: str
    confidence: float
    source_span: Span = (0, 0)
    target_span: Span = (0, 0)
    carried: float = float("nan")
    changed: int = 0


@dataclass(frozen=True, eq=False)
class Relations:
    """Relations as columns, ordered by source, target and type.

    Args:
        sources: rows.
        targets: rows.
        types: numbers of names.
        confidences: 0 to 1.
        spans: ``[relations, 4]``: begin and end in the source, begin and end in the target.
        carried: see :class:`Relation`.
        changed: see :class:`Relation`.
        names: of the types, :data:`RELATION_TYPES` first.
    """

    sources: Rows
    targets: Rows
    types: NDArray[np.uint8]
    confidences: NDArray[np.float32]
    spans: NDArray[np.int32]
    carried: NDArray[np.float32]
    changed: NDArray[np.int32]
    names: tuple[str, ...] = RELATION_TYPES

    @classmethod
    def of(cls, relations: Sequence[Relation]) -> Relations:
        """Put relations into columns; of several of one type between the same passages the most certain stays."""
        names = limited([*RELATION_TYPES, *(relation.type for relation in relations)])
        numbers = {name: number for number, name in enumerate(names)}
        columns = cls(
            np.array([relation.source for relation in relations], np.int64),
            np.array([relation.target for relation in relations], np.int64),
            np.array([numbers.get(relation.type, len(names) - 1) for relation in relations], np.uint8),
            np.array([relation.confidence for relation in relations], np.float32),
            np.array([(*relation.source_span, *relation.target_span) for relation in relations], np.int32).reshape(-1, 4),
            np.array([relation.carried for relation in relations], np.float32),
            np.array([relation.changed for relation in relations], np.int32),
            names,
        )
        return columns.sorted()

    @classmethod
    def joined(cls, parts: Sequence[Relations]) -> Relations:
        """Put lists of relations together."""
        if not parts:
            return cls.of([])
        names = limited(name for part in parts for name in part.names)
        columns = {name: np.concatenate([getattr(part.named(names), name) for part in parts]) for name in _COLUMNS}
        return cls(**columns, names=names).sorted()

    def named(self, names: tuple[str, ...]) -> Relations:
        """Return the same relations with the numbers of other names, which include those of all types."""
        if names[: len(self.names)] == self.names:
            return replace(self, names=names)
        numbers = np.array([names.index(name if name in names else OTHER) for name in self.names], np.uint8)
        return replace(self, types=numbers[self.types], names=names)

    def __len__(self) -> int:
        """Return the number of relations."""
        return len(self.sources)

    def sorted(self) -> Relations:
        """Return them ordered by source, target and type, each at most once."""
        order = np.lexsort((-self.confidences, self.types, self.targets, self.sources))
        keys = np.stack([self.sources, self.targets, self.types.astype(np.int64)])[:, order]
        first = np.ones(len(order), bool)
        first[1:] = (keys[:, 1:] != keys[:, :-1]).any(0)
        return self.where(order[first])

    def where(self, kept: Mask | Rows) -> Relations:
        """Return those selected by a mask or by positions."""
        return Relations(**{name: getattr(self, name)[kept] for name in _COLUMNS}, names=self.names)

    def of_new_rows(self, new_rows: Rows) -> Relations:
        """Return the same relations with row r renumbered to ``new_rows[r]``."""
        return replace(self, sources=new_rows[self.sources], targets=new_rows[self.targets]).sorted()

    def at(self, number: int) -> Relation:
        """Return a relation by its number."""
        begin, end, target_begin, target_end = self.spans[number].tolist()
        return Relation(
            int(self.sources[number]),
            int(self.targets[number]),
            self.names[int(self.types[number])],
            float(self.confidences[number]),
            (begin, end),
            (target_begin, target_end),
            float(self.carried[number]),
            int(self.changed[number]),
        )

    def checked(self, n_rows: int) -> Relations:
        """Return them after checking that they relate existing passages.

        Raises:
            EngineError: a relation from a passage to itself or to none, a confidence outside 0..1, or an unknown type.
        """
        for name, rows in (("source", self.sources), ("target", self.targets)):
            wrong = np.flatnonzero((rows < 0) | (rows >= n_rows))
            if len(wrong):
                raise EngineError(f"relation {wrong[0]}: its {name} is row {rows[wrong[0]]}; expected 0..{n_rows - 1}")
        if len(loops := np.flatnonzero(self.sources == self.targets)):
            raise EngineError(f"relation {loops[0]} leads from row {self.sources[loops[0]]} to itself")
        if len(wrong := np.flatnonzero(~((self.confidences >= 0) & (self.confidences <= 1)))):
            raise EngineError(f"relation {wrong[0]} has the confidence {self.confidences[wrong[0]]}; expected 0 to 1")
        if len(wrong := np.flatnonzero(self.types >= len(self.names))):
            raise EngineError(f"relation {wrong[0]} has the type {self.types[wrong[0]]}; there are {len(self.names)}")
        return self


_COLUMNS: dict[str, tuple[type[np.generic], int | None]] = {
    "sources": (np.int64, None), "targets": (np.int64, None), "types": (np.uint8, None), "confidences": (np.float32, None),
    "spans": (np.int32, 4), "carried": (np.float32, None), "changed": (np.int32, None),
}  # fmt: skip
_NODES: dict[str, type[np.generic]] = {
    "rows": np.int64,
    "versions": np.int32,
    "new": np.float32,
    "gone": np.float32,
    "families": np.uint64,
}


_NAMES = "relation_names.json"
"""Names of the types after :data:`RELATION_TYPES`; missing if there are none."""


def _names_in(folder: Path) -> tuple[str, ...]:
    path = folder / _NAMES
    if not path.exists():
        return RELATION_TYPES
    try:
        others = read_json_file(path, max_bytes=1 << 20)
    except (OSError, ValueError) as error:
        raise damaged(path, str(error)) from None
    names = [*RELATION_TYPES, *(others if isinstance(others, list) else [None])]
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names) or len(names) > MOST_TYPES:
        raise damaged(path, "it does not hold distinct names of types")
    return tuple(names)


def is_structure(relations: Relations) -> Mask:
    """Return which relations are of order."""
    return np.isin(relations.types, [FOLLOWS, TEMPORAL_FOLLOWS])


@dataclass(frozen=True, eq=False)
class Nodes:
    """Versions and changes of passages in families.

    Args:
        rows: ascending.
        versions: the number of the version of each in its family, from 0; -1 for none.
        new: the share of its words that the version before does not have; NaN if there is none.
        gone: the share of its words that the next version does not have; NaN if there is none.
        families: the hash of the family of each.
    """

    rows: Rows
    versions: NDArray[np.int32]
    new: NDArray[np.float32]
    gone: NDArray[np.float32]
    families: Hashes

    def where(self, kept: Mask | Rows) -> Nodes:
        """Return those selected by a mask or by positions."""
        return Nodes(*(getattr(self, name)[kept] for name in _NODES))

    @classmethod
    def joined(cls, parts: Sequence[Nodes]) -> Nodes:
        """Join them, by row."""
        none = cls(*(np.zeros(0, kind) for kind in _NODES.values()))
        columns = [np.concatenate([getattr(part, name) for part in (none, *parts)]) for name in _NODES]
        return cls(*columns).where(np.argsort(columns[0], kind="stable"))

    def over(self, n_rows: int) -> tuple[NDArray[np.int32], Scores, Scores]:
        """Return versions, new and gone by row, for all rows of an index; -1 and NaN if unknown."""
        versions, new, gone = np.full(n_rows, -1, np.int32), np.full(n_rows, np.nan), np.full(n_rows, np.nan)
        versions[self.rows], new[self.rows], gone[self.rows] = self.versions, self.new, self.gone
        return versions, new, gone


@dataclass(frozen=True, eq=False)
class RelationTables:
    """Tables of one segment, or of all together.

    Args:
        relations: ordered by source, target and type.
        families: ``[rows of the segment]``, the hash of the family of each; 0 for none.
        editions: ``[rows of the segment]``, the hash of family and version of each; 0 for none.
        told: the families whose order it holds, ascending.
        nodes: versions and changes of their passages.
        centrality: ``[rows of the index, 3]``: degree, PageRank and betweenness, when the segment was written.
    """

    relations: Relations
    families: Hashes
    editions: Hashes
    told: Hashes
    nodes: Nodes
    centrality: NDArray[np.float32]

    def write(self, folder: Path) -> None:
        """Write them as flat files; the same tables give the same bytes."""
        columns: dict[str, NDArray[Any]] = {f"relation_{name}": getattr(self.relations, name) for name in _COLUMNS}
        columns |= {f"node_{name}": getattr(self.nodes, name).astype(kind) for name, kind in _NODES.items()}
        columns |= {name: getattr(self, name) for name in ("families", "editions", "told", "centrality")}
        for name, column in columns.items():
            np.save(folder / f"{name}.npy", column, allow_pickle=False)
        if others := self.relations.names[len(RELATION_TYPES) :]:
            write_output(folder / _NAMES, json.dumps(others).encode())

    @classmethod
    def open(cls, segment: SegmentFolder) -> RelationTables:
        """Map the tables of a segment, and check each once.

        Raises:
            IndexDamagedError: a file is missing, cut off, or does not belong to this segment.
        """
        folder, n_rows = segment.folder, segment.end_row
        sources = mapped(folder / "relation_sources.npy", np.int64)
        count = len(sources)
        columns = {
            name: mapped(folder / f"relation_{name}.npy", kind, (count,) if width is None else (count, width))
            for name, (kind, width) in _COLUMNS.items()
        }
        names = _names_in(folder)
        relations = Relations(**columns, names=names)
        for name in ("sources", "targets"):
            check_numbers(folder / f"relation_{name}.npy", columns[name], n_rows)
        check_numbers(folder / "relation_types.npy", columns["types"], len(names))
        if (columns["sources"] == columns["targets"]).any():
            raise damaged(folder / "relation_targets.npy", "a passage is related to itself")
        if not ((columns["confidences"] >= 0) & (columns["confidences"] <= 1)).all():
            raise damaged(folder / "relation_confidences.npy", "it holds a number outside 0 to 1")
        spans = columns["spans"]
        if count and (spans.min() < 0 or (spans[:, 1] < spans[:, 0]).any() or (spans[:, 3] < spans[:, 2]).any()):
            raise damaged(folder / "relation_spans.npy", "a span of text ends before it begins")
        rows = mapped(folder / "node_rows.npy", np.int64)
        check_numbers(folder / "node_rows.npy", rows, n_rows)
        told_of = {name: mapped(folder / f"node_{name}.npy", kind, rows.shape) for name, kind in _NODES.items()}
        nodes = Nodes(**told_of)
        for name, shares in (("new", nodes.new), ("gone", nodes.gone)):
            if not (np.isnan(shares) | ((shares >= 0) & (shares <= 1))).all():
                raise damaged(folder / f"node_{name}.npy", "it holds a number outside 0 to 1")
        centrality = mapped(folder / "centrality.npy", np.float32, (n_rows, 3))
        if not ((centrality >= 0) & (centrality <= 1)).all():
            raise damaged(folder / "centrality.npy", "it holds a number outside 0 to 1")
        families, editions = (mapped(folder / f"{name}.npy", np.uint64, (len(segment),)) for name in ("families", "editions"))
        return cls(relations, families, editions, mapped(folder / "told.npy", np.uint64), nodes, centrality)

    @classmethod
    def of_segments(cls, segments: Sequence[SegmentFolder]) -> RelationTables:
        """Join adjacent segments, without relations to or from deleted passages.

        Args:
            segments: at least one.

        Raises:
            IndexDamagedError: see :meth:`open`.
        """
        tables = [cls.open(segment) for segment in segments]
        live = np.concatenate([np.ones(segments[0].first_row, bool), live_of(segments)])
        families = np.concatenate([table.families for table in tables])
        by_row = np.zeros(segments[-1].end_row, np.uint64)
        for table in tables:
            by_row[table.nodes.rows] = table.nodes.families
        newest: set[int] = set()
        kept_relations, kept_nodes = [], []
        for table in reversed(tables):
            relations, nodes = table.relations, table.nodes
            stale = np.array(sorted(newest), np.uint64)
            alive = live[relations.sources] & live[relations.targets]
            kept_relations.append(
                relations.where(alive & ~(is_structure(relations) & np.isin(by_row[relations.sources], stale)))
            )
            kept_nodes.append(nodes.where(live[nodes.rows] & ~np.isin(nodes.families, stale)))
            newest |= set(table.told.tolist())
        editions = np.concatenate([table.editions for table in tables])
        keys = np.array(sorted(newest), np.uint64)
        return cls(Relations.joined(kept_relations), families, editions, keys, Nodes.joined(kept_nodes), tables[-1].centrality)

    def renumbered(self, first_row: int, live: Mask) -> RelationTables:
        """Return the same without deleted passages: rows from ``first_row`` on are renumbered.

        Args:
            first_row: of these tables.
            live: ``[rows of these tables]``.
        """
        whole = np.concatenate([np.ones(first_row, bool), live])
        new_rows = np.cumsum(whole) - 1
        nodes = replace(self.nodes, rows=new_rows[self.nodes.rows])
        relations = self.relations.of_new_rows(new_rows)
        return replace(
            self, relations=relations, families=self.families[live], editions=self.editions[live], nodes=nodes,
            centrality=self.centrality[whole],
        )  # fmt: skip
