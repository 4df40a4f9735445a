"""Candidates as columns: joining, checking, sorting and cutting lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.core.candidates import CandidateBatch, Hits, offsets_of, sort_lists
from nlp_retrieval.errors import EngineError

from .ranked import batch_of, hits_of, in_order, lists_of, ranked_lists

many = st.lists(ranked_lists(), max_size=5)


@given(many)
def test_lists_come_back_from_columns(lists):
    assert lists_of(hits_of(lists)) == lists


@given(many, st.randoms())
def test_checking_puts_every_list_best_first_with_ties_by_row(lists, random):
    shuffled = [random.sample(one, len(one)) for one in lists]
    assert lists_of(hits_of(shuffled).checked(len(lists), 10, 10, "engine")) == lists


@given(many)
def test_lists_in_order_are_left_as_they_are(lists):
    hits = hits_of(lists)
    assert hits.checked(len(lists), 10, 10, "engine") is hits
    assert sort_lists(batch_of(lists).owner, hits.scores, hits.rows) is None


def test_empty_places_of_a_matrix_are_left_out():
    hits = Hits.from_matrix(np.array([[3, -1], [-1, -1], [0, 2]]), np.array([[1.0, -9.0], [0.0, 0.0], [2.0, 1.0]], np.float32))
    assert lists_of(hits) == [[(3, 1.0)], [], [(0, 2.0), (2, 1.0)]]
    assert (hits.rows.dtype, hits.scores.dtype) == (np.int64, np.float64)


def test_a_score_that_is_not_finite_is_an_error_that_names_engine_row_and_score():
    score = np.nan
    with pytest.raises(EngineError, match=rf"engine gave the score {score} to the item in row 7"):
        hits_of([[(3, 1.0)], [(7, score)]]).checked(2, 10, 5, "engine")


def test_a_row_out_of_range_is_an_error():
    row = -1
    with pytest.raises(EngineError, match=r"engine returned a row outside 0\.\.9"):
        hits_of([[(row, 1.0)]]).checked(1, 10, 5, "engine")


def test_more_hits_than_were_asked_for_are_an_error():
    with pytest.raises(EngineError, match="3 hits for one query; at most 2"):
        hits_of([[(0, 3.0), (1, 2.0), (2, 1.0)]]).checked(1, 10, 2, "engine")


def test_a_list_too_few_or_too_many_is_an_error():
    for n_queries in (0, 1, 3):
        with pytest.raises(EngineError, match=f"2 lists for {n_queries} queries"):
            hits_of([[(0, 1.0)], []]).checked(n_queries, 10, 5, "engine")


def test_columns_of_unequal_length_are_an_error():
    for hits in (
        Hits(np.array([0, 2]), np.array([1, 2]), np.array([1.0])),
        Hits(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0])),
    ):
        with pytest.raises(EngineError):
            hits.checked(1, 10, 5, "engine")


def test_an_engine_that_returns_an_item_twice_for_one_query_is_an_error():
    """Inside a list no row stands twice: everything behind the engine relies on it."""
    with pytest.raises(EngineError):
        hits_of([[(1, 2.0), (1, 1.0)]]).checked(1, 10, 5, "engine")
    hits_of([[(1, 2.0)], [(1, 1.0)]]).checked(2, 10, 5, "engine")


@given(many, st.integers(1, 10))
def test_the_head_of_every_list_is_its_best_k(lists, k):
    assert lists_of(batch_of(lists, "x").head(k)) == [one[:k] for one in lists]


@given(many)
def test_ranks_begin_at_one_in_every_list(lists):
    assert batch_of(lists).ranks.tolist() == [rank for one in lists for rank in range(1, len(one) + 1)]
    assert batch_of(lists).owner.tolist() == [owner for owner, one in enumerate(lists) for _ in one]


@given(many, st.integers(0, 2**32 - 1))
def test_new_scores_sort_every_list_and_keep_what_belongs_to_each_candidate(lists, seed):
    batch = batch_of(lists, "x")
    scores = np.random.default_rng(seed).integers(0, 3, len(batch.rows)).astype(np.float64)
    ranked = batch.with_scores(scores, {"new": scores})
    wanted, at = [], 0
    for one in lists:
        wanted.append(in_order((row, scores[at + place]) for place, (row, _) in enumerate(one)))
        at += len(one)
    assert lists_of(ranked) == wanted
    assert ranked.signals["new"].tolist() == ranked.scores.tolist()
    old = [dict(one) for one in lists]
    assert ranked.signals["x.score"].tolist() == [old[owner][row] for owner, row in zip(ranked.owner, ranked.rows, strict=True)]


def test_no_lists_and_empty_lists():
    assert lists_of(CandidateBatch.empty(3)) == [[], [], []]
    assert CandidateBatch.empty(0).n_lists == 0
    assert CandidateBatch.empty(0).head(3).n_lists == 0
    assert lists_of(Hits.from_lists([]).checked(0, 5, 5, "engine")) == []
    assert offsets_of([]).tolist() == [0]
