"""The files of a link graph: written for each segment, joined, and opened as one.

The first segment holds a graph, every later one the links that touch its items; each holds its titles, its terms, and the
extractors' tables. Deleted items are left out when segments are opened.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers.link_graph.links.base import BaseLinkExtractor
from nlp_retrieval.retrievers.link_graph.links.joining import Extracted, JoiningItems, kept_tables
from nlp_retrieval.retrievers.link_graph.links.title_mentions import TitleMentions
from nlp_retrieval.retrievers.link_graph.store.added_links import join_added_links, live_of, open_graph, write_added_links
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import HashedRows
from nlp_retrieval.retrievers.link_graph.store.link_graph import LinkGraph, write_link_graph
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.retrievers.link_graph.store.title_table import TitleTable

Kinds = Mapping[str, BaseLinkExtractor]
"""Extractors by the names of their links."""


def build_files(items: ItemTable, folder: Path, kinds: Kinds, titles: TitleMentions) -> None:
    """Write the first segment of an index.

    Args:
        items: all items.
        folder: an empty folder.
        kinds: the extractors.
        titles: decides which titles count in queries.
    """
    # titles and terms first, so that their memory is free again when the links need the most
    TitleTable.of(titles.surfaces(items)).write(folder)
    PassageTerms.write(folder, items)
    terms = PassageTerms.open_all([SegmentFolder(folder, 0, len(items))])
    by_kind = {kind: extractor.extracted(items, terms) for kind, extractor in kinds.items()}
    if not any(len(extracted.links.sources) for extracted in by_kind.values()):
        warnings.warn(
            f"link_graph found no links by {', '.join(by_kind) or 'anything'}: its results will be those of its seeds. Give "
            "passages titles (metadata 'title') or aliases, explicit links (hyperlinks), parents (same_parent), or use "
            "shared_entities",
            RetrievalWarning,
            stacklevel=3,
        )
    write_link_graph(folder, len(items), {kind: extracted.links for kind, extracted in by_kind.items()})
    _write_tables(folder, by_kind)


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
        items: the joining items.
        folder: an empty folder.
        segments: the segments before it.
        everything: the items of all segments and the joining ones.
        kinds: the extractors.
        titles: decides which titles count in queries.
    """
    new_titles = TitleTable.of(titles.surfaces(items))
    first_row = len(everything) - len(items)
    all_titles = TitleTable.joined([(TitleTable.open_all(segments), 0, None), (new_titles, first_row, None)])
    PassageTerms.write(folder, items)  # extractors read them
    by_kind: dict[str, Extracted] = {}
    for number, (kind, extractor) in enumerate(kinds.items()):
        known = all_titles if extractor is titles else None
        by_kind[kind] = extractor.extend(JoiningItems(items, everything, segments, kind, _prefix(number), known, folder))
    write_added_links(folder, {kind: extracted.links for kind, extracted in by_kind.items()}, len(everything))
    _write_tables(folder, by_kind)
    new_titles.write(folder)


def join_files(segments: Sequence[SegmentFolder], folder: Path, kinds: Kinds) -> None:
    """Join several segments into one, without looking for links again; the first of the index is not among them.

    Args:
        segments: adjacent segments.
        folder: an empty folder.
        kinds: the extractors.
    """
    first_row, live = segments[0].first_row, live_of(segments)
    new_rows = np.cumsum(live) - 1
    write_added_links(folder, join_added_links(segments), first_row + int(live.sum()))
    titles = [(TitleTable.open(part.folder, len(part)), part.first_row - first_row, part.live) for part in segments]
    TitleTable.joined(titles).renumbered(new_rows).write(folder)
    PassageTerms.open_all(segments).write_joined(folder)
    for number, extractor in enumerate(kinds.values()):
        for name in extractor.tables:
            kept = kept_tables(segments, _prefix(number) + name)
            placed = [table._replace(first_row=table.first_row - first_row) for table in kept]
            HashedRows.joined(placed).renumbered(new_rows).write(folder, _prefix(number) + name)


def open_files(segments: Sequence[SegmentFolder]) -> tuple[LinkGraph, TitleTable, PassageTerms]:
    """Open all segments as one, with the rows of the index and without deleted items.

    Raises:
        IndexDamagedError: a file is missing or cannot be read, or the files contradict one another.
    """
    return open_graph(segments), TitleTable.open_all(segments), PassageTerms.open_all(segments)


def _write_tables(folder: Path, by_kind: Mapping[str, Extracted]) -> None:
    for number, extracted in enumerate(by_kind.values()):
        for name, table in extracted.tables.items():
            table.write(folder, _prefix(number) + name)


def _prefix(number: int) -> str:
    """Return the prefix of the names of an extractor's tables, by its number."""
    return f"links_{number}_"
