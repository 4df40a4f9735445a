"""A searcher as a Haystack component, and Haystack's documents as items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nlp_retrieval.core.files.records import as_id, make_item
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import DependencyError, SourceError

try:
    from haystack import Document, component
except ImportError:
    raise DependencyError("a searcher in Haystack needs haystack-ai: pip install haystack-ai") from None


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
        """Search; ``top_k`` and ``where`` override the component's own. The ``signals`` are in the ``meta`` of documents."""
        k, where = self.top_k if top_k is None else top_k, self.where if where is None else where
        (results,) = self.searcher.search([query], k, where=where)
        documents = [
            Document(
                id=hit.item.item_id,
                content=hit.item.content,
                meta=hit.item.metadata | {"signals": hit.signals},
                score=hit.score,
            )
            for hit in results
        ]
        return {"documents": documents}


def to_items(documents: Iterable[Document]) -> Iterator[SearchableItem]:
    """Yield Haystack's text documents as items; a SourceError if one has no text, an empty id, or metadata that is not JSON."""
    for number, document in enumerate(documents, 1):
        label = f"document {number}"
        if document.content is None:
            raise SourceError(f"{label}: {document.id!r:.80} has no content; convert files to text first")
        yield make_item(label, as_id(label, "id", document.id), document.content, document.meta)
