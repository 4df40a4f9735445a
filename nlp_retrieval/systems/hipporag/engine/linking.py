"""Linking a query to entities of the graph: by triples, by entities near the whole query, or by names in the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nlp_retrieval.core import Rows, Scores
from nlp_retrieval.encoders import Vectors
from nlp_retrieval.systems.hipporag.engine.knowledge_graph import KnowledgeGraph
from nlp_retrieval.text import entities_by_rules

Kept = Callable[[list[str], list[Rows]], list[Rows]]
"""Given queries and the triples near each, returns those triples of each that help to answer it."""


@dataclass(frozen=True)
class Linked:
    """Entities that the walk of a query starts from.

    Args:
        entities: their numbers, ascending.
        weights: of starts at each, above 0; relative to a passage's similarity of 0 to 1.
        triples: the triples that led to them, best first; may be empty.
        similarities: inner products of triples (or, without triples, of entities) and query.
    """

    entities: Rows
    weights: Scores
    triples: Rows
    similarities: Scores


def linked_by_triples(
    knowledge: KnowledgeGraph, queries: list[str], vectors: Vectors, k: int, entity_k: int, kept: Kept | None
) -> list[Linked]:
    """Link queries to the subjects and objects of the triples nearest to them.

    A triple's weight is its similarity, min-max normalised over all triples of the index; an entity's is the mean weight of
    its triples, divided by the number of passages that name it; the best entities are kept.

    Args:
        knowledge: the graph.
        queries: the queries.
        vectors: their vectors.
        k: number of triples per query.
        entity_k: number of entities per query.
        kept: removes triples that do not help; None keeps all.
    """
    nearest = knowledge.triples.nearest(vectors, k)
    if not len(knowledge.triples.places):
        return [_linked(np.zeros(0, np.int64), np.zeros(0))] * len(queries)
    shown = [triples for triples, _ in nearest]
    chosen = shown if kept is None else kept(queries, shown)
    found = []
    for (triples, scores), lowest, stay in zip(nearest, knowledge.triples.farthest(vectors), chosen, strict=True):
        weights = _scaled(scores, lowest)
        here = np.isin(triples, stay)
        found.append(_from_triples(knowledge, triples[here], weights[here], scores[here], entity_k))
    return found


def linked_by_nodes(knowledge: KnowledgeGraph, vectors: Vectors, k: int) -> list[Linked]:
    """Link queries to the entities nearest to them, weighted by similarity as triples are (the published ablation)."""
    nearest = knowledge.entities.nearest(vectors, k)
    if not knowledge.n_entities:
        return [_linked(numbers, scores) for numbers, scores in nearest]
    lowest = knowledge.entities.farthest(vectors)
    return [
        _linked(numbers, _scaled(scores, low) / knowledge.passages_of_entity[numbers], scores)
        for (numbers, scores), low in zip(nearest, lowest, strict=True)
    ]


def linked_by_names(
    knowledge: KnowledgeGraph, queries: Sequence[str], encode: Callable[[list[str]], Vectors], k: int
) -> list[Linked]:
    """Link queries to the entities nearest to each name in them, or to the query if it has none.

    Args:
        knowledge: the graph.
        queries: the queries.
        encode: returns the vectors of names.
        k: number of entities per name.
    """
    names = [sorted(entities_by_rules(query)) or [query] for query in queries]
    distinct = list(dict.fromkeys(name for of_query in names for name in of_query))
    nearest = dict(zip(distinct, knowledge.entities.nearest(encode(distinct), k), strict=True))
    found = []
    for of_query in names:
        numbers = np.concatenate([nearest[name][0] for name in of_query])
        scores = np.concatenate([nearest[name][1] for name in of_query])
        found.append(_linked(numbers, np.maximum(scores, 0.0), scores))
    return found


def _from_triples(knowledge: KnowledgeGraph, triples: Rows, weights: Scores, scores: Scores, entity_k: int) -> Linked:
    ends, place = np.unique(knowledge.ends[triples], return_inverse=True)
    occurrences = np.bincount(place.ravel(), minlength=len(ends))
    sums = np.bincount(place.ravel(), np.repeat(weights, 2), len(ends))
    means = sums / np.maximum(occurrences, 1) / knowledge.passages_of_entity[ends]
    foremost = np.sort(np.lexsort((ends, -means))[:entity_k])
    some = foremost[means[foremost] > 0]
    return Linked(ends[some], means[some], triples, scores)


def _linked(numbers: Rows, weights: Scores, scores: Scores | None = None) -> Linked:
    """Return entities with weights; the higher one of duplicates counts."""
    entities, place = np.unique(numbers, return_inverse=True)
    highest = np.zeros(len(entities))
    np.maximum.at(highest, place, weights)
    similarities = np.full(len(entities), -np.inf)
    np.maximum.at(similarities, place, weights if scores is None else scores)
    some = highest > 0
    return Linked(entities[some], highest[some], np.zeros(0, np.int64), similarities[some])


def _scaled(scores: Scores, lowest: float) -> Scores:
    """Return scores scaled from 0, the lowest of all, to 1, the first of these; 1 if all are equal."""
    span = float(scores[0]) - lowest
    return (scores - lowest) / span if span > 0 else np.ones(len(scores))
