"""Processors that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import time

from nlp_retrieval.core import BaseUserQueryProcessor
from nlp_retrieval.testing import ProcessorRules

from .breaking import breaks


class Quiet(BaseUserQueryProcessor):
    """Searches for the query as it is; keeps every rule.

    Args:
        lower: whether in lower case.
    """

    def __init__(self, lower: bool = False) -> None:
        self.lower = lower

    def process(self, nlqs):
        return [[nlq.lower() if self.lower else nlq] for nlq in nlqs]


@breaks(ProcessorRules, "test_there_is_one_answer_each_in_their_order", "5 for")
class AnswersFive(Quiet):
    def process(self, nlqs):
        return [[nlq] for nlq in nlqs[:5]]


@breaks(ProcessorRules, "test_sub_queries_are_texts_that_ask_something", "Łódź")
class KeepsAscii(Quiet):
    def process(self, nlqs):
        return [[" ".join(word for word in nlq.split() if word.isascii() and "weav" not in word)] for nlq in nlqs]


@breaks(ProcessorRules, "test_an_answer_does_not_depend_on_the_rest_of_the_batch")
class NumbersItsQueries(Quiet):
    def process(self, nlqs):
        return [[nlq, f"{nlq} {number}"] if number else [nlq] for number, nlq in enumerate(nlqs)]


@breaks(ProcessorRules, "test_threads_get_the_answers_of_one")
class SharesItsList(Quiet):
    def process(self, nlqs):
        self.nlqs = nlqs
        time.sleep(0.001)
        return [[nlq] for nlq in self.nlqs]
