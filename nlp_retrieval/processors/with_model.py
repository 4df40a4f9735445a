"""Processors that ask a language model: the phrases of a claim, or a passage that would answer the query."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Config
from nlp_retrieval.core.components.registry import ByName, resolve_components
from nlp_retrieval.core.components.trust_rules import READS_FILE, may_set
from nlp_retrieval.core.models import ByKey
from nlp_retrieval.core.queries import check_queries, has_no_words
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import CompiledProgram
from nlp_retrieval.lm.reading import read_passage, read_phrases, unwrapped

# Processors with a compiled program: its file is read when the processor is created, and identified by its content.

AnswerT = TypeVar("AnswerT")


class CompiledProcessor(BaseUserQueryProcessor, Generic[AnswerT]):
    """A processor that asks a language model about each query, with a DSPy program of one step."""

    lm: LanguageModel
    program: str | Path | None = None
    compiled: CompiledProgram | None = None
    """The content of the file when the processor was created."""

    _program: Any = None

    def _take_program(self, program: str | Path | None) -> None:
        """Read a compiled program, and refuse that of another processor."""
        self.program = program
        if program is not None:
            self.compiled = CompiledProgram.read(program)
            self._opened_program()

    def _opened_program(self) -> Any:
        if self._program is None:
            self._program = self.new_program()
            if self.compiled is not None:
                self.compiled.load_into(self._program)
        return self._program

    def calls_per_query(self) -> int:
        return 1

    def process(self, nlqs: list[str]) -> list[list[str]]:
        """Ask about each query that has content, and return the sub-queries of all."""
        answers = self.answers(nlqs)
        return [self.subqueries(nlq, answers.get(nlq)) for nlq in nlqs]

    def answers(self, nlqs: list[str]) -> dict[str, AnswerT | None]:
        """Ask about each query that has content; None without a usable answer."""
        queries = [nlq for nlq in nlqs if not has_no_words(nlq)]
        if not queries:
            return {}
        from nlp_retrieval.lm.asking import ask_all

        ((_, predictor),) = self._opened_program().named_predictors()
        (query_field,), (answer_field,) = predictor.signature.input_fields, predictor.signature.output_fields
        questions = [{query_field: nlq} for nlq in queries]
        answers = ask_all(self.lm, predictor, questions, answer_field, self.read, self.name)
        return dict(zip(queries, answers, strict=True))

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
        return super().provenance() | ({} if self.compiled is None else {str(self.compiled.path): self.compiled.fingerprint})

    def extra_state(self) -> dict[str, Any]:
        return super().extra_state() | {"compiled": self.compiled, "_program": None}


# Sub-queries by a language model: it breaks a claim into two or three phrases, each meant to find one of its documents.

MAX_PHRASES = 3
MAX_WORDS = 32


class ClaimPhrases(CompiledProcessor[list[str]]):
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

    Examples:
        >>> Searcher(["bm25"], processor=ClaimPhrases(LanguageModel("openai/gpt-4o-mini"), max_phrases=2))
        Searcher(retrievers=[Bm25Retriever()], processor=ClaimPhrases(lm=LanguageModel(model='openai/gpt-4o-mini'),
        max_phrases=2))
    """

    name = "claim_phrases"
    manifest_may_set = may_set("lm", "keep_query", "max_phrases", "max_words", program=READS_FILE)

    def __init__(
        self,
        lm: LanguageModel | ByName,
        keep_query: bool = True,
        max_phrases: Annotated[int, Field(ge=1)] = MAX_PHRASES,
        max_words: Annotated[int, Field(ge=1)] = MAX_WORDS,
        program: str | Path | None = None,
    ) -> None:
        self.lm: LanguageModel = resolve_components(self, ClaimPhrases, lm=lm)["lm"]
        self.keep_query = keep_query
        self.max_phrases = max_phrases
        self.max_words = max_words
        self._take_program(program)

    def subqueries(self, nlq: str, answer: list[str] | None) -> list[str]:
        if answer is None:
            return [nlq]
        return [nlq, *answer] if self.keep_query else answer

    def read(self, question: Mapping[str, Any], answer: object) -> list[str] | None:
        return read_phrases(answer, question["claim"], self.max_phrases, self.max_words)

    def new_program(self) -> Any:
        from nlp_retrieval.processors.signatures import Decomposer

        return Decomposer()


# Hypothetical document embeddings (HyDE): a language model writes a passage that would answer, and the search uses it.
#
# Gao et al., "Precise Zero-Shot Dense Retrieval without Relevance Labels", ACL 2023: the passage need not be true; its vector
# lies near those of true passages.


@dataclass(frozen=True)
class ExpandedQuery(ByKey):
    """A query and its hypothetical answer; it is read by key, too: ``query["expanded"]``.

    Args:
        original: the query.
        hypothetical: the passage that would answer it; empty if the model gave none.
        expanded: both, the query first; only the query if there is no passage.

    Examples:
        >>> ExpandedQuery("what do whales eat?", "Whales eat krill.", "what do whales eat? Whales eat krill.").hypothetical
        'Whales eat krill.'
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

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of a DSPy program, or of another program.

    Examples:
        >>> Searcher(["faiss"], processor=HyDE(LanguageModel("openai/gpt-4o-mini"), max_words=80))
        Searcher(retrievers=[FaissRetriever()], processor=HyDE(lm=LanguageModel(model='openai/gpt-4o-mini'), max_words=80))
    """

    name = "hyde"
    manifest_may_set = may_set("lm", "keep_query", "max_words", program=READS_FILE)

    def __init__(
        self,
        lm: LanguageModel | ByName,
        keep_query: bool = True,
        max_words: Annotated[int, Field(ge=1)] = 150,
        program: str | Path | None = None,
    ) -> None:
        self.lm: LanguageModel = resolve_components(self, HyDE, lm=lm)["lm"]
        self.keep_query = keep_query
        self.max_words = max_words
        self._take_program(program)

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
        return [nlq, answer] if self.keep_query else [answer]

    def read(self, question: Mapping[str, Any], answer: object) -> str | None:
        return read_passage(unwrapped(answer), question["query"], self.max_words)

    def new_program(self) -> Any:
        from nlp_retrieval.processors.signatures import PassageWriter

        return PassageWriter()
