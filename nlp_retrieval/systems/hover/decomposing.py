"""Decompose, retrieve for every phrase, rerank against the claim: the HoVer pipeline as a DSPy program.

With the same answers of the language model it finds the same documents, in the same order, as the same configuration of
``Searcher`` (:meth:`HoverMultiHopPipeline.searcher`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from nlp_retrieval import ClaimDecomposition, IndexReport, LanguageModel, OverlapReranker, RawScore, SearchableItem, Searcher
from nlp_retrieval.core import BaseFusion, BaseLoader, BaseReranker, BaseRetriever, has_no_words
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm import ask_all, dspy, load_program, save_program
from nlp_retrieval.processors import DecomposeClaim
from nlp_retrieval.systems.hover.evaluation import as_document

DEPTH = 25
QUOTA = 7
MAX_DOCUMENTS = 21


class _DecomposingParts:
    """Parts shared by copies of a program: DSPy's optimisers copy programs, but must not copy an opened index."""

    def __init__(self, searcher: Searcher, processor: ClaimDecomposition, k: int) -> None:
        self.searcher = searcher
        self.processor = processor
        self.k = k

    def __deepcopy__(self, memo: dict[int, Any]) -> _DecomposingParts:
        return self


class HoverMultiHopPipeline(dspy.Module):  # type: ignore[misc]  # DSPy has no types
    """Breaks a claim into two or three phrases, retrieves 25 documents for each and the claim, and keeps the 7 best of each.

    Args:
        retrievers: as ``Searcher`` takes them.
        lm: the language model.
        reranker: reorders the documents of each phrase against the claim; by default ``OverlapReranker(blend="replace")``.
        fusion: joins several retrievers' lists.
        keep_query: whether the claim itself is searched too, first. Without it a small model's phrases lose what the claim
            says (``bench/HOVER.md``).
        program: JSON of a compiled program.
        depth: documents per phrase.
        quota: documents kept of each.
        k: documents in all.
    """

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever],
        lm: LanguageModel,
        reranker: BaseReranker | None = None,
        fusion: BaseFusion | None = None,
        keep_query: bool = True,
        program: str | Path | None = None,
        depth: int = DEPTH,
        quota: int = QUOTA,
        k: int = MAX_DOCUMENTS,
    ) -> None:
        super().__init__()
        processor = ClaimDecomposition(lm, keep_query=keep_query, program=program)
        reranker = reranker if reranker is not None else OverlapReranker(blend="replace")
        searcher = Searcher(
            retrievers, processor=processor, fusion=fusion, reranker=reranker, scope="per_subquery", depth=depth, quota=quota
        )
        self._take(searcher, processor, k)

    @classmethod
    def of_searcher(cls, searcher: Searcher, k: int = MAX_DOCUMENTS) -> Self:
        """Make the program of a searcher whose processor is a :class:`ClaimDecomposition`, whatever its numbers are.

        Raises:
            ConfigurationError: it has another processor, or none.
        """
        if not isinstance(searcher.processor, ClaimDecomposition):
            raise ConfigurationError(
                f"the searcher's processor is {searcher.processor!r}; a program is made of one with claim_decomposition"
            )
        made = cls.__new__(cls)
        dspy.Module.__init__(made)
        made._take(searcher, searcher.processor, k)
        return made

    def _take(self, searcher: Searcher, processor: ClaimDecomposition, k: int) -> None:
        self.parts = _DecomposingParts(searcher, processor, k)
        self.decompose = dspy.Predict(DecomposeClaim)
        if processor.compiled is not None:
            load_program(self, processor.compiled)

    @property
    def language_model(self) -> LanguageModel:
        """The model that the program asks."""
        return self.parts.processor.lm

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path) -> IndexReport:
        """Index items, and open the result; see :meth:`Searcher.index`."""
        return self.parts.searcher.index(items, path)

    def open(self, path: str | Path) -> Self:
        """Open an index; returns the program itself."""
        self.parts.searcher.open(path)
        return self

    def searcher(self, program: str | Path) -> Searcher:
        """Save the program as it is now, and return the searcher that finds what it finds.

        Args:
            program: a JSON file to write.

        Raises:
            OutputError: the file cannot be written.
        """
        save_program(self, program)
        old, processor = self.parts.searcher, self.parts.processor
        return Searcher(
            old.retrievers,
            processor=ClaimDecomposition(
                processor.lm, processor.keep_query, processor.max_phrases, processor.max_words, program=program
            ),
            fusion=None if len(old.retrievers) == 1 and isinstance(old.fusion, RawScore) else old.fusion,
            reranker=old.reranker,
            scope=old.scope,
            depth=old.depth,
            quota=old.quota,
        )

    def forward(self, claim: str) -> dspy.Prediction:
        """Find the documents of a claim.

        Returns:
            ``retrieved_docs``, at most ``k`` of ``title | text``, best first; ``results``, the same with scores and
            signals; and ``phrases``, what was searched for.

        Raises:
            IndexMissingError: no index was opened.
        """
        phrases = [claim]
        if not has_no_words(claim):
            processor = self.parts.processor
            (read,) = ask_all(processor.lm, self.decompose, [{"claim": claim}], "phrases", processor.read, processor.name)
            phrases = processor.subqueries(claim, read)
        (results,) = self.parts.searcher.search([claim], self.parts.k, subqueries=[phrases])
        return dspy.Prediction(phrases=phrases, retrieved_docs=[as_document(one) for one in results], results=results)
