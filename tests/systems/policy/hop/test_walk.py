"""Best-first walks against following every path."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nlp_retrieval.systems.policy.chunk_tables.rows import RELATION_TYPES
from nlp_retrieval.systems.policy.hop.graph import RelationGraph
from nlp_retrieval.systems.policy.hop.relation import Relation, Relations

WEIGHTS = dict(zip(RELATION_TYPES, (0.8, 0.9, 0.0, 1.0, 0.7, 0.5), strict=True))
ENOUGH = 10_000


def drawn(seed: int, n_rows: int) -> list[Relation]:
    draw = random.Random(seed)
    pairs = {(draw.randrange(n_rows), draw.randrange(n_rows)) for _ in range(3 * n_rows)}
    return [Relation(a, b, draw.choice(RELATION_TYPES), draw.choice([0.2, 0.5, 0.9, 1.0])) for a, b in sorted(pairs) if a != b]


def by_hand(
    relations: list[Relation], starts: dict[int, float], hops: int, decay: float, allowed: set[int]
) -> dict[int, float]:
    """The strength of the strongest of all paths to each passage that do not lead back to their start."""
    best: dict[int, float] = {}

    def follow(origin: int, row: int, strength: float, left: int) -> None:
        for one in relations:
            if row not in (one.source, one.target) or left == 0:
                continue
            other = one.target if row == one.source else one.source
            reached = strength * one.confidence * WEIGHTS[one.type] * decay
            if other == origin or other not in allowed or reached <= 0:
                continue
            best[other] = max(best.get(other, 0.0), reached)
            follow(origin, other, reached, left - 1)

    for row, strength in starts.items():
        follow(row, row, strength, hops)
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_the_strongest_path_to_each_passage_is_found(seed: int, hops: int) -> None:
    n_rows = 14
    relations = drawn(seed, n_rows)
    draw = random.Random(seed)
    allowed = {row for row in range(n_rows) if draw.random() < 0.8}
    starts = {row: draw.choice([0.3, 1.0]) for row in sorted(allowed)[:4]}
    graph = RelationGraph(Relations.of(relations), n_rows, WEIGHTS, ENOUGH)
    known = list(graph.relations)
    mask = np.array([row in allowed for row in range(n_rows)])
    paths = graph.walk(list(starts), list(starts.values()), hops, 0.9, mask, ENOUGH)
    assert {path.row: path.strength for path in paths} == pytest.approx(by_hand(relations, starts, hops, 0.9, allowed))
    assert [(-path.strength, path.row) for path in paths] == sorted((-path.strength, path.row) for path in paths)
    for path in paths:
        strength = starts[path.rows[0]]
        for one, other, number in zip(path.rows, path.rows[1:], path.relations, strict=False):
            found = known[number]
            assert {found.source, found.target} == {one, other}
            strength *= found.confidence * WEIGHTS[found.type] * 0.9
        assert path.strength == pytest.approx(strength)
        assert len(path.relations) <= hops
