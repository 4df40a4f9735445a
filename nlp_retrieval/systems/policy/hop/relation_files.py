"""Relations of a segment of an index: found in the passages, or read from a table of chunks, and written to its files.

Found relations: the order of passages and versions is computed for each affected family as a whole. All others are judged
between a passage and its nearest earlier neighbours: within the same version of its family, and a few of other families. So
added passages, in whatever portions, have the relations that they would have in an index built at once.

Stored relations are read when items are indexed or added; a search uses no database. A checksum of the table's relations is
kept, so that indexing the same items again detects changes. They hold no changes between versions, so their passages are of no
family.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nlp_retrieval.core import ItemTable, Mask, Rows, SegmentFolder, Stream, damaged, mapped, progress, read_blocks, tracked
from nlp_retrieval.encoders import BaseEncoder, Vectors, write_passages
from nlp_retrieval.errors import IndexDamagedError, ItemError, RetrievalWarning, SourceError
from nlp_retrieval.retrievers import Hashes, Stack, hash_of, live_among, live_of
from nlp_retrieval.systems.policy.chunk_tables.rows import ChunkRelation
from nlp_retrieval.systems.policy.chunk_tables.tables import ChunkTablesLoader
from nlp_retrieval.systems.policy.hop.graph import centrality_of
from nlp_retrieval.systems.policy.hop.judging import Passage, relations_between, statements_of, terms_of
from nlp_retrieval.systems.policy.hop.neighbours import Pairs, VectorsAt, neighbours_before
from nlp_retrieval.systems.policy.hop.relation import (
    MOST_TYPES,
    Nodes,
    Relation,
    Relations,
    RelationTables,
    is_structure,
    limited,
)
from nlp_retrieval.systems.policy.hop.versions import Place, RelationFields, nearness_of, structure_of


class RelationFiles(ABC):
    """Writes the relations of the passages of a segment, and the data needed to add more passages."""

    @abstractmethod
    def build(self, items: ItemTable, folder: Path) -> None:
        """Write the first segment of an index."""

    @abstractmethod
    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        """Write the segment of added items: their relations to one another and to earlier items."""

    @abstractmethod
    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        """Write adjacent segments as one, without deleted passages.

        Args:
            segments: at least one.
            items: those of the segments that are not deleted.
            folder: an empty folder.
        """

    @abstractmethod
    def rows_in(self, folder: Path) -> int:
        """Return the number of passages of a segment."""

    @abstractmethod
    def check(self, segments: Sequence[SegmentFolder]) -> None:
        """Check the files that searches do not read, but additions and merges do.

        Raises:
            IndexDamagedError: a file does not hold what was written.
        """

    @abstractmethod
    def require(self, segments: Sequence[SegmentFolder]) -> None:
        """Check that the source of the relations has not changed since the newest segment was written.

        Raises:
            SourceError: the source cannot be read.
            IndexDamagedError: it has changed.
        """


_ROWS_AT_ONCE, _READ_AT_ONCE, _KEPT = 128, 1024, 4096


@dataclass(frozen=True)
class RelationSettings:
    """Settings for finding relations."""

    fields: RelationFields
    neighbours: int
    across: int
    min_similarity: float
    min_carried: float


def find_relations(
    everything: ItemTable,
    first_row: int,
    before: RelationTables | None,
    vectors_at: VectorsAt,
    settings: RelationSettings,
    live: Mask,
) -> RelationTables:
    """Return the tables of the rows from ``first_row`` on.

    Args:
        everything: the items of the whole index.
        first_row: the first added row; 0 for a new index.
        before: the tables of the rows before; None if there are none.
        vectors_at: vectors of rows of the whole index.
        settings: for finding relations.
        live: ``[rows]``, whether an item is not deleted.
    """  # fmt: skip
    n_rows = len(everything)
    places = _places_of(everything, first_row, settings.fields)
    families, editions = (
        np.array([_hash(getattr(place, name)) for place in places], np.uint64) for name in ("family", "edition")
    )
    all_families = families if before is None else np.concatenate([before.families, families])
    all_editions = editions if before is None else np.concatenate([before.editions, editions])
    new_rows = np.arange(first_row, n_rows)
    new_rows = new_rows[live[new_rows]]
    members = _members(all_families, live)
    numbers = np.unique(families)
    numbers = numbers[numbers > 0]
    tables: list[Relations] = []
    nodes: list[Nodes] = []
    with progress("relations: comparing versions", len(numbers)) as advance:
        for family in numbers:
            part = _family(everything, int(family), members.get(int(family), new_rows[:0]), vectors_at, settings)
            tables.append(Relations.of(part[0]))
            nodes.append(part[1])
            advance(1)
    pairs = _pairs(new_rows, all_families, all_editions, vectors_at, settings, live)
    tables.append(Relations.of(list(_judged(everything, pairs, all_families, settings))))
    relations = Relations.joined(tables).checked(n_rows)
    everything_related = relations
    if before is not None:
        kept = ~(is_structure(before.relations) & np.isin(all_families[before.relations.sources], numbers))
        everything_related = Relations.joined([before.relations.where(kept), relations])
    centrality = centrality_of(everything_related, n_rows)
    return RelationTables(relations, families, editions, numbers, Nodes.joined(nodes), centrality)


def _places_of(everything: ItemTable, first_row: int, fields: RelationFields) -> list[Place]:
    places = []
    for first in range(first_row, len(everything), _READ_AT_ONCE):
        rows = np.arange(first, min(first + _READ_AT_ONCE, len(everything)))
        places += [fields.place_of(item) for item in everything.items(rows)]
    return places


def _hash(key: str) -> int:
    return max(1, hash_of(key.encode(errors="replace").decode())) if key else 0


def _members(keys: Hashes, live: Mask) -> dict[int, Rows]:
    """Return the rows that are not deleted, by their keys, ascending; key 0 is omitted."""
    rows = np.flatnonzero(live & (keys > 0))
    rows = rows[np.argsort(keys[rows], kind="stable")]
    _, first = np.unique(keys[rows], return_index=True)
    return {int(keys[part[0]]): part for part in np.split(rows, first[1:]) if len(part)}


def _family(
    everything: ItemTable, family: int, rows: Rows, vectors_at: VectorsAt, settings: RelationSettings
) -> tuple[list[Relation], Nodes]:
    items = everything.items(rows)
    places = [settings.fields.place_of(item) for item in items]
    structure = structure_of(rows, places, [item.content for item in items], vectors_at(rows), settings.min_carried)
    families = np.full(len(rows), family, np.uint64)
    nodes = Nodes(rows, structure.versions, structure.new.astype(np.float32), structure.gone.astype(np.float32), families)
    return structure.relations, nodes


def _pairs(
    new_rows: Rows, families: Hashes, editions: Hashes, vectors_at: VectorsAt, settings: RelationSettings, live: Mask
) -> Pairs:
    """Return the pairs to judge, ordered by row."""
    least, parts = settings.min_similarity, []
    members = _members(editions, live)
    for edition in np.unique(editions[new_rows]).tolist():
        if edition:
            rows = members[edition]
            new = rows[np.searchsorted(rows, new_rows[0]) :]
            parts.append(neighbours_before(new, rows, vectors_at, settings.neighbours, least))
    _, apart = np.unique(families, return_inverse=True)
    without_family = np.flatnonzero(families == 0)
    apart[without_family] = -1 - without_family  # a passage without a family is a family of its own
    parts.append(neighbours_before(new_rows, np.flatnonzero(live), vectors_at, settings.across, least, apart))
    pairs = Pairs.joined(parts)
    order = np.lexsort((pairs.before, pairs.rows))
    return Pairs(pairs.rows[order], pairs.before[order], pairs.similarities[order])


def _judged(everything: ItemTable, pairs: Pairs, families: Hashes, settings: RelationSettings) -> Iterator[Relation]:
    read: dict[int, tuple[Passage, Place]] = {}
    begins = [*np.flatnonzero(np.diff(pairs.rows, prepend=-1)).tolist(), len(pairs.rows)]
    with progress("relations: judging neighbours", len(pairs.rows)) as advance:
        for number in range(0, len(begins) - 1, _ROWS_AT_ONCE):
            part = slice(begins[number], begins[min(number + _ROWS_AT_ONCE, len(begins) - 1)])
            rows, others, similarities = pairs.rows[part], pairs.before[part], pairs.similarities[part]
            if len(read) > _KEPT:
                read.clear()
            wanted = np.array(sorted(set(rows.tolist()) | set(others.tolist()) - read.keys()), np.int64)
            wanted = wanted[[row not in read for row in wanted.tolist()]]
            for row, item in zip(wanted.tolist(), everything.items(wanted), strict=True):
                read[row] = Passage(row, statements_of(item.content)), settings.fields.place_of(item)
            for row, other, similarity in zip(rows.tolist(), others.tolist(), similarities.tolist(), strict=True):
                (earlier, its_place), (passage, place) = read[row], read[other]
                subject = terms_of(place.name) if families[row] == families[other] != 0 else None
                yield from relations_between(earlier, passage, similarity, nearness_of(its_place, place), subject)
            advance(len(rows))


_VECTORS = "vectors.npy"


_BATCH = 1024


class FoundRelations(RelationFiles):
    """Relations found by vectors, words and places. Joining encodes nothing again; it recomputes the first segment's."""

    def __init__(self, encoder: BaseEncoder, settings: RelationSettings) -> None:
        self.encoder, self.settings = encoder, settings

    def build(self, items: ItemTable, folder: Path) -> None:
        _encode(items, folder / _VECTORS, self.encoder, None)
        self._relate(items, folder)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        _encode(items, folder / _VECTORS, self.encoder, _dimension(segments[0]))
        before = RelationTables.of_segments(segments)
        first_row = len(everything) - len(items)
        stack = Stack(*(_open(segment) for segment in segments), mapped(folder / _VECTORS, np.float32, (len(items), None)))
        live = live_among(everything, segments)
        find_relations(everything, first_row, before, stack.at, self.settings, live).write(folder)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        with Stream(folder / _VECTORS, np.float32, _dimension(segments[0])) as stream:
            for segment in segments:
                first = 0
                for block in read_blocks(segment.folder / _VECTORS, _BATCH):
                    stream.write(block if segment.live is None else block[segment.live[first : first + len(block)]])
                    first += len(block)
        if segments[0].first_row == 0:
            self._relate(items, folder)
        else:
            RelationTables.of_segments(segments).renumbered(segments[0].first_row, live_of(segments)).write(folder)

    def rows_in(self, folder: Path) -> int:
        return len(mapped(folder / _VECTORS, np.float32, (None, None)))

    def check(self, segments: Sequence[SegmentFolder]) -> None:
        if len({_dimension(segment) for segment in segments}) != 1:
            raise damaged(segments[-1].folder / _VECTORS, "its vectors have another dimension than those of earlier segments")

    def require(self, segments: Sequence[SegmentFolder]) -> None:
        """Do nothing: the relations come from the items themselves."""

    def _relate(self, items: ItemTable, folder: Path) -> None:
        vectors = mapped(folder / _VECTORS, np.float32, (len(items), None))
        at: Callable[[Rows], Vectors] = vectors.__getitem__
        find_relations(items, 0, None, at, self.settings, np.ones(len(items), bool)).write(folder)


