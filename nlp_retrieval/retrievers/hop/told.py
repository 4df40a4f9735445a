"""Relations that a table of chunks holds, taken over as they are: the files of a segment without vectors.

They are those of the moment in which items are indexed or join an index; a search asks no database. What versions changed is
not told by them, so their passages are of no family.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nlp_retrieval.core.candidates import Mask
from nlp_retrieval.core.files.columns import mapped
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.errors import RetrievalWarning, SourceError
from nlp_retrieval.graph.relations.centrality import centrality_of
from nlp_retrieval.graph.relations.relation import Relations
from nlp_retrieval.graph.relations.tables import Nodes, RelationTables
from nlp_retrieval.graph.store.added_links import live_of
from nlp_retrieval.postgres.chunk_tables.graph_relations import graph_relations
from nlp_retrieval.postgres.chunk_tables.loader import ChunkTablesLoader

__all__ = ["build_told", "extend_told", "join_told", "rows_told"]


def build_told(items: ItemTable, folder: Path, source: ChunkTablesLoader) -> None:
    """Write the first segment of an index.

    Args:
        items: all items.
        folder: an empty folder.
        source: of the relations.

    Raises:
        SourceError: the tables cannot be read, hold no relations, or none between these items; or one leads to a chunk that is
            not there.
    """
    relations, n_left_out = _told(source, items, 0, np.ones(len(items), bool))
    if not len(relations):
        found = f"none of its {n_left_out:,} relations is between two items of this index" if n_left_out else "it has none"
        raise SourceError(
            f"hop: the table logical_relationships of {source!r} tells no relations: {found}; index the chunks of the same "
            "tables (the loader chunk_tables), or leave out relations=, so that relations are found here"
        )
    if n_left_out:
        warnings.warn(
            f"hop: {n_left_out:,} relations of {source!r} are left out: they lead from or to chunks that are not among the "
            "items that are indexed",
            RetrievalWarning,
            stacklevel=2,
        )
    _write(relations, relations, len(items), len(items), folder)


def extend_told(
    items: ItemTable, folder: Path, segments: Sequence[SegmentFolder], everything: ItemTable, source: ChunkTablesLoader
) -> None:
    """Write the segment of items that join an index: their relations to one another and to those before them.

    Args:
        items: those that join.
        folder: an empty folder.
        segments: the segments before it.
        everything: the items of all segments and those that join.
        source: of the relations.

    Raises:
        SourceError: the tables cannot be read, or a relation leads to a chunk that is not there.
    """
    first_row = len(everything) - len(items)
    live = np.ones(len(everything), bool) if everything.live is None else everything.live.copy()
    live[:first_row] &= live_of(segments)
    relations, _ = _told(source, everything, first_row, live)
    related = Relations.joined([RelationTables.of_segments(segments).relations, relations])
    _write(relations, related, len(items), len(everything), folder)


def join_told(segments: Sequence[SegmentFolder], folder: Path) -> None:
    """Write adjacent segments as one, without deleted passages and without asking for relations again.

    Args:
        segments: at least one.
        folder: an empty folder.
    """
    tables = RelationTables.of_segments(segments).renumbered(segments[0].first_row, live_of(segments))
    if segments[0].first_row == 0:
        tables = replace(tables, centrality=centrality_of(tables.relations, len(tables.families)))
    tables.write(folder)


def rows_told(folder: Path) -> int:
    """How many passages a segment has."""
    return len(mapped(folder / "families.npy", np.uint64))


def _told(source: ChunkTablesLoader, everything: ItemTable, first_row: int, live: Mask) -> tuple[Relations, int]:
    """The relations of the rows from ``first_row`` on, and how many lead out of the index."""
    rows = {item_id: row for row, item_id in enumerate(everything.ids()) if live[row]}
    kept, n_left_out = [], 0
    for one in source.relations():
        ends = rows.get(one.source_id, -1), rows.get(one.target_id, -1)
        if min(ends) < 0:
            n_left_out += 1
        elif max(ends) >= first_row:
            kept.append(one)
    return graph_relations(kept, rows).checked(len(everything)), n_left_out


def _write(relations: Relations, related: Relations, n_items: int, n_rows: int, folder: Path) -> None:
    none = np.zeros(n_items, np.uint64)
    centrality = centrality_of(related, n_rows)
    RelationTables(relations, none, none, np.zeros(0, np.uint64), Nodes.joined([]), centrality).write(folder)
