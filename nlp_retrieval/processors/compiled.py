"""Processors with a compiled program: its file is read when the processor is created, and identified by its content."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Config
from nlp_retrieval.core.queries import has_no_words
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import CompiledProgram, load_program, read_program

AnswerT = TypeVar("AnswerT")


class CompiledProcessor(BaseUserQueryProcessor, Generic[AnswerT]):
    """A processor that asks a language model about each query, with a DSPy program of one step.

    Its parameters ``lm`` and ``program`` are the model, and the JSON file of the compiled program or None.
    """

    lm: LanguageModel
    program: str | Path | None = None
    compiled: CompiledProgram | None = None
    """The content of the file when the processor was created."""

    _fields: Mapping[str, Sequence[str]]
    _program: Any = None

    def _take_program(self, program: str | Path | None, fields: Mapping[str, Sequence[str]]) -> None:
        """Read a program whose only predictor has these fields, one for input and one for output.

        Raises:
            SourceError: there is no such file, or it is not JSON.
            ConfigurationError: it is not the state of a DSPy program, or of another program.
        """
        self._fields = fields
        self.program = program
        self.compiled = read_program(program, fields) if program is not None else None

    def calls_per_query(self) -> int:
        return 1

    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Ask about each query that has content, and return the sub-queries of all.

        Raises:
            DependencyError: DSPy is not installed.
        """
        answers = self.answers(nlqs)
        return [self.subqueries(nlq, answers.get(nlq)) for nlq in nlqs]

    def answers(self, nlqs: list[str]) -> dict[str, AnswerT | None]:
        """Ask about each query that has content; None without a usable answer.

        Raises:
            DependencyError: DSPy is not installed.
        """
        asked = [nlq for nlq in nlqs if not has_no_words(nlq)]
        if not asked:
            return {}
        from nlp_retrieval.lm.asking import ask_all

        ((predictor, (query_field, answer_field)),) = self._fields.items()
        if self._program is None:
            self._program = self.new_program()
            if self.compiled is not None:
                load_program(self._program, self.compiled)
        questions = [{query_field: nlq} for nlq in asked]
        answers = ask_all(self.lm, getattr(self._program, predictor), questions, answer_field, self.read, self.name)
        return dict(zip(asked, answers, strict=True))

    @abstractmethod
    def new_program(self) -> Any:
        """Return the program before it is compiled."""

    @abstractmethod
    def read(self, question: Mapping[str, Any], answer: object) -> AnswerT | None:
        """Return the usable part of an answer; None if there is none."""

    @abstractmethod
    def subqueries(self, nlq: str, answer: AnswerT | None) -> list[str]:
        """Return the sub-queries of a query, given what :meth:`read` returned for it."""

    def index_identity(self) -> Config:
        # the content decides, not the path
        return super().index_identity() | ({} if self.compiled is None else {"program": self.compiled.fingerprint})

    def provenance(self) -> dict[str, str]:
        return super().provenance() | ({} if self.compiled is None else {str(self.program): self.compiled.fingerprint})