def _open(segment: SegmentFolder) -> Vectors:
    vectors: Vectors = mapped(segment.folder / _VECTORS, np.float32, (len(segment), None))
    if not vectors.shape[1]:
        raise damaged(segment.folder / _VECTORS, "it holds vectors of dimension 0")
    return vectors


def _dimension(segment: SegmentFolder) -> int:
    return int(_open(segment).shape[1])


def _encode(items: ItemTable, path: Path, encoder: BaseEncoder, dimension: int | None) -> None:
    batches: Iterator[list[str]] = tracked("hop: encoding", items.texts(_BATCH), len(items))
    n_cut = write_passages(encoder, batches, len(items), path, dimension).n_cut
    if n_cut:
        warnings.warn(
            f"hop: {n_cut:,} of {len(items):,} passages are longer than the encoder reads; their similarity is computed from "
            "the part that it reads (index smaller chunks, or raise max_length if the model can read more)",
            RetrievalWarning,
            stacklevel=3,
        )


def chunk_relations(relations: Relations, item_ids: Sequence[str], method: str = "nlp_retrieval") -> Iterator[ChunkRelation]:
    """Yield relations between rows as relations between items.

    Args:
        relations: by rows.
        item_ids: of all rows.
        method: that found them; stored with each.

    Examples:
        >>> rows = {"ostland-2019-power": 0, "ostland-2024-power": 1}
        >>> relations = graph_relations([ChunkRelation(*rows, "TEMPORAL_FOLLOWS", 0.5)], rows)
        >>> [(relation.source_id, relation.type) for relation in chunk_relations(relations, list(rows))]
        [('ostland-2019-power', 'TEMPORAL_FOLLOWS')]
    """
    for number in range(len(relations)):
        relation = relations.at(number)
        evidence: dict[str, Any] = {"source": list(relation.source_span), "target": list(relation.target_span)}
        if not math.isnan(relation.carried):
            evidence |= {"carried": relation.carried, "changed": relation.changed}
        about = {"method": method, "evidence": evidence}
        yield ChunkRelation(item_ids[relation.source], item_ids[relation.target], relation.type, relation.confidence, about)


