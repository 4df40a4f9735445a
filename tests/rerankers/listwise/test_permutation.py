"""Whatever a model answers, an order holds each passage once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.rerankers.listwise import read_permutation


@pytest.mark.parametrize(
    ("answer", "order", "repaired"),
    [
        ([2, 3, 1], [1, 2, 0], False),
        ("[2] > [3] > [1]", [1, 2, 0], False),
        ("```json\n[2, 3, 1]\n```", [1, 2, 0], False),
        ("[2]", [1, 0, 2], True),
        ([2, 2, 3, 1], [1, 2, 0], True),
        ([2, 3, 1, 4], [1, 2, 0], True),
        ([True, 2, "1", None, 2.0], [1, 0, 2], True),
    ],
)
def test_an_order_is_read_and_repaired(answer, order, repaired):
    assert read_permutation(answer, 3) == (order, repaired)


@pytest.mark.parametrize("answer", [None, "the first is best", "9" * 30_000, 1])
def test_what_names_no_passage_is_no_order(answer):
    assert read_permutation(answer, 3) is None


@given(
    st.text("[]>, 0123456789x\n", max_size=60) | st.lists(st.integers(-5, 30) | st.none() | st.text(max_size=3)),
    st.integers(1, 20),
)
def test_whatever_is_answered_each_passage_stands_once(answer, n):
    found = read_permutation(answer, n)
    if found is not None:
        assert sorted(found.order) == list(range(n))
        assert found.repaired or not isinstance(answer, list) or answer == [place + 1 for place in found.order]
