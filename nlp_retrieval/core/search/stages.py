"""The costly steps of a search, and who runs them.

A searcher has its retrievers opened, its sub-queries and candidates made and its pairs scored by the stages that are in force,
and a dense retriever its query vectors. By default each is simply done. A caller who searches with many configurations puts
others in their place, which remember (:mod:`nlp_retrieval.benchmarks.stages.shared`). What is cheap (fusing, interleaving,
cutting, making items) is no stage and is always done anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from nlp_retrieval.core.forks import compute_alone
from nlp_retrieval.core.queries import check_processed

if TYPE_CHECKING:
    from nlp_retrieval.core.candidates import CandidateBatch, Mask
    from nlp_retrieval.core.components.component import Component
    from nlp_retrieval.core.components.interfaces import BaseUserQueryProcessor
    from nlp_retrieval.core.index.generation import Generation
    from nlp_retrieval.core.search.reranker import BaseReranker
    from nlp_retrieval.core.search.retriever import BaseRetriever

Encode = Callable[[list[str]], NDArray[Any]]


class Stages:
    """Runs each step when it is asked for."""

    def opened(self, retriever: BaseRetriever, generation: Generation) -> BaseRetriever:
        """Return a copy of a retriever that searches this generation."""
        return retriever.open(generation)

    def subqueries(self, processor: BaseUserQueryProcessor, nlqs: list[str]) -> list[list[str]]:
        """Return the sub-queries of each query."""
        compute_alone()
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
        """Return what a retriever finds.

        Args:
            retriever: opened on the generation.
            processed: per list, its sub-queries.
            depth: length of the lists.
            generation: the index that is searched.
            label: begins the names of the signals.
            allowed: ``[items]``, which may be found; None: all.
        """
        return retriever.candidates(processed, depth, len(generation.items), label, allowed)

    def encoded(self, encoder: Component, queries: list[str], encode: Encode) -> NDArray[Any]:
        """Return a vector per query.

        Args:
            encoder: whose vectors they are.
            queries: what to encode.
            encode: encodes queries, ``[queries, dimension]``.
        """
        del encoder
        return encode(queries)

    def reranked(
        self, reranker: BaseReranker, nlqs: Sequence[str], batch: CandidateBatch, generation: Generation
    ) -> CandidateBatch:
        """Return candidates in a reranker's order.

        Args:
            reranker: what scores them.
            nlqs: one per list of the batch.
            batch: the candidates, at least one.
            generation: the index that they are of.
        """
        return reranker.rerank_batch(nlqs, batch, generation.items.items(batch.rows))


_current: ContextVar[Stages] = ContextVar("nlp_retrieval_current_stages", default=Stages())  # noqa: B039 -- it holds nothing


def current_stages() -> Stages:
    """Return the stages that are in force in this thread and context."""
    return _current.get()


@contextmanager
def using_stages(stages: Stages) -> Iterator[None]:
    """Have every search inside the block run its costly steps by these stages."""
    token = _current.set(stages)
    try:
        yield
    finally:
        _current.reset(token)
