"""The HoVer pipelines as DSPy programs that optimisers can compile. This module needs DSPy.

``HoverMultiHop``, after LangProBe (Tan et al., 2025, https://arxiv.org/abs/2502.20315): retrieve 7 documents for the claim,
summarise them, write the next query, twice; the answer is what all hops found. A step without an answer of the language model
fails alone: no summary is added, or the claim itself is searched again.

``HoverMultiHopPipeline``: decompose the claim, retrieve for every phrase, rerank against the claim, as ``Searcher`` does it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, cast

from nlp_retrieval import (
    ClaimPhrases,
    IndexReport,
    LanguageModel,
    OverlapReranker,
    RetrievalResult,
    SearchableItem,
    Searcher,
)
from nlp_retrieval.core import BaseReranker, BaseRetriever, BaseSearcher, Items, build, has_no_words, stage
from nlp_retrieval.errors import ConfigurationError
from nlp_retrieval.lm import CompiledProgram, ask_all, dspy, read_passage
from nlp_retrieval.processors import ClaimDecomposition

Search = Callable[[list[str], int], Sequence[list[RetrievalResult]]]

SEPARATOR = " | "
"""Separator of the title and the text of a document, as in DSPy's retrievers."""

HOPS = 3
PER_HOP = 7
PASSAGE_CHARACTERS = 1500
"""Of each document that the model is shown: seven such documents fit small context windows."""

_SUMMARY_WORDS = 200
_QUERY_WORDS = 64


def as_document(result: RetrievalResult) -> str:
    """Return a result in the form of documents in DSPy programs: ``title | text``; the id replaces a missing title."""
    return f"{result.item.title or result.item.item_id}{SEPARATOR}{result.item.content}"


@dataclass
class Walk:
    """The walk of one claim: queries and results of each hop, best first, and summaries of all hops but the last."""

    claim: str
    queries: list[str]
    hops: list[list[RetrievalResult]] = field(default_factory=list)
    context: list[str] = field(default_factory=list)

    def results(self) -> list[RetrievalResult]:
        """Return all results, hop after hop, each item where it was found first.

        ``score`` is 1 / rank. ``hop<n>.rank`` and ``hop<n>.score`` are its rank and score in each hop, with the signals of
        the retrievers (``hop<n>.<label>.score``).
        """
        signals: dict[str, dict[str, float]] = {}
        items: dict[str, SearchableItem] = {}
        for number, hop in enumerate(self.hops, start=1):
            for rank, result in enumerate(hop, start=1):
                items.setdefault(result.item.item_id, result.item)
                own = signals.setdefault(result.item.item_id, {})
                own |= {f"hop{number}.rank": float(rank), f"hop{number}.score": result.score}
                own |= {f"hop{number}.{key}": value for key, value in result.signals.items()}
        return [
            RetrievalResult.trusted(item, 1.0 / rank, signals[item_id])
            for rank, (item_id, item) in enumerate(items.items(), start=1)
        ]


def walk(
    claims: Sequence[str],
    search: Search,
    summarize: Sequence[Any],
    ask: Sequence[Any],
    lm: LanguageModel | None,
    per_hop: int,
) -> list[Walk]:
    """Walk with all claims at once; ``lm`` is None for the model of DSPy's settings."""
    walks = [Walk(claim, [claim]) for claim in claims]
    for hop in range(len(ask) + 1):
        if hop:
            with stage(f"hop{hop + 1}.query"):
                _ask(walks, ask[hop - 1], lm, hop)
        with stage(f"hop{hop + 1}.retrieve"):
            for single, results in zip(walks, search([single.queries[-1] for single in walks], per_hop), strict=True):
                single.hops.append(results)
        if hop < len(ask):
            with stage(f"hop{hop + 1}.summarize"):
                _summarize(walks, summarize[hop], lm, hop)
    return walks


def stages_of(hops: int) -> list[str]:
    """Return the stages of a walk, in order."""
    return [f"hop{hop}.{step}" for hop in range(1, hops + 1) for step in ("query", "retrieve", "summarize")][1:-1]


def _summarize(walks: list[Walk], program: Any, lm: LanguageModel | None, hop: int) -> None:
    asked = [single for single in walks if single.hops[-1]]
    questions = [
        {
            "claim": single.claim,
            "context": list(single.context),
            "passages": [as_document(result)[:PASSAGE_CHARACTERS] for result in single.hops[-1]],
        }
        for single in asked
    ]
    for single, summary in zip(asked, _answers(lm, program, questions, "summary", _SUMMARY_WORDS, hop + 1), strict=True):
        single.context += [summary] if summary is not None else []


