"""The texts in the page are those of what is shown: all where they fit, else the beginnings of those that matter most."""

from __future__ import annotations

from dataclasses import replace

from evaluation.test_rankings import Hit, lists_of

from nlp_retrieval.evaluation.ranking_difference import measured
from nlp_retrieval.evaluation.rankings import LONGEST_TEXT, RunLists
from nlp_retrieval.reports.page.explorer import explorer_block, passages_block

from .test_explorer import opened

ROOM = 10**6


def some_lists() -> tuple[RunLists, list[str]]:
    """Five items in two lists, in the order in which the page names them, and gold that is in neither."""
    one: list[Hit] = [(item, 5.0 - place, {}) for place, item in enumerate("abcde")]
    lists = lists_of({"one": [one], "other": [one[::-1][:2]]}, {"q0": {"gold alone": 1}}, 1)
    texts = {
        item: f"{item} " + " ".join(f"{item[0]}{n * 7919 % 9973}" for n in range(400)) for item in [*"abcde", "gold alone"]
    }
    lists = replace(lists, passages=texts)
    block = explorer_block(lists, measured(lists, lists.listings, [5]), [5], ROOM)
    assert block is not None
    return lists, list(block.items)


def test_all_texts_stand_in_the_order_of_the_items() -> None:
    lists, items = some_lists()
    block = passages_block(lists, items, ROOM)
    assert block is not None
    assert opened(block.text)["texts"] == [lists.passages[item] for item in items]
    assert (block.longest, block.kept, block.known) == (LONGEST_TEXT, 6, 6)


def test_texts_are_cut_and_then_left_to_gold_and_what_stands_highest() -> None:
    lists, items = some_lists()
    whole = passages_block(lists, items, ROOM)
    assert whole is not None
    cut = passages_block(lists, items, len(whole.text) - 1)
    assert cut is not None
    assert (cut.longest, cut.kept) == (1200, 6)
    for item, text in zip(items, opened(cut.text)["texts"], strict=True):
        assert text == lists.passages[item][:1198] + " …"
    shortest = passages_block(lists, items, len(whole.text) // 6)
    assert shortest is not None
    assert len(shortest.text) <= len(whole.text) // 6
    few = passages_block(lists, items, len(shortest.text) * 2 // 3)
    assert few is not None
    assert len(few.text) <= len(shortest.text) * 2 // 3
    kept = [item for item, text in zip(items, opened(few.text)["texts"], strict=True) if text]
    assert 0 < few.kept == len(kept) < few.known == 6
    assert set(kept) == set(["gold alone", "a", "e", "b", "d", "c"][: len(kept)])


def test_without_texts_or_room_there_is_no_block() -> None:
    lists, items = some_lists()
    assert passages_block(lists, items, 10) is None
    assert passages_block(replace(lists, passages={}), items, ROOM) is None
