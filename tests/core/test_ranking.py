"""The best k with the lowest rows at the cut, whatever rule the engine cuts by: compared with brute force."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.candidates import scaled, top_k, top_k_positions
from nlp_retrieval.retrievers.colbert.search import top_k_mask
from nlp_retrieval.retrievers.vectors import search_past_ties

from .ranked import in_order, lists_of


class Engine:
    """Scores everything, and among equals prefers the highest rows: the opposite of what is wanted."""

    def __init__(self, scores: np.ndarray, matches: np.ndarray) -> None:
        self.scores, self.matches, self.asked = scores, matches, []

    def __call__(self, numbers, depth):
        self.asked.append((list(numbers), depth))
        rows = np.full((len(numbers), depth), -1, np.int64)
        values = np.zeros((len(numbers), depth), np.float32)
        for place, number in enumerate(numbers):
            found = np.flatnonzero(self.matches[number])
            best = sorted(found, key=lambda row: (-self.scores[number, row], -row))[:depth]
            rows[place, : len(best)], values[place, : len(best)] = best, self.scores[number, best]
        return rows, values


@given(
    st.integers(0, 5),
    st.integers(1, 80),
    st.integers(1, 100),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 2**32 - 1),
)
def test_it_is_brute_force_with_ties_by_row(n_queries, n_items, k, n_values, share, seed):
    random = np.random.default_rng(seed)
    scores = random.integers(-1, n_values, (n_queries, n_items)).astype(np.float32)
    matches = random.random((n_queries, n_items)) < share
    hits = search_past_ties(Engine(scores, matches), n_queries, k, n_items)
    wanted = [
        in_order((int(row), float(scores[query, row])) for row in np.flatnonzero(matches[query]))[:k]
        for query in range(n_queries)
    ]
    assert lists_of(hits) == wanted


@given(st.integers(1, 5), st.integers(1, 80), st.integers(1, 40), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_scores_of_ones_own_decide_where_the_engine_rounds_them(n_queries, n_items, k, n_values, seed):
    random = np.random.default_rng(seed)
    own = random.integers(0, n_values, (n_queries, n_items)) / 8
    slack = np.full(n_queries, 0.25)
    rounded = Engine(own + random.uniform(-0.25, 0.25, own.shape), np.ones(own.shape, bool))
    hits = search_past_ties(rounded, n_queries, k, n_items, lambda owner, rows: own[owner, rows], slack, 2)
    assert lists_of(hits) == [
        in_order((row, float(own[query, row])) for row in range(n_items))[:k] for query in range(n_queries)
    ]


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), max_size=30), st.integers(1, 35))
def test_the_best_of_a_list_are_those_that_sorting_all_of_it_gives(values: list[float], k: int) -> None:
    scores, rows = np.array(values), np.arange(len(values)) * 3
    order = sorted(range(len(values)), key=lambda place: (-values[place], place))[:k]
    assert top_k_positions(scores, k).tolist() == order
    best, best_scores = top_k(rows, scores, k)
    assert best.tolist() == [3 * place for place in order]
    assert best_scores.tolist() == [values[place] for place in order]
    if k <= len(values):
        assert np.flatnonzero(top_k_mask(scores, k)).tolist() == sorted(order)


def test_scores_are_scaled_between_the_largest_numbers() -> None:
    assert scaled(np.array([1.7e308, 0.0, -1.7e308]), depth=3).tolist() == [1.0, 0.5, 0.0]
