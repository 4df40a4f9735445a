"""Search, then answer: a searcher and an answerer as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlp_retrieval.core.answer import Answer
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.lm.answering.answerer import BaseAnswerer

__all__ = ["AnsweredQuestion", "QuestionAnswering"]


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question with its answer.

    Args:
        question: what was asked.
        results: the passages that the answerer read, best first.
        answer: what it said.
    """

    question: str
    results: list[RetrievalResult]
    answer: Answer

    @property
    def cited(self) -> list[RetrievalResult]:
        """The passages that the answer cites, in the order in which it does."""
        by_id = {result.item.item_id: result for result in self.results}
        return [by_id[item_id] for item_id in self.answer.passages]


class QuestionAnswering:
    """Answers questions from what a searcher finds.

    Args:
        searcher: with an index opened.
        answerer: reads the first of what it finds.
    """

    def __init__(self, searcher: BaseSearcher, answerer: BaseAnswerer) -> None:
        self.searcher = searcher
        self.answerer = answerer

    def answer(self, questions: str | Sequence[str], where: Where | None = None) -> list[AnsweredQuestion]:
        """Search for each question, and answer it from the first passages.

        Args:
            questions: a list; a bare string counts as a list of one.
            where: only items whose metadata fulfil this are read; see :mod:`nlp_retrieval.core.filters`.

        Returns:
            One per question.

        Raises:
            QueryError: a question is not a string.
            IndexMissingError: no index was opened.
        """
        asked = check_queries(questions, "question", "questions")
        k = self.answerer.passages
        found = self.searcher.search(asked, k, where) if asked and k else [[] for _ in asked]
        answers = self.answerer.answer(asked, found)
        return [AnsweredQuestion(*one) for one in zip(asked, found, answers, strict=True)]