def _ask(walks: list[Walk], program: Any, lm: LanguageModel | None, hop: int) -> None:
    asked = [single for single in walks if single.context and not has_no_words(single.claim)]
    questions = [{"claim": single.claim, "context": list(single.context)} for single in asked]
    for single in walks:
        single.queries.append(single.claim)
    for single, query in zip(asked, _answers(lm, program, questions, "query", _QUERY_WORDS, hop), strict=True):
        single.queries[-1] = single.claim if query is None else query


def _answers(
    lm: LanguageModel | None, program: Any, questions: list[dict[str, Any]], output: str, max_words: int, hop: int
) -> list[str | None]:
    if not questions:
        return []
    otherwise = "are left without it" if output == "summary" else "search for the claim again"
    what = f"multi_hop, {output} after hop {hop}"
    return ask_all(lm, program, questions, output, lambda _, answer: read_passage(answer, "", max_words), what, otherwise)


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


@dataclass(frozen=True, eq=False)
class _HoverParts:
    """Parts shared by copies of a program: DSPy's optimisers copy programs, but must not copy an opened index."""

    searcher: Searcher
    lm: LanguageModel | None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class _HoverProgram(dspy.Module):  # type: ignore[misc]  # DSPy has no types
    """A program over an index."""

    parts: _HoverParts

    @property
    def language_model(self) -> LanguageModel | None:
        """The model that the program asks; None for the one of DSPy's settings."""
        return self.parts.lm

    def set_lm(self, lm: Any) -> None:
        """Ask another model from now on; None for the one of DSPy's settings."""
        self.parts = replace(self.parts, lm=None if lm is None else LanguageModel.of_client(lm))

    def index(self, items: Items, path: str | Path) -> IndexReport:
        """Index items, and open the result; see :meth:`Searcher.index`."""
        return self.parts.searcher.index(items, path)

    def open(self, path: str | Path) -> Self:
        """Open an index; returns the program itself."""
        self.parts.searcher.open(path)
        return self


class HoverMultiHop(_HoverProgram):
    """Retrieves for the claim, then for what the documents found so far leave open.

    Args:
        retrievers: as ``Searcher`` takes them; or a searcher.
        lm: the language model, or a client with ``complete(prompt)``; None for the model of DSPy's settings.
        hops: how often documents are retrieved.
        per_hop: documents each time; three lists of 7 are at most 21.
        program: a compiled program, or the JSON file of one.

    Examples:
        >>> class Stub:
        ...     def complete(self, prompt):
        ...         return "lemmings in the snow"
        >>> program = HoverMultiHop(["bm25"], Stub(), hops=2)
        >>> report = program.index(items, "index")
        >>> found = program("What eats krill?")
        >>> found.queries, [document.partition(" | ")[0] for document in found.retrieved_docs]
        (['What eats krill?', 'lemmings in the snow'], ['Krill', 'Blue whale', 'Arctic fox'])
    """

    def __init__(
        self,
        retrievers: Searcher | Sequence[BaseRetriever] | Mapping[str, BaseRetriever],
        lm: LanguageModel | None = None,
        hops: int = HOPS,
        per_hop: int = PER_HOP,
        program: CompiledProgram | str | Path | None = None,
    ) -> None:
        super().__init__()
        searcher = retrievers if isinstance(retrievers, Searcher) else Searcher(retrievers)
        lm = None if lm is None else LanguageModel.of_client(lm)
        self.parts = _HoverParts(searcher, lm)
        self.per_hop = per_hop
        self.summarize = [dspy.Predict(SummarizePassages) for _ in range(hops - 1)]
        self.ask = [dspy.Predict(WriteNextQuery) for _ in range(hops - 1)]
        if program is not None:
            (program if isinstance(program, CompiledProgram) else CompiledProgram.read(program)).load_into(self)

    def forward(self, claim: str) -> dspy.Prediction:
        """Return ``retrieved_docs``, each ``title | text``, hop after hop; ``results``, the same; and the ``queries``."""
        search, lm = self.parts.searcher.search, self.parts.lm
        (walked,) = walk([claim], search, self.summarize, self.ask, lm, self.per_hop)
        results = walked.results()
        return dspy.Prediction(queries=walked.queries, retrieved_docs=[as_document(hit) for hit in results], results=results)

    def as_searcher(self) -> BaseSearcher:
        """Return the searcher that finds what this program finds, as it was compiled: an entrant of a benchmark."""
        inner, lm = self.parts.searcher, LanguageModel.of_client(self.parts.lm)
        parts = {key: inner._arguments[key] for key in ("retrievers", "fusion", "reranker")}
        if Searcher(**parts) != inner:
            raise ConfigurationError(f"{inner} has more than retrievers, a fusion and a reranker; make the program of these")
        settings = {"lm": lm, "hops": len(self.ask) + 1, "per_hop": self.per_hop}
        made: Any = build("searchers", {"name": "multi_hop"} | parts | settings)
        made._compiled, made._opened = CompiledProgram.of(self), inner._opened
        searcher: BaseSearcher = made
        return searcher


