"""Links between passages whose sentences name the same entities, or the same two in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from nlp_retrieval.core.components.trust_rules import loads_pipeline, may_set
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.retrievers.link_graph.links.base import LinkSentence, sentence_at
from nlp_retrieval.retrievers.link_graph.links.shared_entities import SharedEntities, mention_of_longest
from nlp_retrieval.text.mentions import READ_KEYS, PassageEntities, entities_by_sentence

_MOST_PAIRED = 12
"""Most entities of a sentence; one with more is a list, which says nothing of any two of them."""


class EntitySentences(SharedEntities):
    """Links two passages by the entities that their sentences name, and by pairs of entities that share a sentence.

    A link weighs the sum of 1 / (number of passages that name the entity) over the entities that both passages name, and of 1 /
    (number of passages that name both in one sentence) over the pairs of entities that a sentence of each passage names. So
    passages about the same two things are linked even if each of the two is too common to link anything. Every sentence is read
    by itself, and so is the title. The idea of a graph of entities, sentences and passages without relations comes from
    LinearRAG (Zhuang et al., 2025, https://arxiv.org/abs/2510.10114).

    Args:
        max_passages: an entity, or pair, that more passages have says too little about any two of them, and links nothing. Each
            makes at most ``max_passages`` ** 2 / 2 links.
        mentions: method of finding entities: by "rules" (runs of capitalised words and quoted titles, without any model; in
            scripts without capitals quoted titles alone), or by a spaCy pipeline, given as its name or folder.
        weight: of walking a link.
    """

    name = "entity_sentences"
    manifest_may_set = may_set("max_passages", "weight", mentions=loads_pipeline)
    read = READ_KEYS

    def keys_of(self, items: Iterable[SearchableItem]) -> Iterator[set[str]]:
        """Yield the entities of each item, and the pairs that share a sentence."""
        return ({*one.all, *_pairs(one)} for one in entities_by_sentence(items, self._finder))

    def evidence(self, source: SearchableItem, target: SearchableItem) -> LinkSentence | None:
        """Return the sentence of the source that names most of the target's entities; of equals, the first."""
        mine, theirs = entities_by_sentence([source, target], self._finder)
        shared = theirs.all
        counts = [len(names & shared) for names in mine.sentences]
        if not any(counts):
            return _shown_mention(source.title, mine.about & shared) if mine.about & shared else None
        number = counts.index(max(counts))
        return _shown_mention(source.content[slice(*mine.spans[number])], mine.sentences[number] & shared)


def _shown_mention(sentence: str, names: Iterable[str]) -> LinkSentence:
    """The sentence with the mention of the longest of the names; all of it if none is found."""
    return mention_of_longest(sentence, names) or sentence_at(sentence, 0, len(sentence))


def _pairs(passage: PassageEntities) -> Iterator[str]:
    for names in passage.sentences:
        if len(names) <= _MOST_PAIRED:
            yield from ("\0".join(pair) for pair in combinations(sorted(names), 2))
