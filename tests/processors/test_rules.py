"""Processors without a model: clauses, and keywords."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.processors.rules import ClauseSplit, KeywordExpansion
from nlp_retrieval.text.mentions import normalize

PIECES = st.sampled_from([*"Kubrick|the film|that|which|and|who wrote|,|;|. |(|)|in 1968|by the|Köln| ".split("|")])
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


@given(query=QUERIES, min_words=st.integers(1, 8), max_clauses=st.integers(1, 5))
def test_clauses_keep_every_word_in_order_and_are_long_and_few_enough(query: str, min_words: int, max_clauses: int) -> None:
    clauses = ClauseSplit(min_words, max_clauses, keep_query=False)._clauses(query)
    assert [word for clause in clauses for word in words(clause)] == words(query)
    assert len(clauses) <= max_clauses
    if len(clauses) > 1:
        assert all(len(words(clause)) >= min_words for clause in clauses)


TRIGGERED = {"film": ["movie", "cinema"], "New York": ["Manhattan"], "Köln": ["Cologne", "Rhein"]}


def test_keywords_of_a_trigger_are_added_where_the_query_holds_it_as_a_whole_word_or_phrase() -> None:
    expansion = KeywordExpansion(TRIGGERED, keep_query=False)
    assert expansion.process(["the film of 1968", "filmed in new york", "a new film, York", "koln", "nothing"]) == [
        ["the film of 1968 movie cinema"],
        ["filmed in new york Manhattan"],
        ["a new film, York movie cinema"],
        ["koln Cologne Rhein"],
        ["nothing"],
    ]


@given(queries=st.lists(st.text(max_size=30), max_size=5), include=st.booleans())
def test_any_queries_get_what_each_gets_alone_and_keep_their_own_words(queries: list[str], include: bool) -> None:
    expansion = KeywordExpansion(TRIGGERED, include)
    found = expansion.process(queries)
    assert found == [expansion.process([query])[0] for query in queries]
    for query, subs in zip(queries, found, strict=True):
        assert subs
        assert len(set(subs)) == len(subs)
        assert all(normalize(sub).startswith(normalize(query)) for sub in subs)


def test_keywords_that_are_none_are_refused(subtests: pytest.Subtests) -> None:
    for keywords, said in [
        ([], "keywords="),
        ({}, "keywords="),
        ("film", "keywords="),
        (None, "keywords="),
        ([3], "keywords"),
        ({"film": "movie"}, "keywords=.*: Input should be a list"),
        ([""], "'' has no word in it"),
        ({"film": ["movie", " !"]}, "' !' has no word in it"),
        ({"film": []}, "the trigger 'film' has no keywords"),
        ({" ": ["movie"]}, "' ' has no word in it"),
    ]:
        with subtests.test(keywords=keywords, said=said), pytest.raises(ConfigurationError, match=f"KeywordExpansion: {said}"):
            KeywordExpansion(keywords)  # type: ignore[arg-type]
