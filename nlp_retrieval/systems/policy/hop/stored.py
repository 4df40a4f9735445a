"""Relations read from a table of chunks: the files of a segment without vectors.

They are read when items are indexed or added; a search uses no database. A checksum of the table's relations is stored, so that
indexing the same items again detects changes. They hold no changes between versions, so their passages are of no family.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nlp_retrieval.core import ItemTable, Mask, Rows, SegmentFolder, mapped
from nlp_retrieval.errors import IndexDamagedError, RetrievalWarning, SourceError
from nlp_retrieval.retrievers import Hashes, hash_of, live_among, live_of
from nlp_retrieval.systems.policy.chunk_tables.graph_relations import graph_relations
from nlp_retrieval.systems.policy.chunk_tables.loader import ChunkTablesLoader
from nlp_retrieval.systems.policy.chunk_tables.relations import ChunkRelation
from nlp_retrieval.systems.policy.hop.files import RelationFiles
from nlp_retrieval.systems.policy.relations.centrality import centrality_of
from nlp_retrieval.systems.policy.relations.relation import RELATION_TYPES, Relations
from nlp_retrieval.systems.policy.relations.tables import Nodes, RelationTables

__all__ = ["StoredRelations"]

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
        relations, n_left_out, seen = _told(self.source, items, np.ones(len(items), bool))
        if not len(relations):
            found = f"none of its {n_left_out:,} relations is between two items of this index" if n_left_out else "it has none"
            raise SourceError(
                f"hop: the table logical_relationships of {self.source!r} tells no relations: {found}; index the chunks of the "
                "same tables (the loader chunk_tables), or leave out `relations`, so that relations are found here"
            )
        if n_left_out:
            warnings.warn(
                f"hop: {n_left_out:,} relations of {self.source!r} are left out: they lead from or to chunks that are not "
                "among the items that are indexed",
                RetrievalWarning,
                stacklevel=2,
            )
        _write(relations, relations, seen, len(items), len(items), folder)

    def extend(self, items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable) -> None:
        relations, _, seen = _told(self.source, everything, live_among(everything, segments))
        before = RelationTables.of_segments(segments).relations
        known, found = (_keys(some, len(everything)) for some in (before, relations))
        relations = relations.where(~np.isin(found, known))
        _write(relations, Relations.joined([before, relations]), seen, len(items), len(everything), folder)

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
                f"hop: the table logical_relationships of {self.source!r} was changed since the index was built; index again "
                "with replace=True"
            )


def _told(source: ChunkTablesLoader, everything: ItemTable, live: Mask) -> tuple[Relations, int, Hashes]:
    """Return the relations between rows, the number of others, and the checksum of all."""
    rows = {item_id: row for row, item_id in enumerate(everything.ids()) if live[row]}
    told = list(source.relations())
    kept = [one for one in told if one.source_id in rows and one.target_id in rows]
    return graph_relations(kept, rows).checked(len(everything)), len(told) - len(kept), _sum_of(told)


def _keys(relations: Relations, n_rows: int) -> Rows:
    """Return a number for each pair and type."""
    kinds = len(RELATION_TYPES)
    return (relations.sources * n_rows + relations.targets) * kinds + relations.types


def _sum_of(told: list[ChunkRelation]) -> Hashes:
    """Return the number of relations, and the sum of their hashes, which does not depend on their order."""
    texts = (f"{one.source_id}\0{one.target_id}\0{one.type}\0{one.confidence!r}" for one in told)
    total = sum(hash_of(text.encode(errors="replace").decode()) for text in texts)
    return np.array([len(told), total % 2**64], np.uint64)


def _seen(folder: Path) -> Hashes:
    return mapped(folder / _SEEN, np.uint64, (2,))


def _write(relations: Relations, related: Relations, seen: Hashes, n_items: int, n_rows: int, folder: Path) -> None:
    np.save(folder / _SEEN, seen, allow_pickle=False)
    none = np.zeros(n_items, np.uint64)
    centrality = centrality_of(related, n_rows)
    RelationTables(relations, none, none, np.zeros(0, np.uint64), Nodes.joined([]), centrality).write(folder)
