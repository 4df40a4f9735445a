"""Links between neighbouring passages of one document."""

from __future__ import annotations

from array import array
from typing import Annotated

import numpy as np
from pydantic import Field

from nlp_retrieval.core.component import canonical_json
from nlp_retrieval.core.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.graph.extractor import BaseLinkExtractor, Evidence, WalkWeight
from nlp_retrieval.graph.link_graph import Links
from nlp_retrieval.graph.title_table import hash_of


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
        parents, members = array("Q"), array("q")
        for row, item in enumerate(items.stream({self.parent})):
            parent = item.metadata.get(self.parent)
            if parent is not None:
                parents.append(hash_of(canonical_json(parent)))
                members.append(row)
        keys, rows = np.array(parents, np.uint64), np.array(members, np.int64)
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        parts = []
        for distance in range(1, self.window + 1):
            near = np.flatnonzero(keys[:-distance] == keys[distance:])
            weights = np.full(len(near), 1 / distance, np.float32)
            parts.append(Links(rows[near], rows[near + distance], weights))
        return Links.joined(parts)

    def evidence(self, source: SearchableItem, target: SearchableItem) -> Evidence | None:
        del source, target
        return None
