"""Input of an extractor when items join an index: the items, and the stored data of the earlier segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from nlp_retrieval.core.index.generation import SegmentFolder
from nlp_retrieval.core.index.items import ITEMS_FILE, ItemTable, write_items
from nlp_retrieval.retrievers.link_graph.store.added_links import open_graph
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import HashedRows, Hashes, Placed
from nlp_retrieval.retrievers.link_graph.store.link_graph import LinkGraph
from nlp_retrieval.retrievers.link_graph.store.links import Links
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.retrievers.link_graph.store.title_table import TitleTable


class Extracted(NamedTuple):
    """Result of an extractor.

    Args:
        links: the links of its kind.
        tables: data to look up when items join, by name; rows count from 0 in the items that it read.
    """

    links: Links
    tables: Mapping[str, HashedRows] = {}


@dataclass(frozen=True, eq=False)
class JoiningItems:
    """Items that join an index.

    Args:
        items: the joining items.
        everything: the items of the whole index; the joining ones come last.
        segments: the segments before them.
        kind: kind of the links to find.
        prefix: of the names of this kind's stored tables.
        titles: the titles of all items, if the extractor uses the same titles that are found in queries; else None.
        scratch: the folder of the segment being written, which holds the terms of the joining items; also for temporary files.
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
        """Row in the index of the first item that joins."""
        return len(self.everything) - len(self.items)

    @cached_property
    def graph(self) -> LinkGraph:
        """The links of the earlier segments."""
        return open_graph(self.segments)

    @cached_property
    def terms(self) -> PassageTerms:
        """The terms of the passages of the earlier segments."""
        return PassageTerms.open_all(self.segments)

    @cached_property
    def all_terms(self) -> PassageTerms:
        """The terms of all passages; those of the joining items are in the scratch folder, which is their segment's."""
        joined = SegmentFolder(self.scratch, self.first_row, len(self.everything))
        return PassageTerms.open_all([*self.segments, joined])

    def known(self, name: str, hashes: Hashes) -> HashedRows:
        """Look keys up in a table that this kind has stored.

        Args:
            name: name of the table.
            hashes: hashes of the keys, distinct.

        Returns:
            The keys that items of the earlier segments have, with the rows of those items in the index.
        """
        return HashedRows.joined(kept_tables(self.segments, self.prefix + name), hashes)

    def with_new(self, known: HashedRows, new: HashedRows) -> HashedRows:
        """Join the result of :meth:`known` and a table of the joining items."""
        return HashedRows.joined([Placed(known, 0), Placed(new, self.first_row)])

    def of_all(self, extract: Callable[[ItemTable], Links]) -> Links:
        """All links of the index, extracted again; deleted items have none.

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
        """Keep the links with a joining item at either end."""
        return links.where(np.maximum(links.sources, links.targets) >= self.first_row)


def kept_tables(segments: Sequence[SegmentFolder], name: str) -> list[Placed]:
    """Open the table of a name that each of some segments stores.

    Raises:
        IndexDamagedError: a file is missing, cut off or not part of a table, or names rows that do not exist.
    """
    return [
        Placed(HashedRows.open(segment.folder, name, len(segment)), segment.first_row, segment.live) for segment in segments
    ]
