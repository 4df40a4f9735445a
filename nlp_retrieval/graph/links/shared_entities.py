"""Links between passages that talk about the same entity."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.index.items import ItemTable
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.progress import progress
from nlp_retrieval.graph.links.base import BaseLinkExtractor, LinkSentence, WalkWeight, sentence_at
from nlp_retrieval.graph.links.joining import Extracted, JoiningItems
from nlp_retrieval.graph.store.hashed_rows import HashedRows, hash_of
from nlp_retrieval.graph.store.links import Links, merged_links
from nlp_retrieval.graph.store.passage_terms import PassageTerms
from nlp_retrieval.text.mentions import entities_by_rules
from nlp_retrieval.text.spacy_mentions import SpacyMentions
from nlp_retrieval.text.surfaces import Surface, first_mention, grouped, words_of

_RULES = "rules"
_TABLE = "entities"
_STEP = 1024


class SharedEntities(BaseLinkExtractor):
    """Links two passages whose titles or contents name the same entity; the links have no direction.

    A link weighs the sum over the shared entities of 1 / (number of passages that name the entity).

    Args:
        max_passages: an entity that more passages name says too little about any two of them, and links nothing. An entity
            makes at most ``max_passages`` ** 2 / 2 links.
        mentions: how entities are found: by "rules" (runs of capitalised words and quoted titles, without any model), or
            by a spaCy pipeline, given as its name or folder.
        weight: of walking a link.
    """

    name = "shared_entities"
    search_only = frozenset({"weight"})
    directed = False
    tables = (_TABLE,)

    def __init__(
        self,
        max_passages: Annotated[int, Field(ge=2, le=1000)] = 20,
        mentions: Annotated[str, Field(min_length=1)] = _RULES,
        weight: WalkWeight = 0.5,
    ) -> None:
        self.max_passages = max_passages
        self.mentions = mentions
        self.weight = weight
        self.along = self.against = weight
        self._spacy = SpacyMentions(mentions) if mentions != _RULES else None

    def index_identity(self) -> Config:
        return super().index_identity() | ({} if self._spacy is None else self._spacy.identity("mentions"))

    def extract(self, items: ItemTable) -> Links:
        """Find the links, with 16 bytes of memory per entity and passage that names it.

        Raises:
            DependencyError: spaCy is not installed.
            ModelError: the pipeline does not load, or recognises no entities.
        """
        return self.extracted(items).links

    def extracted(self, items: ItemTable, terms: PassageTerms | None = None) -> Extracted:
        """Find the links, and which passages name which entity."""
        del terms
        table = self._naming(items)
        return Extracted(self._links(table, len(items)), {_TABLE: table})

    def extend(self, joining: JoiningItems) -> Extracted:
        """Find the links of passages that join; they weigh the same as when all passages are indexed at once.

        Until ``compact``, links among earlier passages keep their weights, and stay even where an entity is now too common.
        """
        new = self._naming(joining.items)
        table = joining.with_new(joining.known(_TABLE, new.hashes), new)
        return Extracted(joining.touching(self._links(table, len(joining.everything))), {_TABLE: new})

    def _naming(self, items: ItemTable) -> HashedRows:
        """Entities and the rows that name them."""
        entities, rows = array("Q"), array("q")
        with progress("finding entities", len(items)) as advance:
            for row, named in enumerate(self._entities(item.text for item in items.stream({"title"}))):
                entities.extend(map(hash_of, named))
                rows.extend([row] * len(named))
                if row % _STEP == _STEP - 1:
                    advance(_STEP)
        return HashedRows(*grouped(np.array(entities, np.uint64), np.array(rows, np.int64)))

    def _links(self, table: HashedRows, n_items: int) -> Links:
        counts = np.diff(table.offsets)
        n_named = np.arange(self.max_passages + 1)
        n_pairs = n_named * (n_named - 1) // 2 * np.bincount(counts[counts <= self.max_passages], minlength=len(n_named))
        keys, weights = np.empty(n_pairs.sum(), np.int64), np.empty(n_pairs.sum(), np.float32)
        ends = np.cumsum(n_pairs)
        for count in range(2, self.max_passages + 1):
            part = slice(ends[count - 1], ends[count])
            starts = table.offsets[:-1][counts == count]
            lower, higher = (table.rows[np.add.outer(starts, members)].ravel() for members in np.triu_indices(count, 1))
            keys[part], weights[part] = lower * n_items + higher, 1 / count
        return merged_links(keys, weights, self.name, n_items)

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        mine, theirs = self._entities([source.text, target.text])
        for entity in sorted(mine & theirs, key=lambda entity: (-len(entity), entity)):
            span = first_mention(source.text, [Surface(words_of(entity), lower=True)])
            if span is not None:
                return sentence_at(source.text, *span)
        return None

    def _entities(self, texts: Iterable[str]) -> Iterator[set[str]]:
        return map(entities_by_rules, texts) if self._spacy is None else self._spacy.entities(texts)
