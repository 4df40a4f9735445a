"""Two lists of a query: what entered, left and moved is what a reader with both lists in hand would say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import BenchmarkRun, Gold
from nlp_retrieval.evaluation.ranking_difference import HitDifference, SignalMove, changed_queries, difference

from .test_rankings import Hit, lists_of

IDS = ["a", "b", "c", "d", "e", "f"]
LIST = st.lists(st.sampled_from(IDS), unique=True)


def plain(items: list[str]) -> list[Hit]:
    return [(item, 10.0 - place, {}) for place, item in enumerate(items)]


def hit(hits: list[HitDifference], item: str) -> HitDifference:
    (found,) = [one for one in hits if one.item_id == item]
    return found


def moves(one: HitDifference) -> dict[str, SignalMove]:
    return {signal.name: signal for signal in one.signals}


@given(one=LIST, other=LIST, gold=st.dictionaries(st.sampled_from(IDS), st.integers(1, 3)), k=st.integers(1, 7))
def test_what_entered_left_and_moved_is_told_as_by_hand(one: list[str], other: list[str], gold: dict[str, int], k: int) -> None:
    lists = lists_of({"one": [[], plain(one)], "other": [[], plain(other)]}, {"q0": {"a": 1}, "q1": gold}, 2)
    found = difference(lists, "one", "other", "q1", k)
    assert [hit.item_id for hit in found.one_list] == one[:k]
    assert [hit.item_id for hit in found.other_list] == other[:k]
    assert {hit.item_id for hit in found.hits} == {*one[:k], *other[:k]}
    assert len(found.hits) == len({*one[:k], *other[:k]})
    for told in found.hits:
        before, after = (list_.index(told.item_id) + 1 if told.item_id in list_ else None for list_ in (one, other))
        assert (told.one_rank, told.other_rank) == (before, after)
        assert told.grade == gold.get(told.item_id, 0)
        assert told.title == ("" if told.item_id in {"a", *gold} else told.item_id * 2), "gold has no titles there"
        if told.item_id not in one[:k]:
            assert told.movement == "entered"
        elif told.item_id not in other[:k]:
            assert told.movement == "left"
        else:
            assert before is not None
            assert after is not None
            assert told.movement == ("same" if before == after else "up" if after < before else "down")
        assert told.up == (None if before is None or after is None else before - after)
    assert {missed.item_id: missed.grade for missed in found.missed} == {
        item: grade for item, grade in gold.items() if item not in one[:k] and item not in other[:k]
    }
    for missed in found.missed:
        assert missed.one_rank == (one.index(missed.item_id) + 1 if missed.item_id in one else None)
        assert missed.other_rank == (other.index(missed.item_id) + 1 if missed.item_id in other else None)
    recalls = [len(gold.keys() & set(list_[:k])) / len(gold) if gold else None for list_ in (one, other)]
    assert [found.one_recall, found.other_recall] == recalls
    best = [min(rank for rank in (told.one_rank, told.other_rank) if rank is not None) for told in found.hits]
    assert best == sorted(best)


def test_the_rank_by_a_signal_is_the_retrievers_own_or_that_among_the_hits_of_the_list() -> None:
    one: list[Hit] = [
        ("a", 3.0, {"bm25.score": 9.0, "bm25.rank": 40.0, "overlap.score": 0.1}),
        ("b", 2.0, {"bm25.score": 11.0, "bm25.rank": 2.0, "overlap.score": 0.7}),
        ("c", 1.0, {"overlap.score": 0.7}),
    ]
    other: list[Hit] = [
        ("b", 3.0, {"bm25.score": 11.0, "bm25.rank": 2.0}),
        ("a", 2.0, {"bm25.score": 9.0, "bm25.rank": 30.0}),
    ]
    found = difference(lists_of({"one": [one], "other": [other]}, {}, 1), "one", "other", "q0", 2)
    told = moves(hit(found.hits, "a"))
    assert list(told) == ["bm25.score", "overlap.score"], "a rank beside its score is one signal"
    assert told["bm25.score"] == SignalMove("bm25.score", 9.0, 9.0, 40, 30, "seen", "seen")
    assert told["bm25.score"].up == 10
    assert told["overlap.score"] == SignalMove("overlap.score", 0.1, None, 3, None, "seen", "absent")
    assert told["overlap.score"].up is None
    assert moves(hit(found.hits, "b"))["overlap.score"].one_rank == 1, "of equal values none is higher"


def test_signals_move_with_hits_that_moved_and_no_others() -> None:
    one: list[Hit] = [("a", 2.0, {"x": 1.0, "y": 2.0}), ("b", 1.0, {"x": 2.0, "y": 1.0}), ("c", 0.5, {"x": 0.5, "y": 0.5})]
    other: list[Hit] = [("b", 2.0, {"x": 4.0, "y": 1.0}), ("a", 1.0, {"x": 9.0, "y": 2.0}), ("c", 0.5, {"x": 9.5, "y": 0.5})]
    found = difference(lists_of({"one": [one], "other": [other]}, {}, 1), "one", "other", "q0", 5)
    assert [signal.name for signal in hit(found.hits, "b").moved_by] == ["x"], "y ranks it second in both"
    assert hit(found.hits, "a").moved_by == [], "both signals rank it as before"
    assert hit(found.hits, "c").movement == "same"
    assert hit(found.hits, "c").moved_by == [], "its rank by x changed, but it did not move"


def test_items_of_a_title_that_gold_names_are_one_document() -> None:
    lists = lists_of({"one": [plain(["a", "b"])], "other": [plain(["c"])]}, {"q0": {"a": 1, "b": 1, "d": 1}}, 1)
    titles = [{"a": "Whale", "b": "Whale", "c": "Fox", "d": "Whale"}[item_id] for item_id in lists.item_ids]
    named = replace(lists, titles=titles, gold=[Gold(query_id="q0", relevance={"Whale": 1}, by="title")])
    found, (row,) = difference(named, "one", "other", "q0", 3), changed_queries(named, "one", "other", 3)
    assert (found.one_recall, found.other_recall) == (row.one, row.other) == (1.0, 0.0)
    assert found.missed == []


def test_queries_that_change_most_come_first(finished: tuple[BenchmarkRun, Path]) -> None:
    ran = finished[0].lists
    changed = changed_queries(ran, "bm25", "hybrid + overlap", 3)
    assert sorted(row.query_id for row in changed) == sorted(ran.query_ids)
    for row in changed:
        told = difference(ran, "bm25", "hybrid + overlap", row.query_id, 3)
        assert (row.one, row.other) == pytest.approx((told.one_recall, told.other_recall))
        assert row.entered == sum(one.movement == "entered" for one in told.hits)
    keys = [(-round(abs(row.gain), 9), -row.entered, ran.query_ids.index(row.query_id)) for row in changed]
    assert keys == sorted(keys)
    assert {row.gain > 0 for row in changed if row.gain} == {True, False}
    lists = [plain(["a"])] * 2, [plain(["b"])] * 2
    judged = lists_of(dict(zip(["one", "other"], lists, strict=True)), {"q0": {"a": 1}, "q1": {"a": 0}}, 2)
    assert [row.query_id for row in changed_queries(judged, "one", "other", 3)] == ["q0"]
