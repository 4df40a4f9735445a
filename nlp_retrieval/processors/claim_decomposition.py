"""Sub-queries by a language model: a claim becomes two or three phrases, each to find one of its documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval.core.queries import says_nothing
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.reading import read_phrases
from nlp_retrieval.processors.compiled import CompiledProcessor

FIELDS = {"decompose": ("claim", "phrases")}
"""What the program asks, by the names of its predictors."""

MAX_PHRASES = 3
MAX_WORDS = 32


class ClaimDecomposition(CompiledProcessor):
    """Has a language model break each claim into search phrases: proper nouns, descriptions that fit one thing, relations.

    An answer that cannot be used leaves the claim as its own only sub-query; one warning a batch says how many and why.

    Args:
        lm: the language model.
        keep_query: whether the claim itself comes first.
        max_phrases: at most this many phrases of the model's.
        max_words: a longer phrase is cut after this many words.
        program: the JSON file of a compiled program, as ``nlp-retrieval optimize`` writes it; by default the plain signature.

    Raises:
        SourceError: there is no such file, or it is no JSON.
        ConfigurationError: it is no state of a DSPy program, or that of another one.
    """

    name = "claim_decomposition"

    def __init__(
        self,
        lm: LanguageModel,
        keep_query: bool = False,
        max_phrases: Annotated[int, Field(ge=1)] = MAX_PHRASES,
        max_words: Annotated[int, Field(ge=1)] = MAX_WORDS,
        program: str | Path | None = None,
    ) -> None:
        self.lm = lm
        self.keep_query = keep_query
        self.max_phrases = max_phrases
        self.max_words = max_words
        self._take_program(program, FIELDS)
        self._asked: Any = None

    def subqueries_per_query(self) -> int:
        return self.max_phrases + self.keep_query

    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Return the phrases of each claim.

        Raises:
            DependencyError: DSPy is not installed.
        """
        from nlp_retrieval.lm.asking import ask_all

        asked = [nlq for nlq in nlqs if not says_nothing(nlq)]
        if not asked:
            return [[nlq] for nlq in nlqs]
        questions = [{"claim": nlq} for nlq in asked]
        answers = ask_all(self.lm, self._predictor(), questions, "phrases", self.read, self.name)
        phrases = dict(zip(asked, answers, strict=True))
        return [self.subqueries(nlq, phrases.get(nlq)) for nlq in nlqs]

    def subqueries(self, nlq: str, phrases: list[str] | None) -> list[str]:
        """What is searched for a claim, given the phrases read from an answer; None for an answer that cannot be used."""
        if phrases is None:
            return [nlq]
        return [nlq, *phrases] if self.keep_query else phrases

    def read(self, question: Mapping[str, Any], answer: object) -> list[str] | None:
        """Make phrases of an answer; None where it cannot be used."""
        return read_phrases(answer, question["claim"], self.max_phrases, self.max_words)

    def _predictor(self) -> Any:
        from nlp_retrieval.lm.programs import load_program
        from nlp_retrieval.processors.signatures import Decomposer

        if self._asked is None:
            decomposer = Decomposer()
            if self.compiled is not None:
                load_program(decomposer, self.compiled)
            self._asked = decomposer.decompose
        return self._asked
