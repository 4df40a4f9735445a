"""The codec errs within its buckets and packs what it unpacks; compiled loops compute what numpy computes by hand."""

from __future__ import annotations

import numpy as np
import pytest
from soaking import mostly_soaked

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert import codec as colbert_centroids
from nlp_retrieval.retrievers.colbert import kernel
from nlp_retrieval.retrievers.colbert.codec import UNIT, Bits, Nearest, in_units, kmeans, train_codec


def directions(count: int, dimension: int, seed: int = 0) -> Vectors:
    """Vectors of length 1 around forty directions, as tokens are."""
    draw = np.random.default_rng(seed)
    middles = draw.standard_normal((40, dimension))
    found = middles[draw.integers(0, 40, count)] + 0.5 * draw.standard_normal((count, dimension))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("dimension", mostly_soaked([19, 128]))
@pytest.mark.parametrize(("bits", "least"), [(2, 0.9), (4, 0.98)])
def test_what_is_decoded_is_close_to_what_was_encoded(dimension: int, bits: Bits, least: float) -> None:
    tokens = directions(4000, dimension)
    codec = train_codec(tokens, 64, bits, 0)
    codes, residuals = codec.encode(tokens[:500])
    found = codec.decode(codes, residuals)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
    cosines = (found * tokens[:500]).sum(axis=1)
    assert (cosines > (codec.centroids[codes] / UNIT * tokens[:500]).sum(axis=1)).mean() > 0.99
    assert cosines.mean() > least


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("dimension", mostly_soaked([30, 128, 7]))
def test_compiled_scores_are_those_by_hand(dimension: int, bits: Bits) -> None:
    tokens = directions(3000, dimension)
    codec = train_codec(tokens, 64, bits, 0)
    codes, residuals = codec.encode(tokens)
    offsets = np.concatenate([[0], np.sort(np.random.default_rng(1).choice(3000, 80, replace=False)), [3000]])
    rows = np.flatnonzero(np.diff(offsets) > 0)[::2]
    query, centroids = directions(9, dimension, seed=2), codec.centroids.astype(np.float32)
    sums = np.zeros(len(rows))
    kernel.maxsim(query, centroids, codec.table, codes, residuals, offsets, rows, sums)
    products = query @ codec.decode(codes, residuals).T
    by_hand = [products[:, offsets[row] : offsets[row + 1]].max(axis=1).sum() for row in rows]
    np.testing.assert_allclose(sums, by_hand, rtol=1e-5)

    scores = np.zeros((64, 9), np.float32)
    kernel.multiply(centroids, query, scores)
    np.testing.assert_allclose(scores, centroids @ query.T, rtol=1e-3, atol=1)
    kept = scores.max(axis=1) > np.median(scores.max(axis=1))
    with_kept = np.array([row for row in rows if kept[codes[offsets[row] : offsets[row + 1]]].any()])
    sums = np.zeros(len(with_kept))
    kernel.interaction(scores, kept, codes, offsets, with_kept, sums)
    of_passages = [codes[offsets[row] : offsets[row + 1]] for row in with_kept]
    np.testing.assert_allclose(sums, [scores[found[kept[found]]].max(axis=0).sum() for found in of_passages], rtol=1e-6)


def test_the_nearest_centroid_is_found_exactly_in_one_level_and_nearly_always_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(4).standard_normal((6000, 12)).astype(np.float32)
    tokens = in_units(draw / np.linalg.norm(draw, axis=1, keepdims=True))
    flat = kmeans(tokens, 400, 0)
    assert (Nearest(flat)(tokens) == (tokens @ flat.T).argmax(axis=1)).all()
    monkeypatch.setattr(colbert_centroids, "_FLAT_UP_TO", 100)
    grouped = kmeans(tokens, 400, 0)
    np.testing.assert_allclose(np.linalg.norm(grouped, axis=1), UNIT, rtol=1e-3)
    best = (tokens @ grouped.T).max(axis=1)
    found = (tokens * grouped[Nearest(grouped)(tokens)]).sum(axis=1)
    assert 0.8 < (found == best).mean() < 1.0  # groups are looked into, not all
    assert best.mean() > 0.97 * (tokens @ flat.T).max(axis=1).mean()
    assert Nearest(grouped)(tokens[:0]).tolist() == []