def graph_relations(relations: Iterable[ChunkRelation], rows: Mapping[str, int]) -> Relations:
    """Return relations between items as relations between rows.

    Args:
        relations: of a table.
        rows: of the items, by their ids.

    Raises:
        ItemError: a relation leads from or to an item without a row; the message names the first.

    Examples:
        >>> stored = ChunkRelation("ostland-2019-power", "ostland-2024-power", "TEMPORAL_FOLLOWS", 0.5)
        >>> relations = graph_relations([stored], {"ostland-2019-power": 0, "ostland-2024-power": 1})
        >>> relations.sources.tolist(), relations.targets.tolist()
        ([0], [1])
    """
    converted: list[Relation] = []
    missing: list[str] = []
    for relation in relations:
        missing += [item_id for item_id in (relation.source_id, relation.target_id) if item_id not in rows]
        if missing:
            continue
        evidence = relation.metadata.get("evidence")
        known = evidence if isinstance(evidence, Mapping) else {}
        converted.append(
            Relation(
                rows[relation.source_id],
                rows[relation.target_id],
                relation.type,
                relation.confidence,
                _span(known.get("source")),
                _span(known.get("target")),
                _number(known.get("carried"), math.nan),
                int(_number(known.get("changed"), 0)),
            )
        )
    if missing:
        shown = ", ".join(map(repr, dict.fromkeys(missing[:3])))
        raise ItemError(
            f"{len(missing):,} ends of relations are missing items (the first: {shown}); pass all items of the "
            "tables, or only the relations between the items that you pass"
        )
    return Relations.of(converted)


