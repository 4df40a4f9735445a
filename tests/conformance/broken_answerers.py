"""Answerers that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools
import threading
import time

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


@breaks(AnswererRules, "test_there_is_an_answer_for_each_question", "questions")
class SkipsWithoutPassages(FirstSentence):
    def answer_batch(self, questions, passages):
        return super().answer_batch(questions, [found for found in passages if found] + [[]])[: sum(map(bool, passages))]


@breaks(AnswererRules, "test_citations_are_of_passages_that_were_given", "(7)")
class CitesBeyondTheEnd(FirstSentence):
    def of(self, question, found):
        return super().of(question, found).model_copy(update={"facts": [("(7)", 7)]})


@breaks(AnswererRules, "test_no_answer_cites_nothing", "empty text")
class CitesForNothing(FirstSentence):
    def of(self, question, found):
        return super().of(question, found).model_copy(update={"text": ""})


@breaks(AnswererRules, "test_an_answer_does_not_depend_on_the_rest_of_the_batch")
class AnswersTheFirst(FirstSentence):
    def answer_batch(self, questions, passages):
        return [one.model_copy(update={"reasoning": questions[0]}) for one in super().answer_batch(questions, passages)]


@breaks(AnswererRules, "test_the_same_call_twice_gives_the_same_answer")
class ChangesItsReasons(FirstSentence):
    def of(self, question, found):
        return super().of(question, found).model_copy(update={"reasoning": str(next(_counter))})


@breaks(AnswererRules, "test_threads_get_the_answers_of_one")
class KeepsItsQuestionsInItself(FirstSentence):
    def answer_batch(self, questions, passages):
        self.questions = questions
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)
        answers = super().answer_batch(questions, passages)
        return [one.model_copy(update={"reasoning": self.questions[-1]}) for one in answers]
