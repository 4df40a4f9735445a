"""Explains why a passage was found: the triples near the query, the entities they led to, and the passages on the way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nlp_retrieval import Explanation, SearchableItem
from nlp_retrieval.core import ItemTable, Step
from nlp_retrieval.retrievers import LinkChain
from nlp_retrieval.systems.hipporag.engine.knowledge_graph import KnowledgeGraph
from nlp_retrieval.systems.hipporag.engine.linking import Linked
from nlp_retrieval.systems.hipporag.engine.ranking import DenseScores

KIND = "knowledge"
"""The kind of steps between passages that speak of one entity, or of two that triples or synonyms link."""


class Explainer:
    """Puts chains over one query's graph into words.

    Args:
        knowledge: the graph.
        linked: the entities of the query.
        dense: similarities of all passages.
        items: the items of the index.
    """

    def __init__(self, knowledge: KnowledgeGraph, linked: Linked, dense: DenseScores, items: ItemTable) -> None:
        self._knowledge, self._linked, self._dense, self._items = knowledge, linked, dense, items

    def explanation(self, chain: LinkChain) -> Explanation:
        """Put a chain into words; it begins at an entity of the query and ends at a passage."""
        n_rows = self._knowledge.n_rows
        places = [place for place, node in enumerate(chain.rows) if node < n_rows]
        passages = self._items.items(np.array([chain.rows[place] for place in places], np.int64))
        between = [self._phrases(chain.rows[one + 1 : other]) for one, other in pairwise(places)]
        steps = tuple(
            self._step(source, target, chain.rows[place], phrases)
            for source, target, place, phrases in zip(passages, passages[1:], places[1:], between, strict=False)
        )
        return Explanation(passages[-1], self._origin(chain.rows[: places[0]]), steps, chain.strength)

    def similar(self, row: int, item: SearchableItem, strength: float) -> Explanation:
        """Explain a passage that was found by similarity alone."""
        return Explanation(item, self._similarity(row), (), strength)

    def _origin(self, entities: Sequence[int]) -> str:
        """What leads from the query to the first passage of a chain."""
        phrases = self._phrases(entities)
        first = entities[0] - self._knowledge.n_rows
        near = [
            f'"{self._knowledge.shown(triple)}" ({similarity:.3g})'
            for triple, similarity in zip(self._linked.triples.tolist(), self._linked.similarities.tolist(), strict=False)
            if first in self._knowledge.ends[triple]
        ]
        reason = f"the query is near {' and '.join(near)}" if near else f'the query is near "{phrases[0]}"'
        onwards = f", and from there by {' and '.join(map(repr, phrases[1:]))}" if len(phrases) > 1 else ""
        return f"{reason}{onwards}"

    def _similarity(self, row: int) -> str:
        place = int(np.flatnonzero(self._dense.rows == row)[0])
        return f"similarity ranks it {place + 1} of {len(self._dense.rows)} (score {self._dense.similarities[place]:.3g})"

    def _phrases(self, nodes: Sequence[int]) -> list[str]:
        return [self._knowledge.phrase(node - self._knowledge.n_rows) for node in nodes]

    def _step(self, source: SearchableItem, target: SearchableItem, row: int, phrases: Sequence[str]) -> Step:
        """A step to a passage, with a triple that it states of the last entity on the way."""
        for triple in self._knowledge.stated_by(row).tolist():
            shown = self._knowledge.shown(triple)
            subject, end = (self._knowledge.phrase(int(entity)) for entity in self._knowledge.ends[triple])
            if subject == phrases[-1]:
                return Step(source, target, KIND, False, shown, 0, len(subject))
            if end == phrases[-1]:
                return Step(source, target, KIND, False, shown, len(shown) - len(end), len(shown))
        return Step(source, target, KIND, False)
