"""Hypothetical document embeddings (HyDE): a language model writes a passage that would answer, and the search uses it.

Gao et al., "Precise Zero-Shot Dense Retrieval without Relevance Labels", ACL 2023: the passage need not be true; its vector
lies near those of true passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.queries import check_queries
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.reading import read_passage, unwrapped
from nlp_retrieval.processors.compiled import CompiledProcessor

FIELDS = {"write": ("query", "passage")}
"""Input and output fields of the program, by the names of its predictors."""


@dataclass(frozen=True)
class ExpandedQuery:
    """A query and its hypothetical answer.

    Args:
        original: the query.
        hypothetical: the passage that would answer it; empty if the model gave none.
        expanded: both, the query first; only the query if there is no passage.
    """

    original: str
    hypothetical: str
    expanded: str


class HyDE(CompiledProcessor[str]):
    """Lets a language model write a hypothetical passage for each query, and searches with it.

    A query without a usable answer is searched unchanged; one warning per batch gives their number and the reason.

    Args:
        lm: the language model.
        keep_query: whether the query is searched too, before the passage; otherwise the passage replaces it.
        max_words: a longer passage is cut after this many words.
        program: the JSON file of a compiled program; by default the plain signature.
        form: ``separate`` searches for query and passage separately, ``concatenated`` for both as one text, the query first.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of a DSPy program, or of another program; or nothing is kept to concatenate.
    """

    name = "hyde"
    manifest_may_set = may_set("lm", "keep_query", "max_words", "form", program=READS_FILE)

    def __init__(
        self,
        lm: LanguageModel | ByName,
        keep_query: bool = True,
        max_words: Annotated[int, Field(ge=1)] = 150,
        program: str | Path | None = None,
        form: Literal["separate", "concatenated"] = "separate",
    ) -> None:
        self.lm: LanguageModel = resolve_components(self, HyDE, lm=lm)["lm"]
        self.form = form
        self.keep_query = keep_query
        self.max_words = max_words
        if form == "concatenated" and not keep_query:
            raise ConfigurationError("HyDE: form='concatenated' joins the query to the passage; leave out keep_query=False")
        self._take_program(program, FIELDS)

    def subqueries_per_query(self) -> int:
        return 1 + (self.keep_query and self.form == "separate")

    def expand(self, queries: Sequence[str]) -> list[ExpandedQuery]:
        """Return each query with its hypothetical answer; all are asked in one batch.

        Args:
            queries: questions, or claims.

        Raises:
            QueryError: one of them is not a string.
            DependencyError: DSPy is not installed.
        """
        nlqs = check_queries(queries)
        answers = self.answers(nlqs)
        return [
            ExpandedQuery(nlq, passage, f"{nlq} {passage}" if passage else nlq)
            for nlq, passage in ((nlq, answers.get(nlq) or "") for nlq in nlqs)
        ]

    def subqueries(self, nlq: str, answer: str | None) -> list[str]:
        if answer is None:
            return [nlq]
        if self.form == "concatenated":
            return [f"{nlq} {answer}"]
        return [nlq, answer] if self.keep_query else [answer]

    def read(self, question: Mapping[str, Any], answer: object) -> str | None:
        return read_passage(unwrapped(answer), question["query"], self.max_words)

    def new_program(self) -> Any:
        from nlp_retrieval.processors.signatures import PassageWriter

        return PassageWriter()
