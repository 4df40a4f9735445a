"""Keywords are added once, where they belong, and never to a query that asks nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.processors.rules import KeywordExpansion
from nlp_retrieval.text.mentions import normalize

TRIGGERED = {"film": ["movie", "cinema"], "New York": ["Manhattan"], "Köln": ["Cologne", "Rhein"]}


def test_a_list_is_added_to_every_query_and_the_query_comes_first() -> None:
    found = KeywordExpansion(["Wikipedia", "encyclopedia"]).process(["who wrote Lolita", "red fox"])
    assert found == [
        ["who wrote Lolita", "who wrote Lolita Wikipedia encyclopedia"],
        ["red fox", "red fox Wikipedia encyclopedia"],
    ]


def test_keywords_of_a_trigger_are_added_where_the_query_holds_it_as_a_whole_word_or_phrase() -> None:
    expansion = KeywordExpansion(TRIGGERED, keep_query=False)
    assert expansion.process(["the film of 1968", "filmed in new york", "a new film, York", "koln", "nothing"]) == [
        ["the film of 1968 movie cinema"],
        ["filmed in new york Manhattan"],
        ["a new film, York movie cinema"],
        ["koln Cologne Rhein"],
        ["nothing"],
    ]


def test_what_the_query_has_already_is_not_added() -> None:
    assert KeywordExpansion(TRIGGERED).process(["the film, a Movie"]) == [["the film, a Movie", "the film, a Movie cinema"]]
    assert KeywordExpansion(["movie"]).process(["Movies' movie's end"]) == [["Movies' movie's end"]]


def test_a_query_that_asks_nothing_stays_as_it_is(subtests: pytest.Subtests) -> None:
    for query in ["", "   ", "?!"]:
        with subtests.test(query=query):
            assert KeywordExpansion(["movie"], keep_query=False).process([query]) == [[query]]


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
        ({"film": "movie"}, r"keywords\['film'\]='movie': Input should be a list"),
        ([""], "the keyword '' has no word in it"),
        ({"film": ["movie", " !"]}, "the keyword ' !' has no word in it"),
        ({"film": []}, "the trigger 'film' has no keywords"),
        ({" ": ["movie"]}, "the trigger ' ' has no word in it; name a word or a phrase"),
    ]:
        with subtests.test(keywords=keywords, said=said), pytest.raises(ConfigurationError, match=f"KeywordExpansion: {said}"):
            KeywordExpansion(keywords)  # type: ignore[arg-type]
