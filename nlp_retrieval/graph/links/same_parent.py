"""Links between neighbouring passages of one document."""

from __future__ import annotations

from array import array
from typing import Annotated

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.graph.links.base import BaseLinkExtractor, LinkSentence, WalkWeight
from nlp_retrieval.graph.links.joining import Extracted, JoiningItems
from nlp_retrieval.graph.store.hashed_rows import HashedRows, hash_of
from nlp_retrieval.graph.store.links import Links
from nlp_retrieval.text.surfaces import grouped

_TABLE = "parents"


class SameParent(BaseLinkExtractor):
    """Links the passages of a document that stand near each other; the links have no direction, and no sentence shows them.

    Passages of one parent are counted in the order of the corpus. Two that are ``d`` apart, at most ``window``, are
    linked with weight 1/d. All pairs of a long document would be too many: there are at most ``window`` links a passage.

    Args:
        parent: metadata that names the document a passage was cut from; ``ChunkingLoader`` writes "parent_id".
        window: how far apart linked passages may be, 1 for direct neighbours only.
        weight: of walking a link.
    """

    name = "same_parent"
    search_only = frozenset({"weight"})
    tables = (_TABLE,)

    def __init__(
        self,
        parent: str = "parent_id",
        window: Annotated[int, Field(ge=1, le=100)] = 2,
        weight: WalkWeight = 0.5,
    ) -> None:
        self.parent = parent
        self.window = window
        self.weight = weight
        self.along = self.against = weight

    def extract(self, items: ItemTable) -> Links:
        return self.extracted(items).links

    def extracted(self, items: ItemTable) -> Extracted:
        """Find the links, and which passages have which parent."""
        table = self._members(items)
        return Extracted(self._links(table), {_TABLE: table})

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links of passages that join: those that they have when all passages are indexed at once.

        Passages before that a deleted one stood between draw together at ``compact``.
        """
        new = self._members(joining.items)
        table = joining.with_new(joining.known(_TABLE, new.hashes), new)
        return Extracted(joining.touching(self._links(table)), {_TABLE: new})

    def _members(self, items: ItemTable) -> HashedRows:
        """Parents and the rows of their passages."""
        parents, members = array("Q"), array("q")
        for row, item in enumerate(items.stream({self.parent})):
            parent = item.metadata.get(self.parent)
            if parent is not None:
                parents.append(hash_of(canonical_json(parent)))
                members.append(row)
        return HashedRows(*grouped(np.array(parents, np.uint64), np.array(members, np.int64)))

    def _links(self, table: HashedRows) -> Links:
        keys = np.repeat(table.hashes, np.diff(table.offsets))
        parts = []
        for distance in range(1, self.window + 1):
            near = np.flatnonzero(keys[:-distance] == keys[distance:])
            weights = np.full(len(near), 1 / distance, np.float32)
            parts.append(Links(table.rows[near], table.rows[near + distance], weights))
        return Links.joined(parts)

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        del source, target
        return None
