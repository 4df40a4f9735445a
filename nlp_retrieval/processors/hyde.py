"""Hypothetical document embeddings: the passage that would answer is written first, and searched with (HyDE).

Gao et al., "Precise Zero-Shot Dense Retrieval without Relevance Labels", ACL 2023: what a language model writes need not
be true; its vector lies where true passages lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval.core.queries import says_nothing
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.reading import read_passage, unwrapped
from nlp_retrieval.processors.compiled import CompiledProcessor

FIELDS = {"write": ("query", "passage")}
"""What the program asks, by the names of its predictors."""


class HyDE(CompiledProcessor):
    """Has a language model write a hypothetical passage for each query, and searches with it.

    An answer that cannot be used leaves the query as it is; one warning a batch says how many and why.

    Args:
        lm: the language model.
        keep_query: whether the query is searched beside the passage, before it; otherwise the passage replaces it.
        max_words: a longer passage is cut after this many words.
        program: the JSON file of a compiled program; by default the plain signature.

    Raises:
        SourceError: there is no such file, or it is no JSON.
        ConfigurationError: it is no state of a DSPy program, or that of another one.
    """

    name = "hyde"

    def __init__(
        self,
        lm: LanguageModel,
        keep_query: bool = True,
        max_words: Annotated[int, Field(ge=1)] = 150,
        program: str | Path | None = None,
    ) -> None:
        self.lm = lm
        self.keep_query = keep_query
        self.max_words = max_words
        self._take_program(program, FIELDS)
        self._asked: Any = None

    def subqueries_per_query(self) -> int:
        return 1 + self.keep_query

    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Return the query, the passage, or both, for each query.

        Raises:
            DependencyError: DSPy is not installed.
        """
        from nlp_retrieval.lm.asking import ask_all

        asked = [nlq for nlq in nlqs if not says_nothing(nlq)]
        if not asked:
            return [[nlq] for nlq in nlqs]
        questions = [{"query": nlq} for nlq in asked]
        answers = ask_all(self.lm, self._predictor(), questions, "passage", self._read, self.name)
        passages = dict(zip(asked, answers, strict=True))
        return [self._subqueries(nlq, passages.get(nlq)) for nlq in nlqs]

    def _subqueries(self, nlq: str, passage: str | None) -> list[str]:
        if passage is None:
            return [nlq]
        return [nlq, passage] if self.keep_query else [passage]

    def _read(self, question: Mapping[str, Any], answer: object) -> str | None:
        return read_passage(unwrapped(answer), question["query"], self.max_words)

    def _predictor(self) -> Any:
        from nlp_retrieval.lm.programs import load_program
        from nlp_retrieval.processors.signatures import PassageWriter

        if self._asked is None:
            writer = PassageWriter()
            if self.compiled is not None:
                load_program(writer, self.compiled)
            self._asked = writer.write
        return self._asked
