"""Answerers that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools

from nlp_retrieval.core.models import Answer
from nlp_retrieval.lm.answering import BaseAnswerer, title_of
from nlp_retrieval.testing import AnswererRules

from .breaking import breaks

_counter = itertools.count()


class FirstSentence(BaseAnswerer):
    """Answers with the first word of the first passage that has one; keeps every rule.

    Args:
        passages: how many it reads.
    """

    def __init__(self, passages: int = 3) -> None:
        self.passages = passages

    def answer_batch(self, questions, passages):
        return [self.of(question, found) for question, found in zip(questions, passages, strict=True)]

    def of(self, question, found):
        item = next((item for item in found if item.content.split()), None)
        if item is None:
            return Answer(text="")
        return Answer(text=item.content.split()[0], passages=[item.item_id], facts=[(title_of(item), 0)])


@breaks(AnswererRules, "test_citations_are_of_passages_that_were_given", "(7)")
class CitesBeyondTheEnd(FirstSentence):
    def of(self, question, found):
        return super().of(question, found).model_copy(update={"facts": [("(7)", 7)]})


@breaks(AnswererRules, "test_citations_are_of_passages_that_were_given", "empty text")
class CitesForNothing(FirstSentence):
    def of(self, question, found):
        return super().of(question, found).model_copy(update={"text": ""})
