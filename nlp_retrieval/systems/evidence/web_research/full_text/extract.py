"""Passages of a whole text about a question, chosen by a language model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import check_k
from nlp_retrieval.systems.evidence.web_research.full_text.answers import read_numbers
from nlp_retrieval.systems.evidence.web_research.full_text.asking import FullTextModule, checked_pairs
from nlp_retrieval.systems.evidence.web_research.full_text.passages import NumberedText, TextPart, TextPassage
from nlp_retrieval.systems.evidence.web_research.merging import merged_by_rank

__all__ = ["Extract"]


class Extract(FullTextModule[list[int]]):
    """Chooses the passages of a text that help most to answer a question, without an index.

    The model names passages by their numbers, so that results are always in the text. For a text in several parts, it chooses
    once more among the passages chosen from each.

    Args:
        lm: the language model.
        most: the most passages of a text.
        characters: the most characters of a text that are shown at once, 1,000 or more.
        most_parts: the most such parts of a longer text that are read: those that share most words with the question.
        program: the JSON file of a compiled program; by default the plain signature.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of such a program, or a number is out of range.
    """

    what = "extract"
    fields: ClassVar = {"select": ("question", "passages", "numbers")}

    def __init__(
        self,
        lm: LanguageModel,
        most: int = 5,
        characters: int = 20_000,
        most_parts: int = 8,
        program: str | Path | None = None,
    ) -> None:
        super().__init__(lm, characters, most_parts, program)
        self.most = check_k(most, "most")

    def extract(self, question: str, text: str) -> list[TextPassage]:
        """Return passages of a text, most helpful first.

        Args:
            question: to answer.
            text: the whole text.

        Raises:
            QueryError: the question is not a string.
            ItemError: the text is empty.
            DependencyError: DSPy is not installed.
        """
        return self.extract_all([question], [text])[0]

    def extract_all(self, questions: Sequence[str], texts: Sequence[str]) -> list[list[TextPassage]]:
        """Return passages of each text for its question; all are asked in one batch.

        Args:
            questions: one per text.
            texts: as many.
        """
        asked, numbered = checked_pairs(questions, texts, "question", "questions")
        parts = [self.parts(question, text) for question, text in zip(asked, numbered, strict=True)]
        chosen = [
            merged_by_rank([numbers for numbers in answers if numbers], lambda number: number)
            for answers in self.ask(asked, numbered, parts)
        ]
        again = [place for place, numbers in enumerate(chosen) if len(parts[place]) > 1 and len(numbers) > self.most]
        finals = self.ask(
            [asked[place] for place in again],
            [numbered[place] for place in again],
            [[numbered[place].part(sorted(chosen[place]))] for place in again],
        )
        for place, (numbers,) in zip(again, finals, strict=True):
            chosen[place] = numbers or chosen[place]
        return [
            [text.passage(number) for number in numbers[: self.most]] for text, numbers in zip(numbered, chosen, strict=True)
        ]

    def read(self, answer: object, text: NumberedText, part: TextPart) -> list[int] | None:
        del text
        return read_numbers(answer, part.numbers)

    def new_program(self) -> Any:
        from nlp_retrieval.systems.evidence.web_research.full_text.signatures import PassageSelector

        return PassageSelector()
