"""Phrases are cut out of the query, the most specific first; a query always searches for something."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.text.mentions import normalize

PIECES = st.sampled_from(
    [
        "Stanley Kubrick",
        "the director of",
        '"The Shining"',
        "who",
        "red fox",
        ",",
        "(film)",
        "in 1968",
        "Köln",
        "東京",
        "A.",
        '"',
        "2009/10",
        "O'Neill's",
        "“Lolita”",
    ]
)
QUERIES = st.lists(PIECES, max_size=14).map(" ".join) | st.text(max_size=60)


def phrases(query: str, **settings: object) -> list[str]:
    return EntityPhrases(keep_query=False, **settings).process([query])[0]  # type: ignore[arg-type]


def test_the_claim_comes_first_then_titles_names_descriptions_and_years() -> None:
    claim = 'The swimming pool designer who met Stanley Kubrick in 1968 loved "Barry Lyndon" and London'
    assert EntityPhrases(max_phrases=9, context=0).process([claim]) == [
        [claim, "Barry Lyndon", "Stanley Kubrick", "London", "swimming pool designer", "1968"]
    ]


def test_a_name_takes_along_the_nearest_words_that_say_how_it_is_related() -> None:
    claim = "the famous American director of the film Barry Lyndon that was shot by candle light"
    for context, wanted in ((0, "Barry Lyndon"), (1, "film Barry Lyndon shot"), (2, "director film Barry Lyndon shot candle")):
        assert phrases(claim, context=context)[0] == wanted


def test_a_query_without_phrases_is_searched_as_it_is(subtests: pytest.Subtests) -> None:
    for query in ["", "  ", "?!", "who is it", "🦊", '""', "M*A*S*H", "a", "run", "word" * 30_000]:
        with subtests.test(query=query):
            for include in (True, False):
                assert EntityPhrases(keep_query=include).process([query]) == [[query]]


@given(queries=st.lists(QUERIES, max_size=4), most=st.integers(1, 4), context=st.integers(0, 3), include=st.booleans())
def test_sub_queries_of_any_query_are_distinct_few_and_made_of_its_words(
    queries: list[str], most: int, context: int, include: bool
) -> None:
    processor = EntityPhrases(max_phrases=most, context=context, keep_query=include)
    found = processor.process(queries)
    assert found == [processor.process([query])[0] for query in queries]
    for query, subs in zip(queries, found, strict=True):
        assert 1 <= len(subs) <= most + include
        assert len({normalize(sub) for sub in subs}) == len(subs)
        if include:
            assert subs[0] == query
        for sub in subs:
            assert set(normalize(sub).split()) <= set(normalize(query).split())