def _span(value: object) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(end, int) and 0 <= end < 2**31 for end in value):
        return (value[0], value[1])
    return (0, 0)


def _number(value: object, otherwise: float) -> float:
    known = isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**31
    return float(value) if known and not isinstance(value, bool) else otherwise  # type: ignore[arg-type]


_SEEN = "told_by.npy"


class StoredRelations(RelationFiles):
    """Relations between those chunks of a table that are items of the index. Joining does not read them again.

    Args:
        source: of the relations. Reading them raises :class:`~nlp_retrieval.errors.SourceError` if the tables cannot be read,
            hold none between the items of a new index, or a relation leads to a missing chunk.
    """

    def __init__(self, source: ChunkTablesLoader) -> None:
        self.source = source

    def build(self, items: ItemTable, folder: Path) -> None:
        relations, n_left_out, checksum = _stored_relations(self.source, items, np.ones(len(items), bool))
        if not len(relations):
            problem = f"none of its {n_left_out:,} relations connects two items of this index" if n_left_out else "it has none"
            raise SourceError(
                f"hop: the table logical_relationships of {self.source!r} has no relations: {problem}; index the chunks of the "
                "same tables (the loader chunk_tables), or omit `relations` to compute them"
            )
        if n_left_out:
            warnings.warn(
                f"hop: {n_left_out:,} relations of {self.source!r} are left out: they lead from or to chunks that are not "
                "among the items that are indexed",
                RetrievalWarning,
                stacklevel=2,
            )
        _write(relations, relations, checksum, len(items), len(items), folder)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        relations, _, checksum = _stored_relations(self.source, everything, live_among(everything, segments))
        before = RelationTables.of_segments(segments).relations
        names = limited([*before.names, *relations.names])
        before, relations = before.named(names), relations.named(names)
        known, new_keys = (_keys(some, len(everything)) for some in (before, relations))
        relations = relations.where(~np.isin(new_keys, known))
        _write(relations, Relations.joined([before, relations]), checksum, len(items), len(everything), folder)

    def join(self, segments: Sequence[SegmentFolder], items: ItemTable, folder: Path) -> None:
        tables = RelationTables.of_segments(segments).renumbered(segments[0].first_row, live_of(segments))
        if segments[0].first_row == 0:
            tables = replace(tables, centrality=centrality_of(tables.relations, len(items)))
        tables.write(folder)
        np.save(folder / _SEEN, _seen(segments[-1].folder), allow_pickle=False)

    def rows_in(self, folder: Path) -> int:
        return len(mapped(folder / "families.npy", np.uint64))

    def check(self, segments: Sequence[SegmentFolder]) -> None:
        _seen(segments[-1].folder)

    def require(self, segments: Sequence[SegmentFolder]) -> None:
        if not np.array_equal(_sum_of(list(self.source.relations())), _seen(segments[-1].folder)):
            raise IndexDamagedError(
                f"hop: the table logical_relationships of {self.source!r} has changed since the index was built; index again "
                "with replace=True"
            )


