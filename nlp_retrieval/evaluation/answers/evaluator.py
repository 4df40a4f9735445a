"""What answers are worth, question by question: the measures of SQuAD and HotpotQA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nlp_retrieval.core.answer import Answer
from nlp_retrieval.errors import GoldError, QueryError
from nlp_retrieval.evaluation.answers.gold import GoldAnswer
from nlp_retrieval.evaluation.answers.matching import NONE, Agreement, answers_agree, facts_agree
from nlp_retrieval.evaluation.evaluator import Evaluation

__all__ = ["ANSWER_MEASURES", "FACT_MEASURES", "AnswerEvaluator"]

ANSWER_MEASURES = ("answer_em", "answer_f1")
"""Exact match and F1 of the answer."""

FACT_MEASURES = ("sp_em", "sp_f1", "sp_recall", "joint_em", "joint_f1")
"""Those of the supporting facts, and of answer and facts together; measured where the gold has facts."""


class AnswerEvaluator:
    """Judges answers by the right ones.

    Exact match and F1 compare texts as SQuAD and HotpotQA do; of several right answers the one that agrees most counts.
    Supporting facts are compared as pairs of title and sentence number, and the joint measures multiply precision, recall
    and exact match of both (Yang et al., "HotpotQA", EMNLP 2018, and its ``hotpot_evaluate_v1.py``). Where no answer is
    right, giving none scores 1. A question without an answer scores 0 and counts; so does one that the answerer failed at.

    Args:
        gold: one per question; :meth:`evaluate` takes answers in this order.

    Raises:
        GoldError: no gold, two of one question, or facts for some questions only.
    """

    def __init__(self, gold: Sequence[GoldAnswer]) -> None:
        if not gold:
            raise GoldError("there are no right answers, so nothing can be measured; give one GoldAnswer per question")
        repeated = [query_id for query_id, count in Counter(one.query_id for one in gold).items() if count > 1]
        if repeated:
            raise GoldError(
                f"{len(repeated)} question ids stand more than once in the gold (first: {repeated[0]!r}); give one each"
            )
        without = [one.query_id for one in gold if one.facts is None]
        if 0 < len(without) < len(gold):
            raise GoldError(
                f"{len(without)} of {len(gold)} questions have no supporting facts (first: {without[0]!r}); give them for "
                "all questions or for none"
            )
        self.gold = list(gold)

    @property
    def measures(self) -> list[str]:
        """The names of what is measured, in order."""
        return [*ANSWER_MEASURES, *(() if self.gold[0].facts is None else FACT_MEASURES)]

    def evaluate(self, answers: Sequence[Answer]) -> Evaluation:
        """Judge answers, given in the order of the gold.

        Returns:
            ``[questions]`` by measure, each from 0 to 1; :func:`~nlp_retrieval.evaluation.by_group.intervals_by_group` gives
            the intervals of their means. ``empty_queries`` counts the questions without an answer.

        Raises:
            QueryError: there is not one answer for each question.
        """
        if len(answers) != len(self.gold):
            raise QueryError(
                f"{len(answers)} answers for {len(self.gold)} questions; give one each, without text where there is none"
            )
        values = np.array([self._values(answer, gold) for answer, gold in zip(answers, self.gold, strict=True)], np.float64)
        per_query = {name: values[:, place].copy() for place, name in enumerate(self.measures)}
        return Evaluation([one.query_id for one in self.gold], per_query, sum(not answer.text for answer in answers))

    def _values(self, answer: Answer, gold: GoldAnswer) -> list[float]:
        answered: Agreement = NONE if answer.failed else answers_agree(answer.text, gold.answers)
        if gold.facts is None:
            return [answered.exact, answered.f1]
        cited = facts_agree(answer.facts, gold.facts)
        joint = answered.joint(cited)
        return [answered.exact, answered.f1, cited.exact, cited.f1, cited.recall, joint.exact, joint.f1]
