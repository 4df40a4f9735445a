"""Links between passages that talk about the same entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from nlp_retrieval.core.components.component import Config
from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.links.base import LinkSentence, WalkWeight, sentence_at
from nlp_retrieval.retrievers.link_graph.links.shared_keys import SharedKeys
from nlp_retrieval.text.entities import RULES, EntityFinder, EntityRule
from nlp_retrieval.text.surfaces import Surface, first_mention, words_of


class SharedEntities(SharedKeys):
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
    """Return the sentence that first mentions the longest of some names that a text mentions; None where it mentions none.

    Args:
        text: the whole text.
        names: normalised, as they were found in it.
    """
    for name in sorted(names, key=lambda name: (-len(name), name)):
        span = first_mention(text, [Surface(words_of(name), lower=True)])
        if span is not None:
            return sentence_at(text, *span)
    return None
