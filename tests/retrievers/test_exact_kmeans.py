"""K-means in whole numbers is k-means: compared with Lloyd's algorithm in Python's own whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.exact_kmeans import (
    best_products,
    directions,
    kmeans_by_distance,
    kmeans_by_product,
    spherical_kmeans,
    units_of,
)

METHODS = [spherical_kmeans, kmeans_by_product, kmeans_by_distance]


def some(count: int, dimension: int, seed: int, most: float) -> Vectors:
    """Whole vectors of at most such a length around a few others."""
    draw = np.random.default_rng(seed)
    found = draw.standard_normal((6, dimension))[draw.integers(0, 6, count)] + 0.4 * draw.standard_normal((count, dimension))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return np.rint(found * most).astype(np.float32)


@pytest.mark.parametrize("dimension", [1, 2, 19, 128])
def test_directions_are_whole_and_never_too_long(dimension: int) -> None:
    vectors = np.concatenate([np.random.default_rng(0).standard_normal((300, dimension)), np.zeros((1, dimension))])
    found = directions(vectors)
    assert (found == np.rint(found)).all()
    assert (found[-1] == 0).all()
    lengths = np.linalg.norm(found[:-1].astype(np.float64), axis=1)
    assert lengths.max() <= 2**12
    np.testing.assert_allclose(lengths, units_of(dimension), rtol=0.01)


@settings(max_examples=20)
@given(st.integers(1, 200), st.integers(1, 40), st.integers(1, 30), st.integers(0, 1000))
def test_the_best_product_is_exact_and_of_the_lowest_number(count: int, others: int, dimension: int, seed: int) -> None:
    one, other = some(count, dimension, seed, 4000), some(others, dimension, seed + 1, 4000)
    exact = one.astype(np.int64) @ other.astype(np.int64).T
    found, products = best_products(one, other)
    assert found.tolist() == exact.argmax(axis=1).tolist()
    assert products.astype(np.int64).tolist() == exact.max(axis=1).tolist()


@pytest.mark.parametrize("method", METHODS)
def test_rounds_bring_members_closer_to_their_centroids(method) -> None:  # type: ignore[no-untyped-def]
    sample = some(800, 12, 3, 1000)
    errors = []
    for rounds in (0, 1, 8):
        centroids = method(sample, 6, 0, rounds).astype(np.float64)
        if method is kmeans_by_distance:
            errors.append(np.square(sample[:, None].astype(np.float64) - centroids).sum(axis=2).min(axis=1).sum())
        else:
            best = (sample @ (centroids / np.linalg.norm(centroids, axis=1, keepdims=True)).T).max(axis=1)
            errors.append(-best.sum())
    assert errors[2] <= errors[1] < errors[0]


def test_one_round_by_distance_moves_each_centroid_to_the_mean_of_its_members() -> None:
    sample = some(300, 5, 1, 1000)
    begin, after = kmeans_by_distance(sample, 4, 7, 0), kmeans_by_distance(sample, 4, 7, 1)
    member = np.square(sample[:, None].astype(np.int64) - begin.astype(np.int64)).sum(axis=2).argmin(axis=1)
    for number in range(4):
        np.testing.assert_array_equal(after[number], np.rint(sample[member == number].astype(np.float64).mean(axis=0)))


@pytest.mark.parametrize("method", METHODS)
def test_centroids_that_nobody_is_close_to_move_to_what_is_far_from_others(method) -> None:  # type: ignore[no-untyped-def]
    axes = np.eye(8, dtype=np.float32) * 1000
    sample = np.concatenate([np.repeat(axes[:1], 100, axis=0), axes])
    found = method(sample, 8, 0, 12)
    assert len({tuple(np.sign(row)) for row in found}) == 8


@pytest.mark.parametrize("method", METHODS)
def test_as_many_centroids_as_vectors_that_are_all_equal_are_these_vectors(method) -> None:  # type: ignore[no-untyped-def]
    sample = np.tile(np.array([[30.0, 40.0]], np.float32), (5, 1))
    found = method(sample, 5, 0, 3)
    assert found.shape == (5, 2)
    np.testing.assert_allclose(found[:, 1] / found[:, 0], 4 / 3, rtol=0.01)
