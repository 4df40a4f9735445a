"""The multi-hop program as a searcher, for benchmarks.

It gives the same results as :class:`~nlp_retrieval.systems.hover.programs.HoverMultiHop`, for a batch of claims at a time,
and adds its hops to the signals. One call uses one generation of the index throughout.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from nlp_retrieval import LanguageModel, Searcher
from nlp_retrieval.core import (
    PART_RULES,
    READS_FILE,
    BaseFusion,
    BaseReranker,
    BaseRetriever,
    BaseSearcher,
    ByName,
    Config,
    Queries,
    RankedLists,
    Where,
    canonical_json,
    check_k,
    codes_in,
    may_set,
    resolve_components,
    texts_of,
)
from nlp_retrieval.lm import CompiledProgram


class MultiHopSearcher(BaseSearcher):
    """Retrieves, summarises, asks for what is missing, and retrieves again, with all claims of a batch at once.

    Args:
        retrievers: as ``Searcher`` takes them.
        lm: the language model.
        fusion: joins the retrievers' lists in each hop.
        reranker: reorders the documents of each hop against that hop's query.
        hops: number of hops.
        per_hop: documents per hop; a search returns at most ``hops * per_hop``.
        program: the JSON file of a compiled program, from ``nlp-retrieval hover optimize``.

    Raises:
        SourceError: there is no such file, or it is not JSON.
        ConfigurationError: it is not the state of a DSPy program, or that of another program.
        DependencyError: DSPy is not installed, and a program is given.

    Examples:
        >>> searcher = MultiHopSearcher(["bm25"], LanguageModel("openai/gpt-4o-mini"), hops=2, per_hop=5)
        >>> report = searcher.index(items, "index")
        >>> searcher.calls_per_query()
        2
        >>> searcher.search("The largest animal eats a crustacean of the Southern Ocean.")  # doctest: +SKIP
    """

    name = "multi_hop"
    manifest_may_set = PART_RULES | may_set("lm", "hops", "per_hop", program=READS_FILE)

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever | ByName] | Mapping[str, BaseRetriever | ByName],
        lm: LanguageModel | ByName,
        fusion: BaseFusion | ByName | None = None,
        reranker: BaseReranker | ByName | None = None,
        hops: Annotated[int, Field(ge=1, le=9)] = 3,
        per_hop: Annotated[int, Field(ge=1)] = 7,
        program: str | Path | None = None,
    ) -> None:
        resolved = resolve_components(self, MultiHopSearcher, retrievers=retrievers, lm=lm, fusion=fusion, reranker=reranker)
        self.lm: LanguageModel = resolved.pop("lm")
        self.hops = hops
        self.per_hop = per_hop
        self.program = program
        self._searcher = Searcher(**resolved)
        self.retrievers = self._searcher.retrievers
        self._compiled = CompiledProgram.read(program) if program is not None else None
        self._asked: Any = None if program is None else self.as_program()  # that of another program is refused

    @property
    def fingerprint(self) -> str:
        """Return the fingerprint of the whole configuration, with the content of the compiled program."""
        parts: Config = {"config": self.config, "searcher": self._searcher.fingerprint}
        if codes := codes_in(self):
            parts["codes"] = codes
        if self._compiled is not None:
            parts["program"] = self._compiled.fingerprint
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()

    @property
    def stages(self) -> list[str]:
        """Return the names of the stages, in order."""
        from nlp_retrieval.systems.hover.programs import stages_of

        return stages_of(self.hops)

    def calls_per_query(self) -> int:
        """Return the number of calls: a summary and a query between every two hops."""
        return 2 * (self.hops - 1)

    def provenance(self) -> dict[str, str]:
        program = {} if self._compiled is None else {str(self._compiled.path): self._compiled.fingerprint}
        return super().provenance() | program

    def extra_state(self) -> dict[str, Any]:
        return super().extra_state() | {"_compiled": self._compiled}

    def search(self, queries: Queries, k: int = 21, where: Where | None = None) -> RankedLists:
        """Search.

        Args:
            queries: as for :meth:`nlp_retrieval.Searcher.search`.
            k: at most this many results per query.
            where: only items whose metadata fulfil this are found, at every hop; see :mod:`nlp_retrieval.core.filters`.

        Returns:
            One list per query: the results of the first hop, then those that each later one added.

        Raises:
            QueryError: a query is not a string, or k is not a positive integer.
            IndexMissingError: no index was opened.
            DependencyError: DSPy is not installed.
        """
        (ids, nlqs), cut = texts_of(queries), check_k(k)
        searcher = self._searching()
        if not nlqs:
            return RankedLists([], [], ids)
        from nlp_retrieval.systems.hover.programs import walk

        if self._asked is None:
            self._asked = self.as_program()
        search, asked = partial(searcher.search, where=where), self._asked
        walks = walk(nlqs, search, asked.summarize, asked.ask, self.lm, self.per_hop)
        return RankedLists(nlqs, (one.results()[:cut] for one in walks), ids)

    def _searching(self) -> Searcher:
        """Return a searcher of single hops on the generation open now; a later refresh does not affect it."""
        searcher = copy.copy(self._searcher)
        searcher._opened = self.open_retrievers()
        return searcher

    def as_program(self) -> Any:
        """Return the DSPy program that walks like this searcher; for calling and optimising."""
        from nlp_retrieval.systems.hover.programs import HoverMultiHop

        searcher = copy.copy(self._searcher) if self._opened is None else self._searching()
        return HoverMultiHop(searcher, self.lm, self.hops, self.per_hop, self._compiled)
