"""Evaluation of answers: exact match, F1, supporting facts, and files for other tools."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from nlp_retrieval.core.models import Answer, Fact, Query, RetrievalResult
from nlp_retrieval.core.queries import first_repeated
from nlp_retrieval.errors import GoldError, QueryError
from nlp_retrieval.evaluation.evaluator import Evaluation

ANSWER, FACTS = "answer", "supporting_facts"


class GoldAnswer(BaseModel):
    """The expected answers to one question.

    Args:
        query_id: the question.
        answers: texts, each of which is right; empty if the question cannot be answered, so that giving no answer is right.
        facts: the sentences that support it, by title and number from 0; None if unknown.

    Examples:
        >>> GoldAnswer(query_id="q1", answers=["krill", "Antarctic krill"]).answers
        ['krill', 'Antarctic krill']
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    query_id: str = Field(min_length=1)
    answers: list[str]
    facts: list[Fact] | None = None


def gold_answers(queries: Sequence[Query]) -> list[GoldAnswer]:
    """Return the expected answers in the metadata of queries.

    Args:
        queries: with ``answer``, a text or a list of texts, and optionally ``supporting_facts``, ``[title, sentence number]``.

    Returns:
        One per query; empty if no query has an answer.

    Raises:
        GoldError: some have an answer or facts and others have none, or one does not have this form.

    Examples:
        >>> asked = Query(query_id="q1", text="What do whales eat?", metadata={"answer": "krill"})
        >>> gold_answers([asked])[0].answers
        ['krill']
    """
    answered = [query for query in queries if ANSWER in query.metadata]
    if not answered:
        return []
    for key in (ANSWER, FACTS):
        with_it = sum(key in query.metadata for query in queries)
        if with_it not in (0, len(queries)):
            first = next(query.query_id for query in queries if key not in query.metadata)
            raise GoldError(
                f'{len(queries) - with_it} of {len(queries)} questions have no "{key}" in their metadata (first: {first!r}), '
                "so no mean can be taken; add it, or leave these questions out"
            )
    return [GoldAnswer(query_id=query.query_id, answers=_answers(query), facts=_facts(query)) for query in queries]


def _answers(query: Query) -> list[str]:
    answer = query.metadata[ANSWER]
    texts = answer if isinstance(answer, list) else [answer]
    if not all(isinstance(text, str) for text in texts):
        raise GoldError(f'question {query.query_id!r}: "{ANSWER}" is {answer!r:.80}; a text is wanted, or a list of texts')
    return [str(text) for text in texts]


def _facts(query: Query) -> list[Fact] | None:
    if FACTS not in query.metadata:
        return None
    recorded = query.metadata[FACTS]
    facts = [_fact(fact) for fact in recorded] if isinstance(recorded, list) else [None]
    read = [fact for fact in facts if fact is not None]
    if len(read) != len(facts):
        raise GoldError(
            f'question {query.query_id!r}: "{FACTS}" is {recorded!r:.120}; a list of [title, sentence number from 0] is wanted'
        )
    return read


def _fact(value: JsonValue) -> Fact | None:
    match value:
        case [str(title), int(number)] if not isinstance(number, bool) and number >= 0:
            return title, number
        case _:
            return None


# Answers are compared as SQuAD does (Rajpurkar et al., 2016): in lower case, without punctuation and articles. F1 is
# HotpotQA's (Yang et al., 2018): "yes", "no" and "noanswer" agree only with themselves.

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ALONE = frozenset({"yes", "no", "noanswer"})


class Agreement(NamedTuple):
    """Agreement of an answer, or its facts, with the gold; each from 0 to 1."""

    exact: float
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.precision * self.recall / (self.precision + self.recall) if self.precision + self.recall else 0.0

    def joint(self, other: Agreement) -> Agreement:
        """The agreement of both: exact if both are, precision and recall multiplied, as in HotpotQA."""
        return Agreement(self.exact * other.exact, self.precision * other.precision, self.recall * other.recall)


NONE, FULL = Agreement(0.0, 0.0, 0.0), Agreement(1.0, 1.0, 1.0)


