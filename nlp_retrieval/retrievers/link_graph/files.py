"""The files of a link graph, segment by segment: what is written for items, and how all segments are opened as one.

The first segment holds a graph, every later one the links that touch its items; each holds its titles, its terms, and the
tables that extractors keep. What is opened knows no deleted item.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.graph.links.base import BaseLinkExtractor
from nlp_retrieval.graph.links.joining import Extracted, JoiningItems, kept_tables
from nlp_retrieval.graph.links.title_mentions import TitleMentions
from nlp_retrieval.graph.store.added_links import join_added_links, live_of, open_graph, write_added_links
from nlp_retrieval.graph.store.hashed_rows import HashedRows
from nlp_retrieval.graph.store.link_graph import LinkGraph, write_link_graph
from nlp_retrieval.graph.store.passage_terms import PassageTerms
from nlp_retrieval.graph.store.title_table import TitleTable

Kinds = Mapping[str, BaseLinkExtractor]
"""Extractors by the names of their links."""


def build_files(items: ItemTable, folder: Path, kinds: Kinds, titles: TitleMentions) -> None:
    """Write the first segment of an index.

    Args:
        items: all of them.
        folder: empty.
        kinds: what finds the links.
        titles: says which titles count in queries.
    """
    # first what needs memory of its own, so that it is free again when the links take most
    TitleTable.of(titles.surfaces(items)).write(folder)
    PassageTerms.write(folder, items)
    found = {kind: extractor.extracted(items) for kind, extractor in kinds.items()}
    if not any(len(one.links.sources) for one in found.values()):
        warnings.warn(
            f"link_graph found no links by {', '.join(found) or 'anything'}: its results will be those of its seeds. Give "
            "passages titles (metadata 'title') or aliases, explicit links (hyperlinks), parents (same_parent), or use "
            "shared_entities",
            RetrievalWarning,
            stacklevel=3,
        )
    write_link_graph(folder, len(items), {kind: one.links for kind, one in found.items()})
    _write_tables(folder, found)


def extend_files(
    items: ItemTable,
    folder: Path,
    segments: Sequence[SegmentFolder],
    everything: ItemTable,
    kinds: Kinds,
    titles: TitleMentions,
) -> None:
    """Write a segment of items that join an index.

    Args:
        items: those that join.
        folder: empty.
        segments: what stands before it.
        everything: the items of all segments and those that join.
        kinds: what finds the links.
        titles: says which titles count in queries.
    """
    new_titles = TitleTable.of(titles.surfaces(items))
    first_row = len(everything) - len(items)
    all_titles = TitleTable.joined([(TitleTable.open_all(segments), 0, None), (new_titles, first_row, None)])
    found: dict[str, Extracted] = {}
    for number, (kind, extractor) in enumerate(kinds.items()):
        known = all_titles if extractor is titles else None
        found[kind] = extractor.extend(JoiningItems(items, everything, segments, kind, _prefix(number), known, folder))
    write_added_links(folder, {kind: one.links for kind, one in found.items()}, len(everything))
    _write_tables(folder, found)
    new_titles.write(folder)
    PassageTerms.write(folder, items)


def join_files(segments: Sequence[SegmentFolder], folder: Path, kinds: Kinds) -> None:
    """Write one segment of what several hold, none of them the first of the index; nothing is found anew.

    Args:
        segments: in a row.
        folder: empty.
        kinds: what found the links.
    """
    first_row, live = segments[0].first_row, live_of(segments)
    new_rows = np.cumsum(live) - 1
    write_added_links(folder, join_added_links(segments), first_row + int(live.sum()))
    titles = [(TitleTable.open(one.folder, len(one)), one.first_row - first_row, one.live) for one in segments]
    TitleTable.joined(titles).renumbered(new_rows).write(folder)
    PassageTerms.open_all(segments).write_joined(folder)
    for number, extractor in enumerate(kinds.values()):
        for name in extractor.tables:
            kept = kept_tables(segments, _prefix(number) + name)
            placed = [one._replace(first_row=one.first_row - first_row) for one in kept]
            HashedRows.joined(placed).renumbered(new_rows).write(folder, _prefix(number) + name)


def open_files(segments: Sequence[SegmentFolder]) -> tuple[LinkGraph, TitleTable, PassageTerms]:
    """Open all segments as one; rows are those of the index, and what was deleted is in none of it.

    Raises:
        IndexDamagedError: a file is missing or cannot be read, or the files contradict one another.
    """
    return open_graph(segments), TitleTable.open_all(segments), PassageTerms.open_all(segments)


def _write_tables(folder: Path, found: Mapping[str, Extracted]) -> None:
    for number, one in enumerate(found.values()):
        for name, table in one.tables.items():
            table.write(folder, _prefix(number) + name)


def _prefix(number: int) -> str:
    """Begins the names of the tables that the extractor of this number keeps."""
    return f"links_{number}_"
