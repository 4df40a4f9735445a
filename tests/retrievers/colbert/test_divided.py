"""A query that is divided among threads gives what one thread gives."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from soaking import mostly_soaked

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.retrievers.colbert import files as divided
from nlp_retrieval.retrievers.colbert import kernel as colbert_kernel
from nlp_retrieval.retrievers.colbert.codec import in_units, parts_of, train_compressor
from nlp_retrieval.retrievers.colbert.files import Compressed, DividedSteps


def drawn(count: int) -> Vectors:
    """Vectors of length 1 and dimension 24."""
    found = np.random.default_rng(count).standard_normal((count, 24))
    scaled: Vectors = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return scaled


@pytest.mark.parametrize("count", mostly_soaked([3, 2, 7]))
def test_any_number_of_threads_gives_the_same_scores_to_the_last_bit(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(divided, "_WORTH_A_THREAD", 100)
    tokens = drawn(3000)
    compressor = train_compressor(tokens, 256, 4, 0)
    codes, residuals = compressor.compress(tokens)
    columns = Compressed(compressor.codec, codes, residuals, np.zeros(257, np.int64), np.zeros(0, np.int32))
    offsets = np.concatenate([[0], np.sort(np.random.default_rng(1).choice(3000, 80, replace=False)), [3000]])
    rows = np.flatnonzero(np.diff(offsets) > 0)[::2]
    query = np.ascontiguousarray(in_units(drawn(9)).T)
    centroids, table = compressor.codec.centroids.astype(np.float32), compressor.codec.table()

    def found(steps: DividedSteps) -> list[list[float]]:
        scores = steps.centroid_scores(query, centroids)
        by_centroids = steps.interaction(scores, np.ones(256, bool), columns, offsets, rows)
        by_tokens = steps.maxsim(query, centroids, table, columns, offsets, rows)
        return [scores.ravel().tolist(), by_centroids.tolist(), by_tokens.tolist()]

    with ThreadPoolExecutor(count) as threads:
        assert found(DividedSteps(colbert_kernel, threads, count)) == found(DividedSteps(colbert_kernel))


def test_what_fails_in_a_thread_fails_for_the_caller() -> None:
    def fails_at_the_end(query: np.ndarray, centroids: np.ndarray, scores: np.ndarray) -> None:
        del query
        if centroids[-1, 0] == 1:
            raise MemoryError("no room")
        scores[:] = 0

    class Failing:
        centroid_scores = staticmethod(fails_at_the_end)

    centroids = np.zeros((20_000, 3), np.float32)
    centroids[-1] = 1
    with ThreadPoolExecutor(2) as threads, pytest.raises(MemoryError, match="no room"):
        DividedSteps(Failing(), threads, 2).centroid_scores(np.zeros((3, 1), np.float32), centroids)  # type: ignore[arg-type]


def test_parts_have_about_as_many_tokens_and_hold_every_passage_once() -> None:
    lengths = np.random.default_rng(0).integers(0, 30, 500)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.flatnonzero(lengths > 4)
    for count in (1, 2, 5):
        parts = parts_of(rows, offsets, count)
        assert np.concatenate([rows[part] for part in parts]).tolist() == rows.tolist()
        tokens = [lengths[rows[part]].sum() for part in parts]
        assert max(tokens) - min(tokens) <= 2 * 30
    assert [part.stop - part.start for part in parts_of(rows[:1], offsets, 3)].count(1) == 1
