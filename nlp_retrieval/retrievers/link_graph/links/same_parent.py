"""Links between neighbouring passages of one document."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import canonical_json
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.links.base import BaseLinkExtractor, LinkSentence, WalkWeight
from nlp_retrieval.retrievers.link_graph.links.joining import Extracted, JoiningItems
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import HashedRows
from nlp_retrieval.retrievers.link_graph.store.links import Links
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms

_TABLE = "parents"


class SameParent(BaseLinkExtractor):
    """Links nearby passages of a document; links have no direction, and no sentence as evidence.

    Passages of one parent are counted in the order of the corpus. Two that are ``d`` apart, at most ``window``, are
    linked with weight 1/d: at most ``window`` links per passage, as all pairs of a long document would be too many.

    Args:
        parent: metadata that names the document a passage was cut from; ``ChunkingLoader`` writes "parent_id".
        window: greatest distance of linked passages, 1 for direct neighbours only.
        weight: of walking a link.
    """

    name = "same_parent"
    manifest_may_set = may_set("parent", "window", "weight")
    search_only = frozenset({"weight"})
    directed = False
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

    def extracted(self, items: ItemTable, terms: PassageTerms | None = None) -> Extracted:
        """Find the links, and the passages of each parent."""
        del terms
        table = self._members(items)
        return Extracted(self._links(table), {_TABLE: table})

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links of passages that join: the same as when all passages are indexed at once.

        Earlier passages with a deleted one between them become neighbours at ``compact``.
        """
        new = self._members(joining.items)
        table = joining.with_new(joining.known(_TABLE, new.hashes), new)
        return Extracted(joining.touching(self._links(table)), {_TABLE: new})

    def _members(self, items: ItemTable) -> HashedRows:
        """Parents and the rows of their passages."""
        parents = (item.metadata.get(self.parent) for item in items.stream({self.parent}))
        return HashedRows.of((canonical_json(parent), row) for row, parent in enumerate(parents) if parent is not None)

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
