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
