"""Maximal marginal relevance chooses as the formula by hand does, one candidate after another."""

from __future__ import annotations

import numpy as np
import pytest
from hashed_words import HashedWords, items_of, rows_of
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import RetrievalResult
from nlp_retrieval.rerankers.mmr import MmrReranker, chosen_by_mmr

TEXTS = [
    "red fox in the snow",
    "red fox in the snow",
    "red fox in snow",
    "blue whale in the sea",
    "the fox and the whale",
    "green tree",
    "",
]


def by_hand(relevance: list[float], vectors: np.ndarray, weight: float) -> list[tuple[int, float]]:
    """The places in the order of choice, each with its value, as the paper has it."""
    left, chosen = list(range(len(relevance))), []
    while left:
        values = {
            place: weight * relevance[place]
            - (1 - weight) * max((float(vectors[place] @ vectors[one]) for one, _ in chosen), default=0.0)
            for place in left
        }
        best = max(left, key=lambda place: (round(values[place], 6), -place))
        chosen.append((best, values[best]))
        left.remove(best)
    return chosen


def reranked(reranker: MmrReranker, query: str, texts: list[str], k: int = 100) -> list[RetrievalResult]:
    given = [RetrievalResult(item=item, score=10.0 - row, signals={}) for row, item in enumerate(items_of(texts))]
    (found,) = reranker.rerank([query], [given], k)
    return found


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_the_order_is_that_of_the_formula_by_hand(weight):
    query = "whale tree"
    encoder = HashedWords(32)
    vectors = encoder.encode_passages(TEXTS).astype(np.float64)
    relevance = (vectors @ encoder.encode_queries([query])[0].astype(np.float64)).tolist()
    wanted = by_hand(relevance, vectors, weight)
    found = reranked(MmrReranker(encoder, weight), query, TEXTS)
    assert rows_of(found) == [place for place, _ in wanted]
    values = np.minimum.accumulate([value for _, value in wanted])
    np.testing.assert_allclose([hit.score for hit in found], values, atol=1e-6)
    np.testing.assert_allclose([hit.signals["mmr.relevance"] for hit in found], np.array(relevance)[rows_of(found)], atol=1e-6)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-3, 3)), min_size=1, max_size=12), st.floats(0, 1))
def test_scores_fall_in_the_order_of_choice_also_where_vectors_point_apart(candidates, weight):
    relevance = np.array([value for value, _ in candidates])
    vectors = np.array([(np.cos(angle), np.sin(angle)) for _, angle in candidates], np.float32)
    scores, _ = chosen_by_mmr(relevance, vectors, weight)
    assert len(set(scores.tolist())) == len(scores)
    order = np.argsort(-scores).tolist()
    nearest = np.full(len(scores), -np.inf)
    left = list(range(len(scores)))
    for turn, place in enumerate(order):
        values = weight * relevance[left] - (1 - weight) * (nearest[left] if turn else 0.0)
        assert weight * relevance[place] - (1 - weight) * (nearest[place] if turn else 0.0) >= values.max() - 1e-6
        nearest = np.maximum(nearest, vectors @ vectors[place])
        left.remove(place)
