"""Entities and triples of a graph, from the statements of passages: normalised phrases, each once, identified by hashes.

A phrase is a text's words without case, accents and punctuation, so that "Erik Hort" and "ERIK HORT'S" are one entity. A triple
is the phrases of its three parts. Triples without words in subject or object are dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import ItemTable, Mask, Rows, tracked
from nlp_retrieval.retrievers import Hashes, hash_of
from nlp_retrieval.systems.hipporag.knowledge.statements import KnowledgeSource, Triple, phrase_of

_ITEMS_AT_ONCE = 256
_BETWEEN = "\x1f"  # never in a phrase


def phrases_of(triple: Triple) -> Triple | None:
    """Return a triple of normalised phrases; None if subject or object has no words."""
    subject, predicate, target = map(phrase_of, (triple.subject, triple.predicate, triple.object))
    return Triple(subject, predicate, target) if subject and target else None


def entity_hash(phrase: str) -> int:
    """Return the hash of an entity."""
    return hash_of(phrase)


def triple_hash(triple: Triple) -> int:
    """Return the hash of a triple of phrases."""
    return hash_of(_BETWEEN.join((triple.subject, triple.predicate, triple.object)))


def shown_triple(subject: str, predicate: str, target: str) -> str:
    """Return a triple as a sentence, for encoding and display."""
    return " ".join(part for part in (subject, predicate, target) if part)


@dataclass(frozen=True)
class Collected:
    """Statements of the passages of a segment.

    Args:
        known: ``[passages]``, whether the source knows it.
        entities: phrases by hash.
        triples: triples of phrases by hash.
        rows: the passage of each statement, ascending; a passage states a triple once.
        stated: hash of the triple of each statement.
    """

    known: Mask
    entities: dict[int, str]
    triples: dict[int, Triple]
    rows: Rows
    stated: Hashes

    def without(self, entities: Hashes, triples: Hashes) -> Collected:
        """Return the same statements, without the phrases and triples of these hashes."""
        no_entities, no_triples = set(entities.tolist()), set(triples.tolist())
        return Collected(
            self.known,
            {key: phrase for key, phrase in self.entities.items() if key not in no_entities},
            {key: triple for key, triple in self.triples.items() if key not in no_triples},
            self.rows,
            self.stated,
        )


def collected(items: ItemTable, source: KnowledgeSource | None) -> Collected:
    """Look up the statements of items.

    Args:
        items: all of a segment.
        source: of knowledge; None if nothing is known.
    """
    known = np.zeros(len(items), np.bool_)
    entities: dict[int, str] = {}
    triples: dict[int, Triple] = {}
    rows, stated = array("q"), array("Q")
    row = 0
    for batch in _in_batches(items):
        for knowledge in source.of(batch) if source is not None else [None] * len(batch):
            known[row] = knowledge is not None
            said = _distinct(knowledge.triples if knowledge is not None else ())
            for key, triple in sorted(said.items()):
                triples[key] = triple
                for phrase in (triple.subject, triple.object):
                    entities[entity_hash(phrase)] = phrase
                rows.append(row)
                stated.append(key)
            row += 1
    return Collected(known, entities, triples, np.array(rows, np.int64), np.array(stated, np.uint64))


def _in_batches(items: ItemTable) -> Iterator[list[SearchableItem]]:
    stream = items.stream()
    batches = iter(lambda: list(islice(stream, _ITEMS_AT_ONCE)), [])
    return tracked("hipporag: reading what passages say", batches, len(items))


def _distinct(triples: Sequence[Triple]) -> dict[int, Triple]:
    phrases = (phrases_of(triple) for triple in triples)
    return {triple_hash(triple): triple for triple in phrases if triple is not None}
