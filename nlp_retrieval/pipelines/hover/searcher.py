"""The multi-hop program as a searcher: what a benchmark can drive beside any other.

It finds what :class:`~nlp_retrieval.pipelines.hover.multi_hop.HoverMultiHop` finds, for a batch of claims at a time, and
adds its hops to the signals. One call uses one generation of the index throughout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from nlp_retrieval.core.component import Component, canonical_json
from nlp_retrieval.core.fusion import BaseFusion
from nlp_retrieval.core.generation import Generation
from nlp_retrieval.core.index_store import IndexReport
from nlp_retrieval.core.interfaces import BaseLoader
from nlp_retrieval.core.manifest import RetrieverRecord
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.queries import check_k, check_queries
from nlp_retrieval.core.reranker import BaseReranker
from nlp_retrieval.core.retriever import BaseRetriever
from nlp_retrieval.core.searcher import Searcher
from nlp_retrieval.lm.language_model import LanguageModel
from nlp_retrieval.lm.programs import fingerprint_of_file, read_program

Step = Literal["predict", "chain_of_thought"]


class MultiHopSearcher(Component):
    """Retrieves, summarises, asks for what is missing, and retrieves again, with all claims of a batch at once.

    Args:
        retrievers: as ``Searcher`` takes them.
        lm: the language model.
        fusion: joins the retrievers' lists in each hop.
        reranker: reorders the documents of each hop against that hop's query.
        hops: how often documents are retrieved.
        per_hop: documents each time; a search gives at most ``hops * per_hop``.
        step: how the model is asked, directly or with a chain of thought.
        program: the JSON file of a compiled program, as ``nlp-retrieval optimize`` writes it.

    Raises:
        SourceError: there is no such file, or it is no JSON.
        ConfigurationError: it is no state of a DSPy program.
    """

    kind: ClassVar[str] = "searchers"
    name = "multi_hop"

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever],
        lm: LanguageModel,
        fusion: BaseFusion | None = None,
        reranker: BaseReranker | None = None,
        hops: Annotated[int, Field(ge=1, le=9)] = 3,
        per_hop: Annotated[int, Field(ge=1)] = 7,
        step: Step = "predict",
        program: str | Path | None = None,
    ) -> None:
        self.lm = lm
        self.hops = hops
        self.per_hop = per_hop
        self.step: Step = step
        self.program = program
        self._retrievers, self._fusion, self._reranker = retrievers, fusion, reranker
        self._searcher = self._inner()
        self.retrievers = self._searcher.retrievers
        self._compiled: Any = None
        if program is not None:
            read_program(program)

    @property
    def fingerprint(self) -> str:
        """Of the whole configuration, the compiled program's content included."""
        parts = {"config": self.config, "searcher": self._searcher.fingerprint}
        if self.program is not None:
            parts["program"] = fingerprint_of_file(self.program)
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()

    @property
    def stages(self) -> list[str]:
        """Names of the stages, in order."""
        from nlp_retrieval.pipelines.hover.hops import stages_of

        return stages_of(self.hops)

    @property
    def opened(self) -> Generation:
        """The generation of the index that is searched.

        Raises:
            IndexMissingError: none was opened.
        """
        return self._searcher.opened

    def index(self, items: BaseLoader | Iterable[SearchableItem], path: str | Path, *, replace: bool = False) -> IndexReport:
        """Index items, and open the result; see :meth:`Searcher.index`."""
        report = self._inner().index(items, path, replace=replace)
        self.open(path)
        return report

    def open(self, path: str | Path) -> MultiHopSearcher:
        """Open an index that was built before; returns the searcher itself. See :meth:`Searcher.open`."""
        self._searcher = self._inner().open(path)
        return self

    def refresh(self) -> bool:
        """Take up a newer generation of the index, if there is one; returns whether there was."""
        opened = self.opened
        if opened.is_current():
            return False
        self.open(opened.path)
        return True

    def index_records(self) -> list[RetrieverRecord]:
        """What the opened index says of the retrievers and their parts."""
        return self._searcher.index_records()

    def provenance(self) -> dict[str, str]:
        found = super().provenance()
        return found if self.program is None else found | {str(self.program): fingerprint_of_file(self.program)}

    def search(self, queries: str | Sequence[str], k: int = 21) -> list[list[RetrievalResult]]:
        """Search.

        Args:
            queries: a list of queries; a bare string counts as a list of one.
            k: at most this many results per query.

        Returns:
            One list per query: what the first hop found, then what each later one added.

        Raises:
            QueryError: a query is no string, or k no positive integer.
            IndexMissingError: no index was opened.
            DependencyError: DSPy is not installed.
        """
        nlqs, cut = check_queries(queries), check_k(k)
        searcher = self._searcher  # one generation throughout, whatever refresh does meanwhile
        _ = searcher.opened
        if not nlqs:
            return []
        from nlp_retrieval.pipelines.hover.hops import walk

        program = self._program()
        walks = walk(nlqs, searcher.search, program.summarize, program.ask, self.lm, self.per_hop)
        return [one.results()[:cut] for one in walks]

    def _inner(self) -> Searcher:
        return Searcher(self._retrievers, fusion=self._fusion, reranker=self._reranker)

    def as_program(self) -> Any:
        """Make the DSPy program that walks as this searcher does; to be called, and to be optimised.

        Raises:
            DependencyError: DSPy is not installed.
            ConfigurationError: ``program`` was compiled for another signature.
        """
        from nlp_retrieval.pipelines.hover.multi_hop import HoverMultiHop, HoverMultiHopReasoning

        made = HoverMultiHop if self.step == "predict" else HoverMultiHopReasoning
        return made(self._searcher, self.lm, self.hops, self.per_hop, self.program)

    def _program(self) -> Any:
        if self._compiled is None:
            self._compiled = self.as_program()
        return self._compiled
