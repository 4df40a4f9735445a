"""Nearest neighbours before a row, against comparing all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from nlp_retrieval.systems.policy.hop import neighbours as room
from nlp_retrieval.systems.policy.hop.neighbours import neighbours_before


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


@pytest.mark.parametrize("apart", [False, True])
def test_in_cells_nearly_all_neighbours_are_found_and_no_others(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    topics = draw.standard_normal((40, 16))
    vectors = (topics[draw.integers(0, 40, 3000)] + 0.4 * draw.standard_normal((3000, 16))).astype(np.float32)
    others, numbers = np.flatnonzero(draw.random(3000) < 0.9), np.arange(3000) // 20 if apart else None
    rows = others[300:]
    exact = neighbours_before(rows, others, vectors.__getitem__, 5, 0.6, numbers)
    monkeypatch.setattr(room, "_ALL_PAIRS", 0)
    monkeypatch.setattr(room, "_CELL", 64)
    monkeypatch.setattr(room, "_NEAREST_CELLS", 8)
    monkeypatch.setattr(room, "_KEPT_PAIRS", 2000)  # so that floors are raised many times
    found = neighbours_before(rows, others, vectors.__getitem__, 5, 0.6, numbers)
    pairs, wanted = (
        {(row, other): like for row, other, like in zip(*columns, strict=True)} for columns in map(_columns, (found, exact))
    )
    assert len(pairs.keys() & wanted.keys()) > 0.98 * len(wanted) > 0.98 * 2 * len(rows)
    for (row, other), like in pairs.items():
        cosine = vectors[row] @ vectors[other] / np.linalg.norm(vectors[row]) / np.linalg.norm(vectors[other])
        assert like == pytest.approx(float(cosine), abs=1e-5)
        assert other < row
        assert not apart or other // 20 != row // 20
    assert np.bincount(found.rows).max() == 5
    order = np.lexsort((found.before, -found.similarities, found.rows))
    assert (order == np.arange(len(order))).all()


def test_where_all_cells_are_looked_at_the_neighbours_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(4).integers(-2, 3, (600, 5)).astype(np.float32) + 0.5  # few values, so that there are ties
    rows = np.arange(600)
    exact = neighbours_before(rows, rows, vectors.__getitem__, 4, 0.3)
    for name, value in {"_ALL_PAIRS": 0, "_CELL": 50, "_NEAREST_CELLS": 12, "_KEPT_PAIRS": 500}.items():
        monkeypatch.setattr(room, name, value)
    found = neighbours_before(rows, rows, vectors.__getitem__, 4, 0.3)
    assert _columns(found) == _columns(exact)


def test_a_few_rows_that_join_many_are_compared_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(5).standard_normal((2000, 4)).astype(np.float32)
    monkeypatch.setattr(room, "_ALL_PAIRS", 0)
    monkeypatch.setattr(room, "_CELL", 10)
    rows, others = np.arange(1997, 2000), np.arange(2000)
    expected = by_hand(vectors, rows.tolist(), set(others.tolist()), 6, 0.1, others.tolist())
    found = neighbours_before(rows, others, vectors.__getitem__, 6, 0.1)
    assert list(zip(found.rows.tolist(), found.before.tolist(), strict=True)) == expected


def _columns(pairs: room.Pairs) -> tuple[list[int], list[int], list[float]]:
    return pairs.rows.tolist(), pairs.before.tolist(), pairs.similarities.tolist()


def test_vectors_of_length_0_are_near_nothing_and_the_first_row_has_none_before_it() -> None:
    vectors = np.zeros((3, 2), np.float32)
    assert not len(neighbours_before(np.arange(3), np.arange(3), vectors.__getitem__, 5, 0.1).rows)
    assert not len(neighbours_before(np.arange(1), np.arange(3), vectors.__getitem__, 5, -1.0).rows)
