"""What an answerer is: questions and the passages found for them in, answers that cite these passages out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from nlp_retrieval.core.answer import Answer
from nlp_retrieval.core.components.component import Component
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.errors import EngineError, QueryError

__all__ = ["BaseAnswerer", "title_of"]


def title_of(item: SearchableItem) -> str:
    """The title by which facts name an item: its own, or its id where it has none."""
    return item.title or item.item_id


class BaseAnswerer(Component, ABC):
    """Answers questions from passages."""

    kind: ClassVar[str] = "answerers"

    passages: int
    """How many of the passages found for a question it reads at most; set by the subclass."""

    def answer(self, questions: Sequence[str], results: Sequence[Sequence[RetrievalResult]]) -> list[Answer]:
        """Answer each question from the first passages of the list beside it.

        Args:
            questions: what is asked.
            results: what was found for each, best first; an empty list where nothing was.

        Returns:
            One per question.

        Raises:
            QueryError: a question is not a string, or there are not as many lists as questions.
            EngineError: the answerer returned what is not an answer, or one that cites what it was not given.
        """
        asked = check_queries(questions, "question", "questions")
        if len(results) != len(asked):
            raise QueryError(f"{len(asked)} questions and {len(results)} lists of results; give one list for each question")
        read = [[result.item for result in found[: self.passages]] for found in results]
        answers = self.answer_batch(asked, read) if asked else []
        if len(answers) != len(asked):
            raise EngineError(
                f"{type(self).__name__} gave {len(answers)} answers to {len(asked)} questions; it must answer each"
            )
        for answer, passages in zip(answers, read, strict=True):
            _check(answer, passages, type(self).__name__)
        return answers

    @abstractmethod
    def answer_batch(self, questions: list[str], passages: list[list[SearchableItem]]) -> list[Answer]:
        """Return an answer to each question from the passages beside it; both lists are as long and not empty."""


def _check(answer: object, passages: list[SearchableItem], answerer: str) -> None:
    if not isinstance(answer, Answer):
        raise EngineError(f"{answerer} returned {answer!r:.80}, which is no Answer; an abstention is Answer(text='')")
    ids, titles = {item.item_id for item in passages}, {title_of(item) for item in passages}
    if foreign := [cited for cited in answer.passages if cited not in ids]:
        raise EngineError(f"{answerer} cites the passage {foreign[0]!r}, which it was not given; drop and count such citations")
    if strange := [fact for fact in answer.facts if fact[0] not in titles]:
        raise EngineError(f"{answerer} cites a sentence of {strange[0][0]!r}, which it was not given; drop and count it")
