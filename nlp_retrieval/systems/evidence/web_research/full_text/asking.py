"""Asking a language model about whole texts: in parts, in batches, with cached answers; one failure does not stop others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from nlp_retrieval import LanguageModel
from nlp_retrieval.core import check_queries
from nlp_retrieval.errors import ConfigurationError, QueryError
from nlp_retrieval.lm import CompiledProgram, load_program, read_program
from nlp_retrieval.systems.evidence.web_research.full_text.passages import NumberedText, TextPart
from nlp_retrieval.text import fenced

__all__ = ["FullTextModule", "checked_pairs"]

AnswerT = TypeVar("AnswerT")
_LEAST = 1_000


class FullTextModule(ABC, Generic[AnswerT]):
    """A DSPy program of one step for questions about texts, a part at a time.

    A text is data: it is shown on numbered lines that it cannot imitate, and only the parts of an answer about these lines
    count. A part without a usable answer has no result, and one warning per batch says how many there were, and why.

    Args:
        lm: the language model.
        characters: the most characters of a text that are shown at once, 1,000 or more.
        most_parts: the most such parts of a longer text that are read: those that share most words with the query.
        program: the JSON file of a compiled program; by default the plain signature.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of such a program, or a number is out of range.
    """

    what: ClassVar[str]
    """Name in warnings and the progress bar."""

    fields: ClassVar[Mapping[str, tuple[str, str, str]]]
    """The predictor's name, and its fields: the query, the passages, the answer."""

    def __init__(
        self,
        lm: LanguageModel,
        characters: int = 20_000,
        most_parts: int = 8,
        program: str | Path | None = None,
    ) -> None:
        if characters < _LEAST or most_parts < 1:
            raise ConfigurationError(
                f"{type(self).__name__}: characters={characters}, most_parts={most_parts}; write at least {_LEAST:,} and 1"
            )
        self.lm, self.characters, self.most_parts = lm, characters, most_parts
        self.compiled: CompiledProgram | None = read_program(program, self.fields) if program is not None else None
        self._program: Any = None

    @abstractmethod
    def new_program(self) -> Any:
        """Return the program before it is compiled."""

    @abstractmethod
    def read(self, answer: object, text: NumberedText, part: TextPart) -> AnswerT | None:
        """Return the usable content of an answer about a part of a text; None if there is none."""

    def parts(self, query: str, text: NumberedText) -> list[TextPart]:
        """Return the parts of a text to ask about."""
        return text.parts(query, self.characters, self.most_parts)

    def ask(
        self, queries: Sequence[str], texts: Sequence[NumberedText], parts: Sequence[Sequence[TextPart]]
    ) -> list[list[AnswerT | None]]:
        """Ask about parts of texts, all in one batch.

        Args:
            queries: one per text.
            texts: to ask about.
            parts: of each text.

        Returns:
            For each text an answer per part; None for an unusable one.
        """
        from nlp_retrieval.lm import ask_all

        ((predictor, (query_field, passages_field, answer_field)),) = self.fields.items()
        asked = [
            ({query_field: fenced(query), passages_field: part.shown}, text, part)
            for query, text, some in zip(queries, texts, parts, strict=True)
            for part in some
        ]
        if not asked:
            return [[] for _ in queries]
        if self._program is None:
            program = self.new_program()
            if self.compiled is not None:
                load_program(program, self.compiled)
            self._program = program
        about = {question[passages_field]: (text, part) for question, text, part in asked}

        def read(question: Mapping[str, Any], answer: object) -> AnswerT | None:
            return self.read(answer, *about[question[passages_field]])

        answers = iter(
            ask_all(
                self.lm,
                getattr(self._program, predictor),
                [question for question, _, _ in asked],
                answer_field,
                read,
                self.what,
                "give nothing",
            )
        )
        return [[next(answers) for _ in some] for some in parts]


def checked_pairs(queries: Sequence[str], texts: Sequence[str], what: str, plural: str) -> tuple[list[str], list[NumberedText]]:
    """Return queries, and their texts with numbered passages.

    Args:
        queries: questions, or claims.
        texts: as many.
        what: name of a query in messages.
        plural: name of several.

    Raises:
        QueryError: a query is not a string, or the numbers of queries and texts differ.
        ItemError: a text is empty.
    """
    asked = check_queries(queries, what, plural)
    if isinstance(texts, str) or len(texts) != len(asked):
        raise QueryError(f"give one text for each of the {len(asked)} {plural}, in a list")
    return asked, [NumberedText(text) for text in texts]