def normalize_answer(text: str) -> str:
    """Return an answer in the form for comparison: lower case, no ASCII punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def answers_agree(text: str, answers: Sequence[str]) -> Agreement:
    """Return the agreement of an answer with the closest expected answer."""
    if not answers:
        return NONE if text else FULL
    agreed = [_agreement(text, answer) for answer in answers]
    best = max(agreed, key=lambda score: (score.f1, score.exact))
    return best._replace(exact=max(score.exact for score in agreed))


def facts_agree(cited: Collection[Fact], gold: Collection[Fact]) -> Agreement:
    """Return the agreement of the cited sentences with the supporting ones."""
    cited_facts, wanted = set(cited), set(gold)
    n_common = len(cited_facts & wanted)
    precision = n_common / len(cited_facts) if cited_facts else 0.0
    recall = n_common / len(wanted) if wanted else 0.0
    return Agreement(float(cited_facts == wanted), precision, recall)


def _agreement(text: str, answer: str) -> Agreement:
    normalized, other = normalize_answer(text), normalize_answer(answer)
    exact = float(normalized == other)
    if not exact and ({normalized, other} & _ALONE):
        return NONE
    words, wanted = normalized.split(), other.split()
    n_common = sum((Counter(words) & Counter(wanted)).values())
    return Agreement(exact, n_common / len(words), n_common / len(wanted)) if n_common else Agreement(exact, 0.0, 0.0)


ANSWER_MEASURES = ("answer_em", "answer_f1")
"""Exact match and F1 of the answer."""

FACT_MEASURES = ("sp_em", "sp_f1", "sp_cited", "joint_em", "joint_f1")
"""Measures of the supporting facts, and of answer and facts together; computed if the gold has facts."""


class AnswerEvaluator:
    """Scores answers against the expected ones.

    Exact match and F1 compare texts as SQuAD and HotpotQA do; of several expected answers, the closest counts.
    Supporting facts are compared as pairs of title and sentence number, and the joint measures multiply precision, recall
    and exact match of both (Yang et al., "HotpotQA", EMNLP 2018, and its ``hotpot_evaluate_v1.py``). If no answer is
    right, giving none scores 1. A question without an answer scores 0 and counts; so does one on which the answerer failed.

    Args:
        gold: one per question; :meth:`evaluate` takes answers in this order.

    Raises:
        GoldError: no gold, two for one question, or facts for some questions only.

    Examples:
        >>> evaluator = AnswerEvaluator([GoldAnswer(query_id="q1", answers=["krill"])])
        >>> evaluator.evaluate([Answer(text="The krill")]).means()
        {'answer_em': 1.0, 'answer_f1': 1.0}
    """

    def __init__(self, gold: Sequence[GoldAnswer]) -> None:
        if not gold:
            raise GoldError("there are no right answers, so nothing can be measured; give one GoldAnswer per question")
        if (repeated := first_repeated(question.query_id for question in gold)) is not None:
            raise GoldError(f"question {repeated!r} occurs more than once in the gold; give each once")
        without = [question.query_id for question in gold if question.facts is None]
        if 0 < len(without) < len(gold):
            raise GoldError(
                f"{len(without)} of {len(gold)} questions have no supporting facts (first: {without[0]!r}); give them for "
                "all questions or for none"
            )
        self.gold = list(gold)

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in order."""
        return [*ANSWER_MEASURES, *(() if self.gold[0].facts is None else FACT_MEASURES)]

    def evaluate(self, answers: Sequence[Answer]) -> Evaluation:
        """Score answers, given in the order of the gold.

        Returns:
            ``[questions]`` by measure, each from 0 to 1; :func:`~nlp_retrieval.evaluation.comparison.intervals_by_group` gives
            the intervals of their means. ``empty_queries`` counts the questions without an answer.

        Raises:
            QueryError: there is not one answer for each question.
        """
        if len(answers) != len(self.gold):
            raise QueryError(
                f"{len(answers)} answers for {len(self.gold)} questions; give one each, without text where there is none"
            )
        values = np.array([self._values(answer, gold) for answer, gold in zip(answers, self.gold, strict=True)], np.float64)
        per_query = {name: values[:, column].copy() for column, name in enumerate(self.measures)}
        return Evaluation([question.query_id for question in self.gold], per_query, sum(not answer.text for answer in answers))

    def _values(self, answer: Answer, gold: GoldAnswer) -> list[float]:
        answered: Agreement = NONE if answer.failed else answers_agree(answer.text, gold.answers)
        if gold.facts is None:
            return [answered.exact, answered.f1]
        cited = facts_agree(answer.facts, gold.facts)
        joint = answered.joint(cited)
        return [answered.exact, answered.f1, cited.exact, cited.f1, cited.recall, joint.exact, joint.f1]


def ragas_lines(
    questions: Sequence[str],
    passages: Sequence[Sequence[RetrievalResult]],
    answers: Sequence[Answer],
    gold: Sequence[GoldAnswer] = (),
) -> bytes:
    """Return the content of a JSONL file for RAGAS.

    Args:
        questions: the questions.
        passages: the passages that the answerer read for each, best first.
        answers: one per question; without text if there is none.
        gold: the expected answers, the first text of each as the reference; empty if unknown.

    Raises:
        QueryError: one of these does not have one element for each question.

    Examples:
        >>> results = [[RetrievalResult(item=items[0], score=1.0)]]
        >>> line = json.loads(ragas_lines(["What do whales eat?"], results, [Answer(text="krill", passages=["whale"])]))
        >>> line["user_input"], line["response"]
        ('What do whales eat?', 'krill')
    """
    counts = {len(questions), len(passages), len(answers), len(gold) if gold else len(questions)}
    if len(counts) != 1:
        raise QueryError(
            f"{len(questions)} questions, {len(passages)} lists of passages, {len(answers)} answers and {len(gold)} right "
            "answers; give one of each for every question"
        )
    rows: list[dict[str, JsonValue]] = [
        {"user_input": question, "retrieved_contexts": [result.item.text for result in read], "response": answer.text}
        for question, read, answer in zip(questions, passages, answers, strict=True)
    ]
    for row, right in zip(rows, gold, strict=False):
        row["reference"] = next(iter(right.answers), "")
    return "".join(json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n" for row in rows).encode()
