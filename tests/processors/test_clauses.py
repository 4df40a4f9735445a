"""Clauses are pieces of the query, in order, with every word in its place, and none too short."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.processors.rules import ClauseSplit

PIECES = st.sampled_from(
    [
        "Kubrick",
        "the film",
        "that",
        "which",
        "and",
        "who wrote the novel",
        ",",
        ";",
        ". ",
        "(",
        ")",
        "in 1968",
        "by the",
        "Köln",
        " ",
    ]
)
QUERIES = st.lists(PIECES, max_size=30).map(" ".join) | st.text(max_size=60)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def test_a_claim_is_cut_at_its_relative_clauses_and_comes_first_itself() -> None:
    claim = "The director of the film Barry Lyndon, which was shot in Ireland by candle light, was born in New York"
    assert ClauseSplit().process([claim]) == [
        [
            claim,
            "The director of the film Barry Lyndon",
            "which was shot in Ireland by candle light",
            "was born in New York",
        ]
    ]


def test_the_query_can_be_left_out_and_a_query_without_clauses_is_not_repeated() -> None:
    simple = "who wrote Lolita"
    assert ClauseSplit().process([simple]) == [[simple]]
    assert ClauseSplit(keep_query=False).process([simple]) == [[simple]]


@given(query=QUERIES, min_words=st.integers(1, 8), max_clauses=st.integers(1, 5))
def test_clauses_keep_every_word_in_order_and_are_long_and_few_enough(query: str, min_words: int, max_clauses: int) -> None:
    clauses = ClauseSplit(min_words, max_clauses, keep_query=False)._clauses(query)
    assert [word for clause in clauses for word in words(clause)] == words(query)
    assert len(clauses) <= max_clauses
    if len(clauses) > 1:
        assert all(len(words(clause)) >= min_words for clause in clauses)
