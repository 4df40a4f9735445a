"""Hypothetical document embeddings (HyDE): a language model writes a passage that would answer, which is then searched with.

Gao et al., "Precise Zero-Shot Dense Retrieval without Relevance Labels", ACL 2023: the passage need not be true; its vector
lies near those of true passages.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.reading import read_passage, unwrapped
from nlp_retrieval.processors.compiled import CompiledProcessor

FIELDS = {"write": ("query", "passage")}
"""Input and output fields of the program, by the names of its predictors."""


class HyDE(CompiledProcessor[str]):
    """Has a language model write a hypothetical passage for each query, and searches with it.

    A query without a usable answer is searched as it is; one warning per batch says how many there were, and why.

    Args:
        lm: the language model.
        keep_query: whether the query is searched too, before the passage; otherwise the passage replaces it.
        max_words: a longer passage is cut after this many words.
        program: the JSON file of a compiled program; by default the plain signature.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of a DSPy program, or of another program.
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

    def subqueries_per_query(self) -> int:
        return 1 + self.keep_query

    def subqueries(self, nlq: str, answer: str | None) -> list[str]:
        if answer is None:
            return [nlq]
        return [nlq, answer] if self.keep_query else [answer]

    def read(self, question: Mapping[str, Any], answer: object) -> str | None:
        return read_passage(unwrapped(answer), question["query"], self.max_words)

    def new_program(self) -> Any:
        from nlp_retrieval.processors.signatures import PassageWriter

        return PassageWriter()
