"""A searcher as a LlamaIndex retriever, and LlamaIndex's nodes and documents as items."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from nlp_retrieval.core.files.records import as_id, make_item
from nlp_retrieval.core.filters import Where
from nlp_retrieval.core.models import SearchableItem
from nlp_retrieval.core.search.base_searcher import BaseSearcher
from nlp_retrieval.errors import DependencyError

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
except ImportError:
    raise DependencyError("a searcher in LlamaIndex needs llama-index-core: pip install llama-index-core") from None


class LlamaIndexRetriever(BaseRetriever):
    """Searches an opened index for a LlamaIndex query engine; models do not see the ``signals`` in the metadata of nodes.

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
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.item.item_id,
                    text=hit.item.content,
                    metadata=hit.item.metadata | {"signals": hit.signals},
                    excluded_llm_metadata_keys=["signals"],
                    excluded_embed_metadata_keys=["signals"],
                ),
                score=hit.score,
            )
            for hit in results
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)  # LlamaIndex's own would block the event loop


def to_items(nodes: Iterable[BaseNode]) -> Iterator[SearchableItem]:
    """Yield LlamaIndex's nodes or documents as items; a SourceError if one has an empty id, or metadata that is not JSON."""
    for number, node in enumerate(nodes, 1):
        label = f"node {number}"
        yield make_item(label, as_id(label, "id_", node.node_id), node.get_content(MetadataMode.NONE), node.metadata)
