"""What an extractor is told when items join an index: the items, and what the segments before them know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.core.index.segments import SegmentFolder
from nlp_retrieval.graph.store.added_links import open_graph
from nlp_retrieval.graph.store.hashed_rows import HashedRows, Hashes, Placed
from nlp_retrieval.graph.store.link_graph import LinkGraph
from nlp_retrieval.graph.store.links import Links
from nlp_retrieval.graph.store.passage_terms import PassageTerms
from nlp_retrieval.graph.store.title_table import TitleTable


class Extracted(NamedTuple):
    """What an extractor found.

    Args:
        links: of its kind.
        tables: what it wants to know again when items join, by name; rows count from 0 in the items that it read.
    """

    links: Links
    tables: Mapping[str, HashedRows] = {}


@dataclass(frozen=True, eq=False)
class JoiningItems:
    """Items that join an index.

    Args:
        items: those that join.
        everything: the items of the whole index, those that join behind the others.
        segments: what stands before them.
        kind: of the links that are to be found.
        prefix: begins the names of the tables that this kind has kept.
        titles: of all items, where the extractor goes by the titles that are found in queries; else None.
        scratch: a folder for files that are not needed afterwards.
    """

    items: ItemTable
    everything: ItemTable
    segments: Sequence[SegmentFolder]
    kind: str
    prefix: str
    titles: TitleTable | None
    scratch: Path

    @property
    def first_row(self) -> int:
        """Of the items that join, in the index."""
        return len(self.everything) - len(self.items)

    @cached_property
    def graph(self) -> LinkGraph:
        """The links of the segments before."""
        return open_graph(self.segments)

    @cached_property
    def terms(self) -> PassageTerms:
        """The terms of the passages of the segments before."""
        return PassageTerms.open_all(self.segments)

    def known(self, name: str, hashes: Hashes) -> HashedRows:
        """Look keys up in a table that this kind has kept.

        Args:
            name: of the table.
            hashes: of the keys, distinct.

        Returns:
            Those that items of the segments before have, with their rows in the index.
        """
        return HashedRows.joined(kept_tables(self.segments, self.prefix + name), hashes)

    def with_new(self, known: HashedRows, new: HashedRows) -> HashedRows:
        """Put what :meth:`known` gave together with a table of the items that join."""
        return HashedRows.joined([Placed(known, 0), Placed(new, self.first_row)])

    def of_all(self, extract: Callable[[ItemTable], Links]) -> Links:
        """All links of the index, found anew; deleted items have none.

        Args:
            extract: finds the links of items, none of which is deleted.
        """
        live = self.everything.live
        if live is None:
            return extract(self.everything)
        with TemporaryDirectory(dir=self.scratch) as folder:
            write_items(self.everything.stream_live(), Path(folder))
            links = extract(ItemTable(Path(folder) / ITEMS_FILE))
        rows = np.flatnonzero(live)
        return Links(rows[links.sources], rows[links.targets], links.weights)

    def touching(self, links: Links) -> Links:
        """Those of some links of the index that touch items which join."""
        return links.where(np.maximum(links.sources, links.targets) >= self.first_row)


def kept_tables(segments: Sequence[SegmentFolder], name: str) -> list[Placed]:
    """Open the tables of one name that segments keep.

    Raises:
        IndexDamagedError: a file is missing, cut off or none of a table, or names other rows.
    """
    return [
        Placed(HashedRows.open(segment.folder, name, len(segment)), segment.first_row, segment.live) for segment in segments
    ]
