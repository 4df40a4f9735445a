"""A chain gives what one would get by hand: each processor on every sub-query of the one before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlp_retrieval import ClauseSplit
from nlp_retrieval.core import BaseUserQueryProcessor
from nlp_retrieval.core.components.registry import build
from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.processors.entity_phrases import EntityPhrases
from nlp_retrieval.processors.rules import Chain, KeywordExpansion

CLAIM = "Stanley Kubrick directed the film Barry Lyndon, which was shot in Ireland by candle light"


class Words(BaseUserQueryProcessor):
    """The words of a query; none for none. Counts its calls."""

    name = "words"
    calls = 0

    def process(self, nlqs: list[str]) -> list[list[str]]:
        self.calls += 1
        return [nlq.split() for nlq in nlqs]


class Doubled(BaseUserQueryProcessor):
    """The query, and the query twice."""

    name = "doubled"

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [[nlq, nlq * 2] for nlq in nlqs]


class Broken(BaseUserQueryProcessor):
    """Forgets a query."""

    name = "broken"

    def process(self, nlqs: list[str]) -> list[list[str]]:
        return [[nlq] for nlq in nlqs[1:]]


def by_hand(processors: list[BaseUserQueryProcessor], query: str) -> list[str]:
    found = [query]
    for processor in processors:
        made: list[str] = []
        for sub in found:
            made += [new for new in processor.process([sub])[0] if new not in made]
        found = made
    return found


def test_each_processor_works_on_every_sub_query_of_the_one_before() -> None:
    assert Chain([Words(), Doubled()]).process(["red fox"]) == [["red", "redred", "fox", "foxfox"]]
    assert Chain([Doubled(), Words()]).process(["red fox"]) == [["red", "fox", "foxred"]]


def test_clauses_are_expanded_one_by_one() -> None:
    chain = Chain([ClauseSplit(keep_query=False), KeywordExpansion({"film": ["cinema"], "Ireland": ["Dublin"]}, False)])
    assert chain.process([CLAIM]) == [
        [
            "Stanley Kubrick directed the film Barry Lyndon cinema",
            "which was shot in Ireland by candle light Dublin",
        ]
    ]


def test_repeats_are_dropped_and_the_first_keeps_its_place() -> None:
    assert Chain([Words()]).process(["b a b c a"]) == [["b", "a", "c"]]


def test_a_query_that_an_earlier_processor_drops_stays_dropped() -> None:
    assert Chain([Words(), Doubled()]).process(["", "red"]) == [[], ["red", "redred"]]
    assert Chain([Words(), Words()]).process([]) == []


def test_every_processor_is_called_once_for_the_whole_batch() -> None:
    first, second = Words(), Words()
    Chain([first, second]).process(["red fox", "blue whale", "red fox"])
    assert (first.calls, second.calls) == (1, 1)


@given(queries=st.lists(st.sampled_from([CLAIM, "red fox", "", "Köln 東京", "a"]) | st.text(max_size=20), max_size=5))
def test_a_batch_gives_what_each_query_gives_alone_by_hand(queries: list[str]) -> None:
    processors = [ClauseSplit(min_words=2), EntityPhrases(max_phrases=2), KeywordExpansion(["cinema"])]
    assert Chain(processors).process(queries) == [by_hand(list(processors), query) for query in queries]


def test_a_chain_of_chains_is_the_chain_of_their_parts() -> None:
    parts: list[BaseUserQueryProcessor] = [ClauseSplit(), EntityPhrases(), KeywordExpansion(["cinema"])]
    nested = Chain([Chain(parts[:2]), Chain(parts[2:])])
    assert nested.process([CLAIM]) == Chain(parts).process([CLAIM])


def test_its_configuration_holds_those_of_its_parts_and_builds_an_equal_one() -> None:
    made = Chain([ClauseSplit(max_clauses=2), Chain([KeywordExpansion({"film": ["movie"]})])])
    assert made.config["processors"][1]["processors"][0]["keywords"] == {"film": ["movie"]}
    assert build("processors", made.config) == made
    short = build("processors", {"name": "chain", "processors": ["clauses", {"name": "entity_phrases", "max_phrases": 2}]})
    assert short == Chain([ClauseSplit(), EntityPhrases(max_phrases=2)])
    assert repr(short) == "Chain(processors=[ClauseSplit(), EntityPhrases(max_phrases=2)])"


@pytest.mark.parametrize("processors", [[], None, "clauses", ClauseSplit(), ["clause"], [ClauseSplit(), 3]])
def test_what_is_no_list_of_processors_is_refused(processors: object) -> None:
    with pytest.raises(ConfigurationError, match="Chain: processors"):
        Chain(processors)  # type: ignore[arg-type]


def test_a_mistake_in_a_part_names_its_place() -> None:
    with pytest.raises(ConfigurationError, match=r"processors\[1\]: there is no processor called 'clause'; did you mean"):
        build("processors", {"name": "chain", "processors": ["clauses", "clause"]})


def test_a_processor_that_does_not_line_up_is_an_error() -> None:
    with pytest.raises(QueryError, match="1 lists of sub-queries were given for 2 queries"):
        Chain([Broken()]).process(["red", "fox"])
