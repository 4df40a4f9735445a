"""Nearest neighbours before a row, against comparing all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from nlp_retrieval.graph.relations import neighbours as room
from nlp_retrieval.graph.relations.neighbours import neighbours_before


def by_hand(
    vectors: np.ndarray, rows: list[int], others: set[int], most: int, least: float, apart: list[int]
) -> list[tuple[int, int]]:
    found = []
    for row in rows:
        near = []
        for other in sorted(others):
            cosine = float(vectors[row] @ vectors[other] / np.linalg.norm(vectors[row]) / np.linalg.norm(vectors[other]))
            if other < row and round(cosine, 6) >= least and apart[row] != apart[other]:
                near.append((-round(cosine, 6), other))
        found += [(row, other) for _, other in sorted(near)[:most]]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_neighbours_are_those_that_comparing_all_pairs_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_ROWS", 7)
    monkeypatch.setattr(room, "_BEFORE", 5)
    draw = np.random.default_rng(seed)
    vectors = draw.integers(-2, 3, (60, 4)).astype(np.float32) + 0.5  # few values, so that there are ties
    others = np.flatnonzero(draw.random(60) < 0.8)
    apart = draw.integers(0, 3, 60)
    for rows in (np.arange(60), np.arange(40, 60)):
        found = neighbours_before(rows, others, vectors.__getitem__, 4, 0.3, apart)
        expected = by_hand(vectors, rows.tolist(), set(others.tolist()), 4, 0.3, apart.tolist())
        assert list(zip(found.rows.tolist(), found.before.tolist(), strict=True)) == expected


def test_vectors_of_length_0_are_near_nothing_and_the_first_row_has_none_before_it() -> None:
    vectors = np.zeros((3, 2), np.float32)
    assert not len(neighbours_before(np.arange(3), np.arange(3), vectors.__getitem__, 5, 0.1).rows)
    assert not len(neighbours_before(np.arange(1), np.arange(3), vectors.__getitem__, 5, -1.0).rows)
