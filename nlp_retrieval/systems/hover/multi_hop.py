"""Three hops with a language model between them, as DSPy programs that optimisers can compile.

After ``HoverMultiHop`` of LangProBe (Tan et al., 2025, https://arxiv.org/abs/2502.20315): retrieve 7 documents for the
claim, summarise them, write the next query, twice; what all hops found is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from nlp_retrieval import IndexReport, LanguageModel, RetrievalResult, SearchableItem, Searcher
from nlp_retrieval.core import BaseLoader, BaseRetriever
from nlp_retrieval.lm import CompiledProgram, dspy, load_program
from nlp_retrieval.systems.hover.evaluation import as_document
from nlp_retrieval.systems.hover.hops import walk

# The only prompts of the multi-hop program, as DSPy signatures.


class SummarizePassages(dspy.Signature):  # type: ignore[misc]  # DSPy has no types
    """Summarize what the passages say that helps to verify the claim, and name what they leave open."""

    claim: str = dspy.InputField(desc="a claim that links facts from several documents")
    context: list[str] = dspy.InputField(desc="summaries of what was found before")
    passages: list[str] = dspy.InputField(desc="documents found now, each as title | text")
    summary: str = dspy.OutputField(desc="a few sentences, with the names of all entities that matter")


class WriteNextQuery(dspy.Signature):  # type: ignore[misc]  # DSPy has no types
    """Write the search query that finds a document still missing to verify the claim, given what was found so far."""

    claim: str = dspy.InputField(desc="a claim that links facts from several documents")
    context: list[str] = dspy.InputField(desc="summaries of what was found before")
    query: str = dspy.OutputField(desc="one search query about what is missing, with the names it needs")


HOPS = 3
PER_HOP = 7
PASSAGE_CHARACTERS = 1500
"""Seven such documents fit small context windows."""


class _MultiHopParts:
    """Parts shared by copies of a program: DSPy's optimisers copy programs, but must not copy an opened index."""

    def __init__(self, searcher: Searcher, lm: LanguageModel | None, per_hop: int, passage_characters: int) -> None:
        self.searcher = searcher
        self.lm = lm
        self.per_hop = per_hop
        self.passage_characters = passage_characters

    def search(self, queries: list[str], k: int) -> list[list[RetrievalResult]]:
        return self.searcher.search(queries, k)

    def __deepcopy__(self, memo: dict[int, Any]) -> _MultiHopParts:
        return self


class HoverMultiHop(dspy.Module):  # type: ignore[misc]  # DSPy has no types
    """Retrieves for the claim, then for what the documents found so far leave open.

    Args:
        retrievers: as ``Searcher`` takes them; or a searcher.
        lm: the language model; None for the one of DSPy's settings.
        hops: how often documents are retrieved.
        per_hop: documents each time.
        passage_characters: of each document that the model is shown; a small model reads slowly.
        program: a compiled program, or the JSON file of one.
    """

    step: Any = dspy.Predict
    """How each question is asked."""

    def __init__(
        self,
        retrievers: Searcher | Sequence[BaseRetriever] | Mapping[str, BaseRetriever],
        lm: LanguageModel | None = None,
        hops: int = HOPS,
        per_hop: int = PER_HOP,
        passage_characters: int = PASSAGE_CHARACTERS,
        program: CompiledProgram | str | Path | None = None,
    ) -> None:
        super().__init__()
        searcher = retrievers if isinstance(retrievers, Searcher) else Searcher(retrievers)
        self.parts = _MultiHopParts(searcher, lm, per_hop, passage_characters)
        self.summarize = [self.step(SummarizePassages) for _ in range(hops - 1)]
        self.ask = [self.step(WriteNextQuery) for _ in range(hops - 1)]
        if program is not None:
            load_program(self, program)

    @property
    def language_model(self) -> LanguageModel | None:
        """The model that the program asks; None for the one of DSPy's settings."""
        return self.parts.lm

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path) -> IndexReport:
        """Index items, and open the result; see :meth:`Searcher.index`."""
        return self.parts.searcher.index(items, path)

    def open(self, path: str | Path) -> Self:
        """Open an index; returns the program itself."""
        self.parts.searcher.open(path)
        return self

    def forward(self, claim: str) -> dspy.Prediction:
        """Find the documents of a claim.

        Returns:
            ``retrieved_docs``, at most ``hops * per_hop`` of ``title | text``, hop after hop; ``results``, the same with
            signals; and ``queries``, what each hop searched for.

        Raises:
            IndexMissingError: no index was opened.
        """
        parts = self.parts
        (one,) = walk([claim], parts.search, self.summarize, self.ask, parts.lm, parts.per_hop, parts.passage_characters)
        results = one.results()
        return dspy.Prediction(queries=one.queries, retrieved_docs=[as_document(hit) for hit in results], results=results)


class HoverMultiHopReasoning(HoverMultiHop):
    """The same with a chain of thought before every summary and every query; the arguments are the same."""

    step: Any = dspy.ChainOfThought
