"""Links between passages that name the same entity."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress_bars import progress
from nlp_retrieval.retrievers.link_graph.links.base import BaseLinkExtractor, LinkSentence, WalkWeight, sentence_at
from nlp_retrieval.retrievers.link_graph.links.joining import Extracted, JoiningItems
from nlp_retrieval.retrievers.link_graph.store.hashed_rows import HashedRows, hash_of
from nlp_retrieval.retrievers.link_graph.store.links import Links, merged_links
from nlp_retrieval.retrievers.link_graph.store.passage_terms import PassageTerms
from nlp_retrieval.text.mentions import RULES, EntityFinder, EntityRule
from nlp_retrieval.text.surfaces import Surface, first_mention, grouped, words_of

# Links between passages that share a key, such as a name, or two names in one sentence.
#
# A key is a text, stored as its hash with the rows that have it. A key that m passages have links each two of them with weight
# 1/m.

_TABLE = "entities"
_STEP = 1024


class SharedKeys(BaseLinkExtractor):
    """Links two passages that share keys; the links have no direction.

    A link weighs the sum over the shared keys of 1 / (number of passages that have the key).
    """

    directed = False
    tables = (_TABLE,)

    read: ClassVar[frozenset[str]]
    """The metadata that decide an item's keys."""

    max_passages: int
    """A key that more passages have links nothing. A key makes at most ``max_passages`` ** 2 / 2 links."""

    @abstractmethod
    def keys_of(self, items: Iterable[SearchableItem]) -> Iterator[Iterable[str]]:
        """Yield the keys of each item, each once, in any order."""

    def extract(self, items: ItemTable) -> Links:
        """Find the links, with 16 bytes of memory per key and passage that has it.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        return self.extracted(items).links

    def extracted(self, items: ItemTable, terms: PassageTerms | None = None) -> Extracted:
        """Find the links, and which passages have which key."""
        del terms
        table = self._having(items)
        return Extracted(self._links(table, len(items)), {_TABLE: table})

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links of passages that join; they weigh the same as when all passages are indexed at once.

        Until ``compact``, links among earlier passages keep their weights, and stay even where a key is now too common.
        """
        new = self._having(joining.items)
        table = joining.with_new(joining.known(_TABLE, new.hashes), new)
        return Extracted(joining.touching(self._links(table, len(joining.everything))), {_TABLE: new})

    def _having(self, items: ItemTable) -> HashedRows:
        """Keys and the rows that have them."""
        hashes, rows = array("Q"), array("q")
        with progress("finding entities", len(items)) as advance:
            for row, keys in enumerate(self.keys_of(items.stream(self.read))):
                before = len(hashes)
                hashes.extend(map(hash_of, keys))
                rows.extend([row] * (len(hashes) - before))
                if row % _STEP == _STEP - 1:
                    advance(_STEP)
        return HashedRows(*grouped(np.array(hashes, np.uint64), np.array(rows, np.int64)))

    def _links(self, table: HashedRows, n_items: int) -> Links:
        counts = np.diff(table.offsets)
        n_having = np.arange(self.max_passages + 1)
        n_pairs = n_having * (n_having - 1) // 2 * np.bincount(counts[counts <= self.max_passages], minlength=len(n_having))
        keys, weights = np.empty(n_pairs.sum(), np.int64), np.empty(n_pairs.sum(), np.float32)
        ends = np.cumsum(n_pairs)
        for count in range(2, self.max_passages + 1):
            part = slice(ends[count - 1], ends[count])
            starts = table.offsets[:-1][counts == count]
            lower, higher = (table.rows[np.add.outer(starts, members)].ravel() for members in np.triu_indices(count, 1))
            keys[part], weights[part] = lower * n_items + higher, 1 / count
        return merged_links(keys, weights, self.name, n_items)


class SharedEntities(SharedKeys):
    """Links two passages whose titles or contents name the same entity; the links have no direction.

    A link weighs the sum over the shared entities of 1 / (number of passages that name the entity).

    Args:
        max_passages: an entity that more passages name says too little about any two of them, and links nothing. An entity
            makes at most ``max_passages`` ** 2 / 2 links.
        mentions: method of finding entities: by "rules" (runs of capitalised words and quoted titles, without any model), or by
            a spaCy pipeline, given as its name or folder.
        weight: of walking a link.
    """

    name = "shared_entities"
    manifest_may_set = may_set("max_passages", "weight", mentions=loads_pipeline)
    search_only = frozenset({"weight"})
    read = frozenset({"title"})

    def __init__(
        self,
        max_passages: Annotated[int, Field(ge=2, le=1000)] = 20,
        mentions: EntityRule = RULES,
        weight: WalkWeight = 0.5,
    ) -> None:
        self.max_passages = max_passages
        self.mentions = mentions
        self.weight = weight
        self.along = self.against = weight
        self._finder = EntityFinder(mentions)

    def index_identity(self) -> Config:
        return super().index_identity() | self._finder.identity()

    def keys_of(self, items: Iterable[SearchableItem]) -> Iterator[set[str]]:
        """Yield the entities of each item."""
        return self._entities(item.text for item in items)

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        mine, theirs = self._entities([source.text, target.text])
        return mention_of_longest(source.text, mine & theirs)

    def _entities(self, texts: Iterable[str]) -> Iterator[set[str]]:
        return self._finder.find(texts)


def mention_of_longest(text: str, names: Iterable[str]) -> LinkSentence | None:
    """Return the sentence that first mentions the longest of some names that a text mentions; None if it mentions none.

    Args:
        text: the whole text.
        names: normalised, as found in it.
    """
    for name in sorted(names, key=lambda name: (-len(name), name)):
        span = first_mention(text, [Surface(words_of(name), lower=True)])
        if span is not None:
            return sentence_at(text, *span)
    return None
