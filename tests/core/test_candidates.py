"""Candidates as columns: joining, checking, sorting and cutting lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import EngineError

from .ranked import batch_of, hits_of, in_order, lists_of, ranked_lists

many = st.lists(ranked_lists(), max_size=5)


@given(many, st.randoms())
def test_checking_puts_every_list_best_first_with_ties_by_row(lists, random):
    shuffled = [random.sample(one, len(one)) for one in lists]
    assert lists_of(hits_of(shuffled).checked(len(lists), 10, 10, "engine")) == lists


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        (hits_of([[(3, 1.0)], [(7, np.nan)]]), "engine gave the score nan to the item in row 7"),
        (hits_of([[(3, 1.0)], [(10, 1.0)]]), r"a row outside 0\.\.9"),
        (hits_of([[(3, 1.0)], [(3, 1.0), (4, 0.5), (5, 0.1)]]), "3 hits for one query; at most 2"),
        (hits_of([[(3, 1.0)]]), "1 lists for 2 queries"),
        (hits_of([[(3, 1.0)], [(3, 1.0), (3, 0.5)]]), "an item twice for one query"),
    ],
)
def test_hits_that_no_engine_may_return_are_told(hits, message):
    with pytest.raises(EngineError, match=message):
        hits.checked(2, 10, 2, "engine")


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
