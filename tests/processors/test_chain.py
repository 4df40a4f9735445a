"""A chain gives what one would get by hand: each processor on every sub-query of the one before."""

from __future__ import annotations

import pytest

from nlp_retrieval import ClauseSplit
from nlp_retrieval.core import BaseUserQueryProcessor
from nlp_retrieval.errors import ConfigurationError
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


def test_what_is_no_list_of_processors_is_refused(subtests: pytest.Subtests) -> None:
    for processors in [[], None, "clauses", ClauseSplit(), ["clause"], [ClauseSplit(), 3]]:
        with subtests.test(processors=processors), pytest.raises(ConfigurationError, match="Chain: processors"):
            Chain(processors)  # type: ignore[arg-type]
