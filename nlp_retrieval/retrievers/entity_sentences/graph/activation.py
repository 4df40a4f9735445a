"""Which entities a query leads to: from those that it names, over the sentences that are like it, to those named beside them.

Entities that the query names are active at 1. In each round, a sentence that names an active entity passes its activation on,
times the similarity of sentence and query (0 to 1; others are cut to that), to all entities that it names; an entity keeps
the highest it has had. So an activation is a product of similarities along a chain of sentences (semantic bridging: LinearRAG,
Zhuang et al., 2025, https://arxiv.org/abs/2510.10114). Only sentences that name an active entity are ever compared with the
query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core.candidates import Rows, Scores, entries_of
from nlp_retrieval.retrievers.entity_sentences.graph.sentence_graph import SentenceGraph

NOBODY = -1


@dataclass(frozen=True)
class Activation:
    """The active entities of a query.

    Args:
        entities: numbers, ascending.
        values: above 0, at most 1.
        sentences: over which each was reached; -1 for those that the query names.
        before: which entity that sentence was reached from; -1 likewise.
    """

    entities: Rows
    values: Scores
    sentences: Rows
    before: Rows

    def bridges_to(self, entity: int) -> list[tuple[int, int]]:
        """The sentences that lead to an active entity, first to last, each with the entity that it was reached from."""
        bridges: list[tuple[int, int]] = []
        at = int(np.searchsorted(self.entities, entity))
        while self.sentences[at] != NOBODY:
            bridges.append((int(self.sentences[at]), int(self.before[at])))
            at = int(np.searchsorted(self.entities, self.before[at]))
        return bridges[::-1]


def activate(
    graph: SentenceGraph,
    named: Rows,
    similarities: Callable[[Rows], Scores],
    rounds: int,
    threshold: float,
    max_passages: int,
) -> Activation:
    """Activate entities from those that a query names.

    Args:
        graph: entities and sentences.
        named: the entities that the query names, distinct.
        similarities: of some sentences to the query.
        rounds: the most sentences in a chain.
        threshold: an activation below this is dropped; above 0.
        max_passages: an entity that more passages name is never active.
    """
    values: dict[int, float] = dict.fromkeys(_rare(graph, np.sort(named), max_passages).tolist(), 1.0)
    reached: dict[int, tuple[int, int]] = {}
    frontier = np.array(sorted(values), np.int64)
    for _ in range(rounds):
        sentences, before, strengths = _leading(graph, frontier, values)
        strengths = strengths * np.clip(similarities(sentences), 0.0, 1.0)
        kept = strengths >= threshold
        entities, sentences, before, strengths = _spread(graph, sentences[kept], before[kept], strengths[kept])
        rare = graph.n_passages_of[entities] <= max_passages
        raised = []
        for entity, sentence, source, strength in zip(
            *(column[rare].tolist() for column in (entities, sentences, before, strengths)), strict=True
        ):
            if strength > values.get(entity, 0.0):
                values[entity], reached[entity] = strength, (sentence, source)
                raised.append(entity)
        frontier = np.array(raised, np.int64)
        if len(frontier) == 0:
            break
    entities = np.array(sorted(values), np.int64)
    ways = [reached.get(entity, (NOBODY, NOBODY)) for entity in entities.tolist()]
    columns = np.array(ways, np.int64).reshape(-1, 2)
    return Activation(entities, np.array([values[e] for e in entities.tolist()], np.float64), columns[:, 0], columns[:, 1])


def _rare(graph: SentenceGraph, entities: Rows, max_passages: int) -> Rows:
    return entities[graph.n_passages_of[entities] <= max_passages]


def _leading(graph: SentenceGraph, frontier: Rows, values: dict[int, float]) -> tuple[Rows, Rows, Scores]:
    """The sentences that name an entity of the frontier, ascending; the most active of these, and its activation."""
    entries, counts = entries_of(graph.naming_offsets, frontier)
    sentences, before = graph.naming[entries], np.repeat(frontier, counts)
    strengths = np.repeat(np.array([values[entity] for entity in frontier.tolist()], np.float64), counts)
    return _strongest(sentences, before, strengths)


def _spread(graph: SentenceGraph, sentences: Rows, before: Rows, strengths: Scores) -> tuple[Rows, Rows, Rows, Scores]:
    """The entities that sentences name, ascending; the strongest sentence of each, its entity before, and its strength."""
    entries, counts = entries_of(graph.named_offsets, sentences)
    entities = graph.named[entries].astype(np.int64)
    places = np.repeat(np.arange(len(sentences)), counts)
    entities, places, strengths = _strongest(entities, places, strengths[places])
    return entities, sentences[places], before[places], strengths


def _strongest(keys: Rows, ways: Rows, strengths: Scores) -> tuple[Rows, Rows, Scores]:
    """Per key, ascending, the way of the highest strength; of equal ones the lowest."""
    order = np.lexsort((ways, -strengths, keys))
    keys, ways, strengths = keys[order], ways[order], strengths[order]
    first = np.ones(len(keys), bool)
    first[1:] = keys[1:] != keys[:-1]
    return keys[first], ways[first], strengths[first]