def _stored_relations(source: ChunkTablesLoader, everything: ItemTable, live: Mask) -> tuple[Relations, int, Hashes]:
    """Return the relations between rows, the number of others, and the checksum of all."""
    rows = {item_id: row for row, item_id in enumerate(everything.ids()) if live[row]}
    stored = list(source.relations())
    kept = [relation for relation in stored if relation.source_id in rows and relation.target_id in rows]
    return graph_relations(kept, rows).checked(len(everything)), len(stored) - len(kept), _sum_of(stored)


def _keys(relations: Relations, n_rows: int) -> Rows:
    """Return a number for each pair and type."""
    return (relations.sources * n_rows + relations.targets) * MOST_TYPES + relations.types


def _sum_of(relations: list[ChunkRelation]) -> Hashes:
    """Return the number of relations, and the sum of their hashes, which does not depend on their order."""
    texts = (f"{relation.source_id}\0{relation.target_id}\0{relation.type}\0{relation.confidence!r}" for relation in relations)
    total = sum(hash_of(text.encode(errors="replace").decode()) for text in texts)
    return np.array([len(relations), total % 2**64], np.uint64)


def _seen(folder: Path) -> Hashes:
    return mapped(folder / _SEEN, np.uint64, (2,))


def _write(relations: Relations, related: Relations, checksum: Hashes, n_items: int, n_rows: int, folder: Path) -> None:
    np.save(folder / _SEEN, checksum, allow_pickle=False)
    none = np.zeros(n_items, np.uint64)
    centrality = centrality_of(related, n_rows)
    RelationTables(relations, none, none, np.zeros(0, np.uint64), Nodes.joined([]), centrality).write(folder)
