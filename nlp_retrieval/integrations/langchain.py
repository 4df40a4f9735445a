"""A searcher as a LangChain retriever, and LangChain's documents as items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nlp_retrieval.core.files.records import as_id, make_item
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import DependencyError

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError:
    raise DependencyError("a searcher in LangChain needs langchain-core: pip install langchain-core") from None


class LangChainRetriever(BaseRetriever):
    """Searches an opened index for a LangChain chain.

    ``invoke(query, k=..., where=...)`` overrides the settings for one call; ``ainvoke`` and ``batch`` search in threads. The
    ``score`` and the ``signals`` are in the metadata of documents.

    Args:
        searcher: a searcher with an opened index.
        k: at most this many documents.
        where: a filter for all calls; see :mod:`nlp_retrieval.core.filters`.
    """

    searcher: BaseSearcher
    k: int = 10
    where: dict[str, Any] | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None, where: Where | None = None
    ) -> list[Document]:
        del run_manager
        (results,) = self.searcher.search([query], self.k if k is None else k, where=self.where if where is None else where)
        return [
            Document(
                id=hit.item.item_id,
                page_content=hit.item.content,
                metadata=hit.item.metadata | {"score": hit.score, "signals": hit.signals},
            )
            for hit in results
        ]


def to_items(documents: Iterable[Document]) -> Iterator[SearchableItem]:
    """Yield documents as items; a SourceError if one has no id (text splitters set none), or metadata that is not JSON."""
    for number, document in enumerate(documents, 1):
        label = f"document {number}"
        yield make_item(label, as_id(label, "id", document.id), document.page_content, document.metadata)
