"""The composition: process, retrieve, fuse, rerank, cut.

A searcher consists of components and adds no scoring of its own. A call of ``search`` uses the same generation of the index
throughout; ``refresh`` switches to a newer one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from nlp_retrieval.core.candidates import CandidateBatch, Mask
from nlp_retrieval.core.components.component import BaseUserQueryProcessor, canonical_json, codes_in
from nlp_retrieval.core.components.registry import ByName, require_distinct_names, resolve_components
from nlp_retrieval.core.components.trust_rules import PART_RULES, may_set
from nlp_retrieval.core.context import SearchContext, search_context
from nlp_retrieval.core.explanation import Explanations
from nlp_retrieval.core.files.frames import Queries, texts_of
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import RetrievalResult
from nlp_retrieval.core.queries import check_k, check_processed, check_queries, check_results, has_no_words
from nlp_retrieval.core.search.base_searcher import BaseSearcher, OpenedRetrievers, labelled
from nlp_retrieval.core.search.joining import BaseFusion, RawScore, ReciprocalRankFusion, interleave
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.results import RankedLists, to_results
from nlp_retrieval.core.search.retriever import BaseRetriever, with_parts
from nlp_retrieval.core.search.stages import current_stages
from nlp_retrieval.errors import ConfigurationError

Scope = Literal["pooled", "per_subquery"]

_POOL_DEPTH = 100


class Searcher(BaseSearcher):
    """Composes retrievers, and the stages before and after them, into one search.

    Args:
        retrievers: at least one; a mapping gives each a label for its signals (by default its registry
            name, numbered if two share it). They and the other parts may be given by their registry names
            (``["bm25", "faiss"]``), or as ``{"name": "bm25", "k1": 1.2}``.
        processor: turns each query into sub-queries; by default the query is searched unchanged.
        fusion: merges the retrievers' lists; by default raw scores for one retriever, reciprocal ranks for several.
        reranker: reorders the fused candidates against the original query.
        scope: ``pooled`` makes one pool per query. ``per_subquery`` keeps each sub-query's candidates separate: fused and
            reranked separately against the original query, then interleaved by rank.
        depth: candidates per retriever, after its sub-queries are merged (per sub-query with scope ``per_subquery``). By
            default k for one retriever without a reranker, else max(k, 100). ``all``: every item that matches the filter and
            that the retriever finds at all; a flat dense index finds all of them.
        quota: with scope ``per_subquery``, at most this many results from each sub-query; by default even shares of k,
            with slots left free by short lists filled by the others.

    Examples:
        >>> searcher = Searcher(["bm25"], reranker="overlap", depth=50)
        >>> searcher.index(items, "index")
        <3 items in index; built bm25; ... s>
        >>> for hit in searcher.search("what eats krill?", k=2)[0]:
        ...     print(hit.item.item_id, round(hit.score, 3))
        whale 0.033
        krill 0.033
        >>> [hit.item.item_id for hit in searcher.search("krill", where={"year": {"gte": 2020}})[0]]
        ['whale']
        >>> Searcher.open("index").search("lemmings")[0][0].item.title
        'Arctic fox'
    """

    name = "searcher"
    manifest_may_set = PART_RULES | may_set("processor", "scope", "depth", "quota")

    def __init__(
        self,
        retrievers: Sequence[BaseRetriever | ByName] | Mapping[str, BaseRetriever | ByName],
        processor: BaseUserQueryProcessor | ByName | None = None,
        fusion: BaseFusion | ByName | None = None,
        reranker: BaseReranker | ByName | None = None,
        scope: Scope = "pooled",
        depth: Annotated[int, Field(ge=1)] | Literal["all"] | None = None,
        quota: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        parts = {"retrievers": retrievers, "processor": processor, "fusion": fusion, "reranker": reranker}
        resolved = resolve_components(self, Searcher, **parts)
        self.retrievers = _labelled(resolved["retrievers"])
        self.processor: BaseUserQueryProcessor | None = resolved["processor"]
        several = len(self.retrievers) > 1
        self.fusion: BaseFusion = resolved["fusion"] or (ReciprocalRankFusion() if several else RawScore())
        if several:
            self._arguments["fusion"] = self.fusion  # the default, spelled out or not, is the same configuration
        self.reranker: BaseReranker | None = resolved["reranker"]
        self.scope: Scope = scope
        self.depth = depth
        self.quota = quota
        if quota is not None and scope != "per_subquery":
            raise ConfigurationError(f"Searcher: quota={quota} has a meaning only with scope='per_subquery'")
        if self.reranker is not None and self.reranker.name in self.retrievers:
            raise ConfigurationError(
                f"Searcher: a retriever and the reranker are both called {self.reranker.name!r}; give the retriever another "
                "label"
            )
        require_distinct_names([self])

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the whole configuration: equal searchers have equal fingerprints."""
        parts = [*with_parts(self.retrievers.values()), *filter(None, [self.processor, self.reranker])]
        models = [part.identity for part in parts]
        codes = codes_in(self)
        whole = {"config": self.config, "models": models} | ({"codes": codes} if codes else {})
        return hashlib.sha256(canonical_json(whole).encode()).hexdigest()

    @property
    def stages(self) -> list[str]:
        """Names of the stages, in order, as :func:`nlp_retrieval.core.context.record_stages` reports them."""
        names = ["process"] if self.processor else []
        names += self.retrievers
        names += ["fuse"] if self._fuses else []
        names += [self.reranker.name] if self.reranker else []
        return [*names, "items"]

    @property
    def _fuses(self) -> bool:
        return len(self.retrievers) > 1 or not isinstance(self.fusion, RawScore)

    def search(
        self,
        queries: Queries,
        k: int = 10,
        where: Where | None = None,
        subqueries: Sequence[Sequence[str]] | None = None,
    ) -> RankedLists:
        """Search.

        Args:
            queries: texts, :class:`Query` objects, dicts, pairs ``(id, text)``, or a DataFrame with the columns ``qid`` and
                ``query``; a bare string counts as a list of one. The id of a text is its position, from 0.
            k: at most this many results per query.
            where: only items whose metadata match this filter are found: ``{"country": "Japan", "year": {"gte": 2015}}``; see
                :mod:`nlp_retrieval.core.filters`.
            subqueries: the sub-queries to search for per query, instead of those of the processor.

        Returns:
            One list per query, best first; ordinary lists that also have ``to_pandas()``, ``to_polars()``, ``to_arrow()`` and
            ``to_dict()``.

        Raises:
            QueryError: a query has no text, k is not a positive integer, the filter does not match these items, or the
                numbers of queries and of lists of sub-queries differ.
            IndexMissingError: no index was opened.
            IndexDamagedError: a file of the index has changed since it was opened.
            ForkError: it was opened before a fork, which one of the engines does not survive.
        """
        (ids, nlqs), cut, context = texts_of(queries), check_k(k), search_context()
        opened = self.open_retrievers()
        opened.generation.item_files.check()
        allowed = opened.generation.items.allowed(where)
        if allowed is not None and not allowed.any():
            return RankedLists(nlqs, ([] for _ in nlqs), ids)
        with context.stage("process"):
            if subqueries is not None:
                processed = check_processed(subqueries, len(nlqs))
            elif self.processor is not None:
                processed = current_stages(context).subqueries(self.processor, nlqs)
            else:
                processed = [[nlq] for nlq in nlqs]
        if self.scope == "pooled":
            batch = self._ranked(context, opened, nlqs, processed, cut, allowed).head(cut)
        else:
            counts = [len(subqueries) for subqueries in processed]
            each_alone = [[subquery] for subqueries in processed for subquery in subqueries]
            originals = [nlq for nlq, count in zip(nlqs, counts, strict=True) for _ in range(count)]
            batch = interleave(self._ranked(context, opened, originals, each_alone, cut, allowed), counts, cut, self.quota)
        with context.stage("items"):
            return RankedLists(nlqs, to_results(batch, opened.generation.items), ids)

    @property
    def explains(self) -> bool:
        """Return whether one of the retrievers can give reasons why it found an item."""
        return any(retriever.explains for retriever in self.retrievers.values())

    def explain(self, query: str, results: Sequence[RetrievalResult]) -> Explanations:
        """Explain why results were found: the chain of links that led there, by the label of each retriever that has one.

        Args:
            query: the query text.
            results: results of :meth:`search` for this query.

        Returns:
            One mapping per result; empty if no retriever has an explanation.

        Raises:
            QueryError: the query is not a string, or a result is not a result of this index.
            IndexMissingError: no index was opened.
        """
        (nlq,) = check_queries(query)
        opened = self.open_retrievers()
        opened.generation.item_files.check()
        rows = opened.generation.items.rows_of([result.item.item_id for result in check_results(results)])
        subqueries = [nlq]
        if self.processor is not None:
            (subqueries,) = check_processed(self.processor.process([nlq]), 1)
        explanations = Explanations({} for _ in results)
        for label, retriever in opened.retrievers.items():
            retriever.check_opened()
            for subquery in subqueries:
                if has_no_words(subquery):
                    continue
                for by_label, explanation in zip(
                    explanations, retriever.explain(subquery, rows, opened.generation.items), strict=True
                ):
                    if explanation and (label not in by_label or explanation.strength > by_label[label].strength):
                        by_label[label] = explanation
        return explanations

    def depth_for(self, k: int) -> int | Literal["all"]:
        """Return how many candidates are fetched from each retriever for lists of this length."""
        is_single = len(self.retrievers) == 1 and self.reranker is None and self.scope == "pooled"
        return self.depth or (k if is_single else max(k, _POOL_DEPTH))

    def _ranked(
        self,
        context: SearchContext,
        opened: OpenedRetrievers,
        nlqs: list[str],
        processed: list[list[str]],
        k: int,
        allowed: Mask | None,
    ) -> CandidateBatch:
        """Retrieve, fuse and rerank: one list per entry of ``processed``, reranked against its original query."""
        stages = current_stages(context)
        wanted = self.depth_for(k)
        depth = max(len(opened.generation.items), 1) if wanted == "all" else wanted
        batches: dict[str, CandidateBatch] = {}
        for label, retriever in opened.retrievers.items():
            with context.stage(label):
                batches[label] = stages.candidates(retriever, processed, depth, opened.generation, label, allowed)
        batch = next(iter(batches.values()))
        if self._fuses:
            with context.stage("fuse"):
                batch = self.fusion.fuse(batches)
                if self.reranker is None and self.scope == "pooled":
                    batch = batch.head(k)
        if self.reranker is not None and len(batch.rows):
            with context.stage(self.reranker.name):
                batch = stages.reranked(self.reranker, nlqs, batch, opened.generation)
        return batch


def _labelled(retrievers: Sequence[BaseRetriever] | Mapping[str, BaseRetriever]) -> dict[str, BaseRetriever]:
    if isinstance(retrievers, Mapping) and (reserved := {"process", "fuse", "fusion", "items"} & set(retrievers)):
        raise ConfigurationError(f"Searcher: {min(reserved)!r} is a stage's name; choose another label")
    return labelled(retrievers, "Searcher: retrievers")
