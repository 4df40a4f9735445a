"""Answers by a language model that reads the passages and cites their sentences by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval.core.answer import Answer
from nlp_retrieval.core.components.trust_rules import may_set
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.lm.answering.answerer import BaseAnswerer
from nlp_retrieval.lm.answering.prompt import ShownPassage, shown_passage, written
from nlp_retrieval.lm.answering.reading import ReadAnswer, as_answer, read_answer
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.text.fence import fenced

__all__ = ["LanguageModelAnswerer"]


class LanguageModelAnswerer(BaseAnswerer):
    """Has a language model answer each question in a few words from the first passages, with citations of sentences.

    Passages are shown as data: none can begin a line or hold a marker of DSPy or of a chat template. Citations of what was
    not shown are dropped and counted. A question without passages, or without a word, gets no answer and is not asked. A
    question that the model leaves without a usable answer gets none and is marked as failed; one warning per batch says how
    many there were, and why.

    Args:
        lm: the language model.
        passages: how many passages of a question it reads; 0: none, it answers from memory, for comparison.
        passage_characters: of each passage that it is shown.
    """

    name = "language_model"
    manifest_may_set = may_set("lm", "passages", "passage_characters")

    def __init__(
        self,
        lm: LanguageModel,
        passages: Annotated[int, Field(ge=0, le=1000)] = 5,
        passage_characters: Annotated[int, Field(ge=1)] = 2000,
    ) -> None:
        self.lm = lm
        self.passages = passages
        self.passage_characters = passage_characters
        self._program: Any = None

    def calls_per_query(self) -> int:
        return 1

    def answer_batch(self, questions: list[str], passages: list[list[SearchableItem]]) -> list[Answer]:
        """Ask about each question that says something and has passages.

        Raises:
            DependencyError: DSPy is not installed.
        """
        from nlp_retrieval.lm.asking import ask_all

        shown = [[shown_passage(item, self.passage_characters) for item in found] for found in passages]
        asked = [
            number for number, question in enumerate(questions) if not has_no_words(question) and self._readable(shown[number])
        ]
        answers = [Answer(text="")] * len(questions)
        if not asked:
            return answers
        if self._program is None:
            self._program = self._made()
        fields = ("reasoning", "citations", "answer") if self.passages else ("reasoning", "answer")
        inputs = [self._inputs(questions[number], shown[number]) for number in asked]
        found = ask_all(self.lm, self._program, inputs, fields, _read, self.name, "are left without an answer")
        for number, read in zip(asked, found, strict=True):
            answers[number] = Answer(text="", failed=True) if read is None else as_answer(read, shown[number])
        return answers

    def _readable(self, shown: list[ShownPassage]) -> bool:
        return not self.passages or any(any(passage.sentences) for passage in shown)

    def _inputs(self, question: str, shown: list[ShownPassage]) -> dict[str, str]:
        return {"question": fenced(question)} | ({"passages": written(shown)} if self.passages else {})

    def _made(self) -> Any:
        from nlp_retrieval.lm.answering.signatures import AnswerFromMemory, AnswerFromPassages
        from nlp_retrieval.lm.dspy_package import dspy

        return dspy.Predict(AnswerFromPassages if self.passages else AnswerFromMemory)


def _read(question: Mapping[str, Any], fields: object) -> ReadAnswer | None:
    del question
    return read_answer(fields)
