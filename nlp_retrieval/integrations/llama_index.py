"""A searcher as a LlamaIndex retriever, and LlamaIndex's nodes and documents as items."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from nlp_retrieval.core.files.records import as_id, make_item
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import RetrievalResult, SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import DependencyError

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
except ImportError:
    raise DependencyError("a searcher in LlamaIndex needs llama-index-core: pip install llama-index-core") from None

__all__ = ["LlamaIndexRetriever", "to_items", "to_nodes"]


class LlamaIndexRetriever(BaseRetriever):
    """Searches an opened index for a LlamaIndex query engine.

    Args:
        searcher: a searcher with an opened index.
        k: at most this many nodes.
        where: a filter for all calls; see :mod:`nlp_retrieval.core.filters`.
    """

    def __init__(self, searcher: BaseSearcher, k: int = 10, where: Where | None = None) -> None:
        super().__init__()
        self.searcher = searcher
        self.k = k
        self.where = where

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        (results,) = self.searcher.search([query_bundle.query_str], self.k, where=self.where)
        return to_nodes(results)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def to_nodes(results: Iterable[RetrievalResult]) -> list[NodeWithScore]:
    """Return results as LlamaIndex nodes; ``signals`` are in the metadata, but hidden from models.

    Args:
        results: the results of one query.
    """
    hidden = ["signals"]
    return [
        NodeWithScore(
            node=TextNode(
                id_=result.item.item_id,
                text=result.item.content,
                metadata=result.item.metadata | {"signals": result.signals},
                excluded_llm_metadata_keys=hidden,
                excluded_embed_metadata_keys=hidden,
            ),
            score=result.score,
        )
        for result in results
    ]


def to_items(nodes: Iterable[BaseNode]) -> Iterator[SearchableItem]:
    """Yield LlamaIndex's nodes or documents as items, one at a time.

    Args:
        nodes: text nodes.

    Raises:
        SourceError: a node has an empty id, or metadata that is not JSON.
    """
    for number, node in enumerate(nodes, 1):
        label = f"node {number}"
        yield make_item(label, as_id(label, "id_", node.node_id), node.get_content(MetadataMode.NONE), node.metadata)
