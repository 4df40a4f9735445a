"""Merging the hits of sub-queries: compared with dicts and loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ranked import hits_of, in_order, lists_of, ranked_lists, signals_of
from nlp_retrieval.core.candidates import RRF_K, merge_subqueries


def plain_merge(lists, rule):
    """One query's sub-query lists become (row, score) best first."""
    merged: dict[int, float] = {}
    if rule == "max":
        for one in lists:
            for row, score in one:
                merged[row] = max(merged.get(row, -np.inf), score)
        return in_order(merged.items())
    if rule == "rrf":
        for one in lists:
            for rank, (row, _) in enumerate(one, 1):
                merged[row] = merged.get(row, 0.0) + 1 / (RRF_K + rank)
        return in_order(merged.items())
    taken = []
    for one, rank in turns(lists) if rule == "alternate" else in_turn(lists):
        if rank < len(one) and one[rank][0] not in taken:
            taken.append(one[rank][0])
    return taken


def in_turn(lists):
    return [(one, rank) for rank in range(max(map(len, lists), default=0)) for one in lists]


def turns(lists):
    """The first list and the others one after the other, the others in turn among themselves."""
    if len(lists) < 2:
        return in_turn(lists)
    first, others = in_turn(lists[:1]), in_turn(lists[1:])
    none = ([], 0)
    length = max(len(first), len(others))
    both = zip(first + [none] * (length - len(first)), others + [none] * (length - len(others)), strict=True)
    return [turn for pair in both for turn in pair]


cases = st.lists(ranked_lists(), min_size=1, max_size=4).flatmap(
    lambda lists: st.tuples(st.just(lists), st.lists(st.lists(st.integers(0, len(lists) - 1), max_size=3), max_size=4))
)


@pytest.mark.parametrize("rule", ["alternate", "max", "rrf", "round_robin"])
@given(case=cases, k=st.integers(1, 12))
def test_merging_is_what_loops_do(rule, case, k):
    lists, queries = case
    places = np.array([place for query in queries for place in query], np.int64)
    batch = merge_subqueries(hits_of(lists), places, np.array(list(map(len, queries)), np.int64), rule, "e", k)
    assert batch.n_lists == len(queries)
    found = lists_of(batch)
    for query, merged in zip(queries, found, strict=True):
        own = [lists[place] for place in query]
        rows = [row for row, _ in merged]
        assert len(rows) == len(set(rows)) <= k
        if len(query) < 2:  # nothing to merge: the engine's own scores
            assert merged == (own[0][:k] if own else [])
        elif rule in ("alternate", "round_robin"):
            assert rows == plain_merge(own, rule)[:k]
            assert [score for _, score in merged] == sorted((score for _, score in merged), reverse=True)
        else:
            wanted = plain_merge(own, rule)
            assert [score for _, score in merged] == pytest.approx([score for _, score in wanted[:k]])
            close = dict(wanted)
            assert all(close[row] == pytest.approx(score) for row, score in merged)
            if rule == "max":
                assert merged == wanted[:k]


@given(case=cases)
def test_signals_hold_score_rank_and_the_score_in_every_subquery_that_found_the_item(case):
    lists, queries = case
    places = np.array([place for query in queries for place in query], np.int64)
    counts = np.array(list(map(len, queries)), np.int64)
    batch = merge_subqueries(hits_of(lists), places, counts, "max", "e", 100)
    several = counts.max(initial=0) > 1
    for query, merged, signals in zip(queries, lists_of(batch), signals_of(batch), strict=True):
        for rank, (row, score) in enumerate(merged, 1):
            wanted = {"e.score": score, "e.rank": float(rank)}
            if several:
                wanted |= {
                    f"e[{n}].score": dict(lists[place])[row] for n, place in enumerate(query) if row in dict(lists[place])
                }
            assert signals[row] == wanted