class HoverMultiHopPipeline(_HoverProgram):
    """Breaks a claim into two or three phrases, retrieves 25 documents for each, and keeps the 7 best of each: at most 21.

    Args:
        retrievers: as ``Searcher`` takes them.
        lm: the language model, a ``dspy.LM``, or a client with ``complete(prompt)``; None for the model of DSPy's settings.
        reranker: reorders the documents of each phrase against the claim; by default ``OverlapReranker(blend="replace")``.
        keep_query: whether the claim itself is searched too, first: the best 21 of four lists of 7. Over BM25, all documents
            of .500 of the three-hop claims were found with it, and of .320 without (``bench/HOVER.md``).
        program: JSON of a compiled program.

    Examples:
        >>> class Stub:
        ...     def complete(self, prompt):
        ...         return '["krill", "lemmings"]'
        >>> program = HoverMultiHopPipeline(["bm25"], Stub())
        >>> report = program.index(items, "index")
        >>> found = program("What eats krill is no fox.")
        >>> found.phrases, [document.partition(" | ")[0] for document in found.retrieved_docs]
        (['krill', 'lemmings'], ['Blue whale', 'Arctic fox', 'Krill'])
    """

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever],
        lm: LanguageModel | None = None,
        reranker: BaseReranker | None = None,
        keep_query: bool = False,
        program: str | Path | None = None,
    ) -> None:
        super().__init__()
        model = LanguageModel.of_client(lm)
        processor = ClaimPhrases(model, keep_query=keep_query, program=program)
        reranker = reranker if reranker is not None else OverlapReranker(blend="replace")
        searcher = Searcher(retrievers, processor=processor, reranker=reranker, scope="per_subquery", depth=25, quota=PER_HOP)
        self._take(searcher, processor)

    @classmethod
    def of_searcher(cls, searcher: Searcher) -> Self:
        """Make the program of a searcher whose processor is a :class:`ClaimPhrases`, whatever its numbers are."""
        if not isinstance(searcher.processor, ClaimPhrases):
            raise ConfigurationError(f"the searcher's processor is {searcher.processor!r}; it must be claim_phrases")
        pipeline = cls.__new__(cls)
        dspy.Module.__init__(pipeline)
        pipeline._take(searcher, searcher.processor)
        return pipeline

    def _take(self, searcher: Searcher, processor: ClaimPhrases) -> None:
        self.parts = _HoverParts(searcher, processor.lm)
        self.decompose = dspy.Predict(ClaimDecomposition)
        if processor.compiled is not None:
            processor.compiled.load_into(self)

    @property
    def _processor(self) -> ClaimPhrases:
        return cast("ClaimPhrases", self.parts.searcher.processor)

    def forward(self, claim: str) -> dspy.Prediction:
        """Return ``retrieved_docs``, each ``title | text``, best first; ``results``, the same; and the ``phrases``."""
        phrases = [claim]
        if not has_no_words(claim):
            processor = self._processor
            (read,) = ask_all(self.parts.lm, self.decompose, [{"claim": claim}], "phrases", processor.read, processor.name)
            phrases = processor.subqueries(claim, read)
        (results,) = self.parts.searcher.search([claim], 21, subqueries=[phrases])
        return dspy.Prediction(phrases=phrases, retrieved_docs=[as_document(result) for result in results], results=results)

    def as_searcher(self) -> BaseSearcher:
        """Return the searcher that finds what this program finds, as it was compiled: an entrant of a benchmark."""
        inner, processor = self.parts.searcher, copy.copy(self._processor)
        processor.lm = LanguageModel.of_client(self.parts.lm)
        processor.compiled, processor._program = CompiledProgram.of(self), None
        searcher = type(inner)(**inner._arguments | {"processor": processor})
        searcher._opened = inner._opened
        return searcher
