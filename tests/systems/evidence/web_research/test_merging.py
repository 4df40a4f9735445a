"""Lists are merged by reciprocal rank, as the package's own fusion does it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.systems.evidence.web_research.searching import merged_by_rank

LISTS = st.lists(st.lists(st.integers(0, 12), unique=True, max_size=8), max_size=4)


@given(LISTS)
def test_the_order_is_that_of_sums_of_reciprocal_ranks(lists: list[list[int]]) -> None:
    merged = merged_by_rank(lists, lambda one: one)
    scores = {one: sum(1 / (60 + ranked.index(one) + 1) for ranked in lists if one in ranked) for one in merged}
    assert sorted(merged) == sorted(set().union(*lists))
    assert all(scores[one] >= scores[other] - 1e-12 for one, other in pairwise(merged))


def test_lists_that_share_nothing_are_read_in_turn() -> None:
    assert merged_by_rank(["abc", "xyz"], str) == list("axbycz")
    assert merged_by_rank(["abc", ""], str) == list("abc")


def test_what_both_found_comes_first_in_the_form_of_the_first() -> None:
    assert merged_by_rank([["a", "B"], ["b", "c"]], str.lower) == ["B", "a", "c"]


def test_a_repeat_inside_of_a_list_counts_once() -> None:
    assert merged_by_rank([["a", "b", "b", "b"], ["a"]], str) == ["a", "b"]
