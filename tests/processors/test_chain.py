"""A chain gives what one would get by hand: each processor on every sub-query of the one before."""

from __future__ import annotations

import pytest

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


def test_a_processor_that_does_not_line_up_is_an_error() -> None:
    with pytest.raises(QueryError, match="1 lists of sub-queries were given for 2 queries"):
        Chain([Broken()]).process(["red", "fox"])
