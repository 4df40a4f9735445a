"""The codec errs within its buckets, packs what it unpacks, and computes exactly; centroids are those that are nearest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import mostly_soaked

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert import codec as colbert_centroids
from nlp_retrieval.retrievers.colbert import kernel as colbert_kernel
from nlp_retrieval.retrievers.colbert import steps as colbert_steps
from nlp_retrieval.retrievers.colbert.codec import (
    Compressor,
    _buckets,
    _shares,
    in_token_units,
    in_units,
    train_centroids,
    train_compressor,
)
from nlp_retrieval.retrievers.exact_kmeans import units_of


def directions(count: int, dimension: int, seed: int = 0) -> Vectors:
    """Vectors of length 1 around forty directions, as tokens are."""
    draw = np.random.default_rng(seed)
    middles = draw.standard_normal((40, dimension))
    found = middles[draw.integers(0, 40, count)] + 0.5 * draw.standard_normal((count, dimension))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def decoded(compressor: Compressor, tokens: Vectors) -> Vectors:
    """Each token as a passage of its own, scored against the axes: that gives its components."""
    codes, residuals = compressor.compress(tokens)
    codec, dimension = compressor.codec, tokens.shape[1]
    offsets = np.arange(len(tokens) + 1)
    axes = np.eye(dimension, dtype=np.float32)
    found = np.zeros((len(tokens), dimension))
    for axis in range(dimension):
        colbert_steps.maxsim(
            axes[:, [axis]], codec.centroids.astype(np.float32), codec.table(), codes, residuals, offsets, offsets[:-1],
            found[:, axis],
        )  # fmt: skip
    return (found / units_of(dimension)).astype(np.float32)


@pytest.mark.parametrize("dimension", mostly_soaked([19, 128]))
@pytest.mark.parametrize(("bits", "least"), [(2, 0.9), (4, 0.98)])
def test_what_is_decoded_is_close_to_what_was_compressed(dimension: int, bits: int, least: float) -> None:
    tokens = directions(4000, dimension)
    compressor = train_compressor(tokens, 64, bits, 0)  # type: ignore[arg-type]
    found = decoded(compressor, tokens[:500])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=2e-3)
    cosines = (found * tokens[:500]).sum(axis=1)
    centroids = compressor.codec.centroids[compressor.compress(tokens[:500])[0]] / units_of(dimension)
    assert (cosines > (centroids * tokens[:500]).sum(axis=1)).mean() > 0.99
    assert cosines.mean() > least


@pytest.mark.parametrize("dimension", mostly_soaked([19, 128]))
@pytest.mark.parametrize("bits", [2, 4])
def test_every_residual_is_packed_as_its_bucket(dimension: int, bits: int) -> None:
    tokens = directions(3000, dimension)
    compressor = train_compressor(tokens, 32, bits, 0)  # type: ignore[arg-type]
    codes, packed = compressor.compress(tokens)
    assert packed.shape[1] == -(-dimension * bits // 8)
    residuals = tokens * np.float32(units_of(dimension)) - compressor.codec.centroids[codes]
    wanted = compressor.codec.weights[np.searchsorted(compressor.cutoffs, residuals)]
    found = compressor.codec.table()[packed].reshape(len(tokens), -1)[:, :dimension]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("count", [4, 16])
def test_buckets_meet_halfway_and_stand_for_their_means(count: int) -> None:
    residuals = np.sort(np.random.default_rng(3).standard_normal(200_000) * 100).astype(np.float32)
    weights, cutoffs = _buckets(residuals, count)
    np.testing.assert_allclose(cutoffs, (weights[1:] + weights[:-1]) / 2, atol=1.5)
    parts = np.split(residuals, np.searchsorted(residuals, cutoffs, side="right"))
    np.testing.assert_allclose(weights, [part.mean() for part in parts], atol=1.5)
    error = np.mean(np.square(residuals - weights[np.searchsorted(cutoffs, residuals)]))
    assert error / 1e4 == pytest.approx({4: 0.1175, 16: 0.0095}[count], rel=0.03)  # the least there is (Max, 1960, table I)


def test_buckets_of_residuals_that_are_all_equal_give_them_back() -> None:
    weights, cutoffs = _buckets(np.full(100, 7.5, np.float32), 4)
    assert weights[np.searchsorted(cutoffs, np.float32(7.5))] == 7.5


@pytest.mark.parametrize("dimension", [1, 2, 19, 128, 768])
def test_products_in_units_are_exact_in_float32(dimension: int) -> None:
    vectors = directions(200, dimension)
    aligned = np.concatenate([vectors, vectors, np.eye(dimension, dtype=np.float32)[:50]])
    units = in_units(aligned)
    products = units @ units.T
    exact = units.astype(np.int64) @ units.astype(np.int64).T
    np.testing.assert_array_equal(products.astype(np.int64), exact)
    assert np.abs(exact).max() <= 2**24
    np.testing.assert_allclose(products / units_of(dimension) ** 2, aligned @ aligned.T, atol=2e-3)


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("dimension", mostly_soaked([30, 128, 7]))
def test_compiled_scores_are_those_of_numpy_to_the_last_bit(dimension: int, bits: int) -> None:
    tokens = directions(3000, dimension)
    compressor = train_compressor(tokens, 64, bits, 0)  # type: ignore[arg-type]
    codes, residuals = compressor.compress(tokens)
    offsets = np.concatenate([[0], np.sort(np.random.default_rng(1).choice(3000, 80, replace=False)), [3000]])
    rows = np.flatnonzero(np.diff(offsets) > 0)[::2]
    query = np.ascontiguousarray(in_units(directions(9, dimension, seed=2)).T)
    centroids = compressor.codec.centroids.astype(np.float32)
    table = compressor.codec.table()
    found = [np.zeros(len(rows)), np.zeros(len(rows))]
    for sums, steps in zip(found, (colbert_steps, colbert_kernel), strict=True):
        steps.maxsim(query, centroids, table, codes, residuals, offsets, rows, sums)
    assert found[0].tolist() == found[1].tolist()
    scores = centroids @ query
    kept = scores.max(axis=1) > np.median(scores.max(axis=1))
    with_kept = np.array([row for row in rows if kept[codes[offsets[row] : offsets[row + 1]]].any()])
    sums = [np.zeros(len(with_kept)), np.zeros(len(with_kept))]
    colbert_steps.interaction(scores, kept, codes, offsets, with_kept, sums[0])
    colbert_kernel.interaction(scores, kept, codes, offsets, with_kept, sums[1])
    by_hand = [
        sum(max(float(scores[code, n]) for code in codes[offsets[row] : offsets[row + 1]] if kept[code]) for n in range(9))
        for row in with_kept
    ]
    assert sums[0].tolist() == sums[1].tolist() == by_hand


@pytest.mark.parametrize("nprobe", mostly_soaked([3, 1, 12]))
def test_the_closest_centroids_are_the_lowest_numbers_where_scores_tie(nprobe: int) -> None:
    scores = np.random.default_rng(0).integers(0, 4, (12, 5)).astype(np.float32)
    wanted = np.zeros(12, np.bool_)
    for token in range(5):
        wanted[np.lexsort((np.arange(12), -scores[:, token]))[:nprobe]] = True
    for steps in (colbert_steps, colbert_kernel):
        probed = np.zeros(12, np.bool_)
        steps.closest_centroids(scores, nprobe, probed)
        assert probed.tolist() == wanted.tolist()


@pytest.mark.parametrize("tokens", mostly_soaked([5, 1, 40]))
def test_close_centroids_have_a_token_with_at_least_that_score(tokens: int) -> None:
    scores = np.random.default_rng(0).integers(0, 50, (30, tokens)).astype(np.float32)
    least = np.float32(np.median(scores.max(axis=1)))
    wanted = [number == 0 or any(score >= least for score in row) for number, row in enumerate(scores.tolist())]
    for steps in (colbert_steps, colbert_kernel):
        close = np.arange(30) == 0
        steps.close_centroids(scores, least, close)
        assert close.tolist() == wanted


def test_the_nearest_centroid_is_found_exactly_in_one_level_and_nearly_always_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = in_token_units(directions(6000, 32))
    flat = train_centroids(tokens, 400, 0)
    assert (flat.nearest(tokens) == (tokens @ flat.vectors.T).argmax(axis=1)).all()
    monkeypatch.setattr(colbert_centroids, "FLAT_UP_TO", 100)
    levels = train_centroids(tokens, 400, 0)
    assert levels.vectors.shape == flat.vectors.shape
    np.testing.assert_allclose(np.linalg.norm(levels.vectors, axis=1), units_of(32), rtol=1e-3)
    best = (tokens @ levels.vectors.T).max(axis=1)
    found = (tokens * levels.vectors[levels.nearest(tokens)]).sum(axis=1)
    assert (found == best).mean() > 0.95
    assert found.mean() > 0.97 * (tokens @ flat.vectors.T).max(axis=1).mean()


def test_training_is_the_same_every_time_and_another_seed_is_another_training() -> None:
    tokens = directions(2000, 16)
    one, same, other = (train_compressor(tokens, 64, 2, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.codec.centroids, same.codec.centroids)
    np.testing.assert_array_equal(one.cutoffs, same.cutoffs)
    assert not np.array_equal(one.codec.centroids, other.codec.centroids)


@given(sizes=st.lists(st.integers(0, 50), min_size=1, max_size=30), share=st.floats(0, 1))
def test_shares_add_up_and_nobody_gets_more_than_there_is(sizes: list[int], share: float) -> None:
    there = np.array([*sizes, 1])
    count = max(1, int(share * there.sum()))
    found = _shares(there, count)
    assert found.sum() == count
    assert ((found >= 0) & (found <= there)).all()
