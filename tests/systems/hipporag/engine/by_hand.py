"""HippoRAG 2 once more, with dictionaries and a dense solve: the oracle of the tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hashed_words import HashedWords
from numpy.typing import NDArray

from nlp_retrieval import SearchableItem
from systems.hipporag.stored_knowledge import said_by

Array = NDArray[np.float64]


class ByHand:
    """The graph of some passages.

    Args:
        items: the passages.
        encoder: of everything.
        threshold: the least cosine of synonyms.
    """

    def __init__(self, items: Sequence[SearchableItem], encoder: HashedWords, threshold: float = 0.8) -> None:
        self.items, self.encoder = items, encoder
        self.said = [sorted({tuple(" ".join(part.lower().split()) for part in one) for one in said_by(item)}) for item in items]
        self.triples = sorted({triple for said in self.said for triple in said})
        self.entities = sorted({end for subject, _, target in self.triples for end in (subject, target)})
        self.number = {entity: place for place, entity in enumerate(self.entities)}
        self.vectors = self.encoded(self.entities)
        self.of_triples = self.encoded([" ".join(triple) for triple in self.triples])
        self.of_items = self.encoded([item.text for item in items])
        self.mentioned: Array = np.zeros((len(items), len(self.entities)))
        for row, said in enumerate(self.said):
            for subject, _, target in said:
                self.mentioned[row, [self.number[subject], self.number[target]]] = 1.0
        self.synonyms = {
            (one, other): float(self.vectors[one] @ self.vectors[other])
            for one in range(len(self.entities))
            for other in range(len(self.entities))
            if one < other
            and min(len(self.entities[n].replace(" ", "")) for n in (one, other)) >= 3
            and self.vectors[one] @ self.vectors[other] >= threshold
        }

    def encoded(self, texts: Sequence[str]) -> Array:
        return self.encoder.encode_passages(list(texts)).astype(np.float64)

    def matrix(self, *, passages: bool = True) -> Array:
        """Weights of all links, ``[nodes, nodes]``."""
        n_rows, n_nodes = len(self.items), len(self.items) + len(self.entities)
        weights = np.zeros((n_nodes, n_nodes))
        for said in self.said:
            for subject, _, target in said:
                one, other = self.number[subject] + n_rows, self.number[target] + n_rows
                if one != other:
                    weights[one, other] += 1.0
                    weights[other, one] += 1.0
        for (one, other), cosine in self.synonyms.items():
            weights[one + n_rows, other + n_rows] += cosine
            weights[other + n_rows, one + n_rows] += cosine
        if passages:
            weights[:n_rows, n_rows:] = 0.5 * self.mentioned
            weights[n_rows:, :n_rows] = 0.5 * self.mentioned.T
        return weights

    def seeds(
        self, query: str, k: int = 5, entity_k: int = 5, keep: Sequence[tuple[str, ...]] | None = None
    ) -> dict[str, float]:
        """The entities that a query is linked to by triples, and their weights."""
        similarities = self.of_triples @ self.encoded([query])[0]
        scaled = scaled_of(similarities)
        foremost = sorted(range(len(self.triples)), key=lambda n: -similarities[n])[:k]
        sums: Counter[str] = Counter()
        counts: Counter[str] = Counter()
        for number in foremost:
            subject, _, target = self.triples[number]
            for end in (subject, target):
                sums[end] += scaled[number]
                counts[end] += 1
        means = {end: sums[end] / counts[end] / self.mentioned[:, self.number[end]].sum() for end in sums}
        return {end: means[end] for end in sorted(means, key=lambda end: -means[end])[:entity_k] if means[end] > 0}

    def ranks(self, query: str, passage_weight: float = 0.05, damping: float = 0.5, **linking: int) -> Array:
        """The walk's share of each passage; by similarity where no entity is linked."""
        n_rows = len(self.items)
        similarity = scaled_of(self.of_items @ self.encoded([query])[0])
        seeds = self.seeds(query, **linking) if self.triples else {}
        if not seeds:
            return similarity / similarity.sum()
        restart = np.zeros(n_rows + len(self.entities))
        for entity, weight in seeds.items():
            restart[n_rows + self.number[entity]] = weight
        restart[:n_rows] = passage_weight * similarity
        walk = walk_of(self.matrix(passages=passage_weight > 0), restart, damping)
        return walk[:n_rows] if passage_weight > 0 else self.mentioned @ walk[n_rows:]


def walk_of(weights: Array, restart: Array, damping: float) -> Array:
    """Personalized PageRank by solving its equations; at a node without links the walk restarts."""
    totals = weights.sum(axis=1, keepdims=True)
    steps = np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0)
    share = restart / restart.sum()
    walk: Array = np.linalg.solve(np.eye(len(share)) - damping * steps.T, (1 - damping) * share)
    return walk / walk.sum()


def scaled_of(scores: Array) -> Array:
    """From 0 to 1; 1 where all are equal."""
    span = scores.max() - scores.min()
    return (scores - scores.min()) / span if span > 1e-9 else np.ones(len(scores))
