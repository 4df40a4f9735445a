"""What models write becomes an answer that cites what was shown, or no answer."""

from __future__ import annotations

import pytest

from nlp_retrieval.core.models import Answer, SearchableItem
from nlp_retrieval.lm.answering import read_answer, shown_passage

PASSAGES = [
    shown_passage(SearchableItem(item_id=name, content="One is. Two is.", metadata={"title": name.upper()}), 100)
    for name in ("a", "b")
]


def read(answer, citations="", reasoning="So."):
    return read_answer({"answer": answer, "citations": citations, "reasoning": reasoning}, PASSAGES)


def test_citations_are_mapped_to_items_and_sentences(subtests: pytest.Subtests):
    for citations, passages, facts in [
        ("1.2", ["a"], [("A", 1)]),
        ("[2.1], [1.2]; 2.1", ["b", "a"], [("B", 0), ("A", 1)]),
        ("Passage 2, sentence 1", ["b"], [("B", 0)]),
        ("2", ["b"], []),
        (["1.1", "2"], ["a", "b"], [("A", 0)]),
        ([1.2], ["a"], [("A", 1)]),
        ("", [], []),
        ("none", [], []),
        (None, [], []),
        ({"1": 2}, [], []),
    ]:
        with subtests.test(citations=citations, passages=passages, facts=facts):
            assert read("Paris", citations) == Answer(text="Paris", reasoning="So.", passages=passages, facts=facts)


def test_citations_of_what_was_not_shown_are_dropped_and_counted(subtests: pytest.Subtests):
    for citations, dropped in [("3.1", 1), ("1.3", 1), ("0.1, 1.0", 2), ("9999", 1), ("1.1, 7, 8", 2), ("1999", 1)]:
        with subtests.test(citations=citations, dropped=dropped):
            found = read("Paris", citations)
            assert found.dropped == dropped
            assert set(found.passages) <= {"a"}
            assert set(found.facts) <= {("A", 0)}


def test_citations_behind_the_answer_are_taken_from_it():
    assert read("Paris [1.2][2.1]") == Answer(text="Paris", reasoning="So.", passages=["a", "b"], facts=[("A", 1), ("B", 0)])
    assert read("Paris in [brackets]").text == "Paris in [brackets]"
    assert read(1969).text == "1969"


def test_an_answer_without_end_is_cut_and_halves_of_pairs_go():
    assert len(read("word " * 100_000).text.split()) == 60
    assert read("\ud800Paris\udc00", reasoning="\ud800").text == "Paris"
    assert len(read("x", "1.1 " * 100_000).facts) == 1
    assert read("x", "9.9 " + "8.8" * 100_000).dropped < 1000
