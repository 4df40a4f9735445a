"""The expensive steps of a search, which a caller can replace.

The current stages open the retrievers of a searcher, process its queries, find candidates and score pairs, and encode the
queries of a dense retriever. By default they just compute. A caller that searches with many configurations uses
stages with a cache (:mod:`nlp_retrieval.benchmarks.shared_stages`). Cheap steps (fusing, interleaving, cutting, creating
items) are not stages and are always done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from nlp_retrieval.core.context import SearchContext, changed_context, search_context
from nlp_retrieval.core.processes import use_one_thread_after_fork
from nlp_retrieval.core.queries import check_processed

if TYPE_CHECKING:
    from nlp_retrieval.core.candidates import CandidateBatch, Mask
    from nlp_retrieval.core.components.component import BaseUserQueryProcessor, Component
    from nlp_retrieval.core.index.generation import Generation
    from nlp_retrieval.core.search.reranker import BaseReranker
    from nlp_retrieval.core.search.retriever import BaseRetriever

Encode = Callable[[list[str]], NDArray[Any]]


class Stages:
    """Runs each step on request."""

    def opened(self, retriever: BaseRetriever, generation: Generation) -> BaseRetriever:
        """Return a copy of a retriever that searches this generation."""
        return retriever.open(generation)

    def subqueries(self, processor: BaseUserQueryProcessor, nlqs: list[str]) -> list[list[str]]:
        """Return the sub-queries of each query."""
        use_one_thread_after_fork()
        return check_processed(processor.process(nlqs), len(nlqs))

    def candidates(
        self,
        retriever: BaseRetriever,
        processed: list[list[str]],
        depth: int,
        generation: Generation,
        label: str,
        allowed: Mask | None = None,
    ) -> CandidateBatch:
        """Return the hits of a retriever."""
        return retriever.candidates(processed, depth, len(generation.items), label, allowed)

    def encoded(self, encoder: Component, queries: list[str], encode: Encode) -> NDArray[Any]:
        """Return a vector per query, reused if this search has already encoded the same queries with this encoder."""
        known = search_context().encoded
        if known is None:
            return encode(queries)
        for other, texts, vectors in known:
            if other is encoder and texts == queries:
                return vectors
        vectors = encode(queries)
        known.append((encoder, list(queries), vectors))
        return vectors

    def reranked(
        self, reranker: BaseReranker, nlqs: Sequence[str], batch: CandidateBatch, generation: Generation, label: str
    ) -> CandidateBatch:
        """Return candidates in a reranker's order."""
        return reranker.rerank_rows(nlqs, batch, generation.items, label)


_COMPUTED = Stages()


def current_stages(context: SearchContext | None = None) -> Stages:
    """Return the stages of a context; by default those of this thread."""
    stages = (context or search_context()).stages
    return stages if isinstance(stages, Stages) else _COMPUTED


@contextmanager
def using_stages(stages: Stages) -> Iterator[None]:
    """Make every search inside the block use these stages."""
    with changed_context(stages=stages):
        yield
