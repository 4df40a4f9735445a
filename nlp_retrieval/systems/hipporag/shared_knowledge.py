"""Links between passages with the same entity by a source of knowledge: a kind of links for graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

from pydantic import Field

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import Config, may_set
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers import Extracted, JoiningItems, SharedEntities, WalkWeight
from nlp_retrieval.systems.hipporag.knowledge import PassageKnowledge, phrase_of
from nlp_retrieval.systems.hipporag.sources import digest_of, is_held, joining_source_of, reads_knowledge, source_of

_ITEMS_AT_ONCE = 256


class SharedKnowledge(SharedEntities):
    """Links two passages whose triples, or lists of entities, name the same entity; the links have no direction.

    A link weighs the sum over the shared entities of 1 / (number of passages that name the entity). The sentence that explains
    a link is one that names an entity which rules find in both texts; there need not be one.

    Args:
        knowledge: a file of entities and triples by passage (see ``OpenIeFile``), or a knowledge store (see
            ``HippoRagRetriever``), read when passages are indexed. The index stores the digest of its content:
            ``sha256:`` and the digest can replace it.
        max_passages: an entity that more passages name links nothing.
        weight: of walking a link.

    Examples:
        >>> searcher = Searcher([LinkGraphRetriever(["bm25"], links=[SharedKnowledge("knowledge.jsonl")])])
        >>> report = searcher.index(items, "index")
        >>> [hit.item.item_id for hit in searcher.search("Who eats tons a day?", k=2)[0]]  # both passages name krill
        ['whale', 'krill']
    """

    name = "shared_knowledge"
    manifest_may_set = may_set("max_passages", "weight", knowledge=reads_knowledge)

    def __init__(
        self, knowledge: str, max_passages: Annotated[int, Field(ge=2, le=1000)] = 20, weight: WalkWeight = 0.3
    ) -> None:
        super().__init__(max_passages, weight=weight)
        self.knowledge = knowledge

    @property
    def finds_again(self) -> bool:  # type: ignore[override]
        return not is_held(self.knowledge)

    def index_identity(self) -> Config:
        return super().index_identity() | {"knowledge": digest_of(self.knowledge)}

    @property
    def recorded_config(self) -> Config:
        return super().recorded_config | {"knowledge": digest_of(self.knowledge)}

    def extend(self, joining: JoiningItems) -> Extracted:
        """Return the links, and the entities of the passages."""
        self._source = joining_source_of(self.knowledge) if joining.segments else source_of(self.knowledge)
        return super().extend(joining)

    def entities_of(self, items: Iterable[SearchableItem]) -> Iterator[set[str]]:
        """Yield the entities of each item."""
        n_items = n_unknown = 0
        stream = iter(items)
        while batch := list(islice(stream, _ITEMS_AT_ONCE)):
            for knowledge in [None] * len(batch) if self._source is None else self._source.of(batch):
                n_items, n_unknown = n_items + 1, n_unknown + (knowledge is None)
                yield set() if knowledge is None else _phrases(knowledge)
        if n_unknown:
            warnings.warn(
                f"{self.name}: nothing is known of {n_unknown:,} of {n_items:,} passages, so they have no such "
                "links; give a file of entities and triples extracted from the same texts",
                RetrievalWarning,
                stacklevel=2,
            )


def _phrases(knowledge: PassageKnowledge) -> set[str]:
    """Return the phrases of all entities of a passage."""
    ends = [end for triple in knowledge.triples for end in (triple.subject, triple.object)]
    return {phrase_of(name) for name in [*knowledge.entities, *ends]} - {""}
