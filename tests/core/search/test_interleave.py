"""Interleaving: in turn, each document once, each list at most its quota; compared with a plain loop."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from core.ranked import batch_of, lists_of, ranked_lists, signals_of
from nlp_retrieval.core.search.joining import interleave


def plain_interleave(lists, k, quota):
    """Rows in order."""
    taken: list[int] = []
    left = [[row for row, _ in one] for one in lists]

    def turns(limits):
        given_ = [0] * len(lists)
        while True:
            before = len(taken)
            for number, rows in enumerate(left):
                fresh = [row for row in rows if row not in taken]
                if fresh and given_[number] < limits[number] and len(taken) < k:
                    taken.append(fresh[0])
                    given_[number] += 1
            if len(taken) == before:
                return

    if quota is not None:
        turns([quota] * len(lists))
    else:
        turns([math.ceil(k / max(len(lists), 1))] * len(lists))
        turns([math.inf] * len(lists))
    return taken


groups = st.lists(st.lists(ranked_lists(), max_size=4), max_size=3)


@given(groups, st.integers(1, 25), st.none() | st.integers(1, 6))
def test_interleaving_is_what_a_loop_does(queries, k, quota):
    batch = batch_of([one for lists in queries for one in lists], "e")
    result = interleave(batch, [len(lists) for lists in queries], k, quota)
    found = [[row for row, _ in one] for one in lists_of(result)]
    assert found == [plain_interleave(lists, k, quota) for lists in queries]


@given(groups)
def test_the_scores_that_led_there_are_signals(queries):
    batch = batch_of([one for lists in queries for one in lists], "e")
    result = interleave(batch, [len(lists) for lists in queries], 30, None)
    for owner, (lists, signals) in enumerate(zip(queries, signals_of(result), strict=True)):
        given_by = result.subquery[result.offsets[owner] :].tolist()
        for (row, kept), number in zip(signals.items(), given_by, strict=False):
            assert kept["e.score"] == dict(lists[number])[row]
