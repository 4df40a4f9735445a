"""Cells of entities: which are compared, held against all pairs, and how much work that saves."""

from __future__ import annotations

import numpy as np
import pytest

from nlp_retrieval.retrievers.faiss.exact import Stack
from nlp_retrieval.systems.hipporag import synonyms
from nlp_retrieval.systems.hipporag.synonyms import Cells


def entities(count: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Groups of five that are similar, in a space where others are not; with rising hashes."""
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((count // 5, 64))
    vectors = centres[np.arange(count) % len(centres)] + 0.3 * draw.standard_normal((count, 64))
    return vectors.astype(np.float32), np.sort(draw.choice(10**9, count, replace=False)).astype(np.uint64)


def pairs(found: synonyms.Synonyms) -> dict[tuple[int, int], float]:
    ends = zip(found.sources.tolist(), found.targets.tolist(), found.similarities.tolist(), strict=True)
    told = {(min(one, other), max(one, other)): cosine for one, other, cosine in ends}
    assert len(told) == len(found.sources), "a pair stands there twice"
    return told


def test_an_entity_is_in_the_cells_of_the_pivots_that_it_is_most_similar_to() -> None:
    vectors, hashes = entities(200)
    order = np.random.default_rng(0).permutation(200)
    vectors, hashes = vectors[order], hashes[order]
    cells = Cells.of(Stack(vectors[:70], vectors[70:]), hashes, per_entity=3, pivots=2.0)
    pivots = np.sort(np.argsort(hashes)[: cells.count])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = np.sort(np.argsort(-(unit @ unit[pivots].T), axis=1)[:, :3], axis=1)
    assert (cells.of_entity == nearest).mean() > 0.99  # whole numbers may order two that are nearly the same otherwise
    for cell in range(cells.count):
        assert cells.members(cell).tolist() == np.flatnonzero((cells.of_entity == cell).any(axis=1)).tolist()


def test_the_first_cell_that_two_share_is_the_lowest() -> None:
    vectors, hashes = entities(120)
    cells = Cells.of(Stack(vectors), hashes)
    ones, others = np.divmod(np.arange(120 * 120), 120)
    shared = [
        min(set(cells.of_entity[one]) & set(cells.of_entity[other]), default=cells.count)
        for one, other in zip(ones, others, strict=True)
    ]
    assert cells.first_shared(ones, others).tolist() == shared


@pytest.mark.parametrize("first_new", [0, 400])
def test_synonyms_by_cells_are_nearly_those_of_all_pairs_with_the_same_cosines(
    first_new: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors, hashes = entities(1000)
    old = [(vectors[:first_new], hashes[:first_new])] if first_new else []
    exact = pairs(synonyms.synonyms_of(vectors[first_new:], hashes[first_new:], old, 0.8))
    monkeypatch.setattr(synonyms, "EXACT_PAIRS", 0)
    monkeypatch.setattr(synonyms, "_PAIRS_AT_ONCE", 50)
    by_cells = pairs(synonyms.synonyms_of(vectors[first_new:], hashes[first_new:], old, 0.8))
    assert len(exact) > 500
    assert by_cells.items() <= exact.items()
    assert len(by_cells) > 0.9 * len(exact)


def test_entities_that_are_all_alike_and_entities_without_a_direction_are_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synonyms, "EXACT_PAIRS", 0)
    vectors, hashes = np.ones((40, 8), np.float32), np.arange(40, dtype=np.uint64)
    assert len(pairs(synonyms.synonyms_of(vectors, hashes, [], 0.8))) == 40 * 39 / 2
    assert len(pairs(synonyms.synonyms_of(0 * vectors, hashes, [], 0.8))) == 0
    assert len(pairs(synonyms.synonyms_of(vectors[:1], hashes[:1], [], 0.8))) == 0
    assert len(pairs(synonyms.synonyms_of(vectors[:0], hashes[:0], [(vectors, hashes)], 0.8))) == 0


def test_the_comparisons_of_four_times_the_entities_are_some_eight_times_as_many() -> None:
    counts = []
    for count in (4000, 16_000):
        vectors, hashes = entities(count)
        cells = Cells.of(Stack(vectors), hashes)
        counts.append(int((np.diff(cells.offsets) ** 2).sum()))
    assert counts[1] < 12 * counts[0]
    assert counts[1] < 16_000**2 / 8
