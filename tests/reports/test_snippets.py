"""A snippet is the part of a passage that holds most of a query's words; what both share is found, and no more."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.reports.snippets import common_words, pieces, shared_spans, snippet

TEXT = st.text("abc éß漢字 .,", max_size=120)


def marked(passage: str, query: str, common: tuple[str, ...] = ()) -> list[str]:
    return [passage[begin:end] for begin, end in shared_spans(passage, query, common)]


@pytest.mark.parametrize(
    ("passage", "query", "shared"),
    [
        ("Kubrick filmed it; films by others.", "Which film did Kubrick make?", ["Kubrick", "filmed", "films"]),
        ("The castle of a castor", "castles cas", ["castle"]),
        ("A castle, casts", "casts", ["casts"]),
        ("C4 and B12", "b12 C", ["B12"]),
        ("東京都の城は大きい", "東京の城", ["東京", "の城"]),
        ("", "anything", []),
        ("anything", "", []),
    ],
)
def test_shared_words_are_found(passage: str, query: str, shared: list[str]) -> None:
    assert marked(passage, query) == shared


def test_common_words_are_not_shared() -> None:
    passages = [f"the river and number {n}" for n in range(40)] + ["a castle"] * 3
    common = common_words(passages, ["the castle and the river", "number 7"])
    assert common == {"the", "river", "and", "number"}
    assert marked("the castle and the river", "the castle and the river", tuple(common)) == ["castle"]
    assert common_words(["few passages"], ["the few passages"]) == {"the", "few"}


@given(passage=TEXT, query=TEXT, length=st.integers(5, 60))
def test_pieces_are_the_part_and_the_part_fits(passage: str, query: str, length: int) -> None:
    spans = shared_spans(passage, query)
    assert all(begin < end for begin, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    begin, end = snippet(passage, spans, length)
    assert 0 <= begin <= end <= len(passage)
    assert end - begin <= length
    assert "".join(text for text, _ in pieces(passage, (begin, end), spans)) == passage[begin:end]
    assert [text for text, shared in pieces(passage, (0, len(passage)), spans) if shared] == marked(passage, query)


def test_the_part_with_most_of_the_query_is_taken_and_begins_with_a_word() -> None:
    passage = "filler " * 60 + "the Zandor castle of Melkir " + "filler " * 60
    begin, end = snippet(passage, shared_spans(passage, "Zandor Melkir castle"), 100)
    assert all(word in passage[begin:end] for word in ("Zandor", "castle", "Melkir"))
    assert passage[begin - 1] == " "
    assert passage[end] == " "
    assert snippet(passage, [], 100)[0] == 0
