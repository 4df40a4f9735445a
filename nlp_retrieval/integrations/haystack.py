"""A searcher as a Haystack component, and Haystack's documents as items."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from nlp_retrieval.core.files.records import as_id, make_item
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import DependencyError, SourceError

try:
    from haystack import Document, component
except ImportError:
    raise DependencyError("a searcher in Haystack needs haystack-ai: pip install haystack-ai") from None

__all__ = ["HaystackRetriever", "to_documents", "to_items"]


@component
class HaystackRetriever:
    """Searches an opened index in a Haystack pipeline.

    Args:
        searcher: a searcher with an opened index.
        top_k: at most this many documents.
        where: a filter for all runs; see :mod:`nlp_retrieval.core.filters`.
    """

    def __init__(self, searcher: BaseSearcher, top_k: int = 10, where: dict[str, Any] | None = None) -> None:
        self.searcher = searcher
        self.top_k = top_k
        self.where = where

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None, where: dict[str, Any] | None = None) -> dict[str, list[Document]]:
        """Search.

        Args:
            query: the query text.
            top_k: overrides the component's own.
            where: overrides the component's own.
        """
        (results,) = self.searcher.search(
            [query], self.top_k if top_k is None else top_k, where=self.where if where is None else where
        )
        return {"documents": to_documents(results)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, top_k: int | None = None, where: dict[str, Any] | None = None
    ) -> dict[str, list[Document]]:
        """Search in a thread, as :meth:`run` does.

        Args:
            query: the query text.
            top_k: overrides the component's own.
            where: overrides the component's own.
        """
        documents: dict[str, list[Document]] = await asyncio.to_thread(self.run, query, top_k, where)
        return documents


def to_documents(results: Iterable[RetrievalResult]) -> list[Document]:
    """Return results as Haystack documents, with the ``signals`` in their ``meta``.

    Args:
        results: the results of one query.
    """
    return [
        Document(
            id=result.item.item_id,
            content=result.item.content,
            meta=result.item.metadata | {"signals": result.signals},
            score=result.score,
        )
        for result in results
    ]


def to_items(documents: Iterable[Document]) -> Iterator[SearchableItem]:
    """Yield Haystack's documents as items, one at a time.

    Args:
        documents: text documents.

    Raises:
        SourceError: a document has no text, an empty id, or metadata that is not JSON.
    """
    for number, document in enumerate(documents, 1):
        label = f"document {number}"
        if document.content is None:
            raise SourceError(f"{label}: {document.id!r:.80} has no content; convert files to text first")
        yield make_item(label, as_id(label, "id", document.id), document.content, document.meta)
