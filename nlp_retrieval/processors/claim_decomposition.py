"""Sub-queries by a language model: it breaks a claim into two or three phrases, each meant to find one of its documents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.reading import read_phrases
from nlp_retrieval.processors.compiled import CompiledProcessor

FIELDS = {"decompose": ("claim", "phrases")}
"""Input and output fields of the program, by the names of its predictors."""

MAX_PHRASES = 3
MAX_WORDS = 32


class ClaimDecomposition(CompiledProcessor[list[str]]):
    """Lets a language model break each claim into search phrases: proper nouns, descriptions that fit one thing, relations.

    A claim without a usable answer is searched unchanged; one warning per batch gives their number and the reason.

    Args:
        lm: the language model.
        keep_query: whether the claim itself comes first.
        max_phrases: most phrases taken from the model's answer.
        max_words: a longer phrase is cut after this many words.
        program: the JSON file of a compiled program, as ``nlp-retrieval hover optimize`` writes it; by default the plain
            signature.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of a DSPy program, or of another program.
    """

    name = "claim_decomposition"
    manifest_may_set = may_set("lm", "keep_query", "max_phrases", "max_words", program=READS_FILE)

    def __init__(
        self,
        lm: LanguageModel | ByName,
        keep_query: bool = True,
        max_phrases: Annotated[int, Field(ge=1)] = MAX_PHRASES,
        max_words: Annotated[int, Field(ge=1)] = MAX_WORDS,
        program: str | Path | None = None,
    ) -> None:
        self.lm: LanguageModel = resolve_components(self, ClaimDecomposition, lm=lm)["lm"]
        self.keep_query = keep_query
        self.max_phrases = max_phrases
        self.max_words = max_words
        self._take_program(program, FIELDS)

    def subqueries_per_query(self) -> int:
        return self.max_phrases + self.keep_query

    def subqueries(self, nlq: str, answer: list[str] | None) -> list[str]:
        if answer is None:
            return [nlq]
        return [nlq, *answer] if self.keep_query else answer

    def read(self, question: Mapping[str, Any], answer: object) -> list[str] | None:
        return read_phrases(answer, question["claim"], self.max_phrases, self.max_words)

    def new_program(self) -> Any:
        from nlp_retrieval.processors.signatures import Decomposer

        return Decomposer()
