"""In LlamaIndex a searcher is a retriever like any other, and its nodes and documents become items."""

from __future__ import annotations

import pytest
from llama_index.core import Document
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import MetadataMode

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.errors import SourceError
from nlp_retrieval.integrations.llama_index import LlamaIndexRetriever, to_items

from .conftest import QUERY


def test_nodes_are_the_results_of_a_search_with_scores(searcher: Searcher) -> None:
    retriever = LlamaIndexRetriever(searcher)
    assert isinstance(retriever, BaseRetriever)
    found = retriever.retrieve(QUERY)
    results = searcher.search(QUERY, 10)[0]
    assert len(found) == 4
    for node, result in zip(found, results, strict=True):
        assert (node.node_id, node.text, node.score) == (result.item.item_id, result.item.content, result.score)
        assert node.metadata == result.item.metadata | {"signals": result.signals}


def test_a_query_engine_shows_a_model_text_and_metadata_and_no_signals(searcher: Searcher) -> None:
    engine = RetrieverQueryEngine(
        LlamaIndexRetriever(searcher, k=1), get_response_synthesizer(llm=MockLLM(), response_mode="compact")
    )
    answer = engine.query("temples")
    assert [node.node_id for node in answer.source_nodes] == ["kyoto"]
    assert "A city of temples" in str(answer)
    assert "title: Kyoto" in str(answer)
    assert "signals" not in str(answer)
    assert "signals" not in answer.source_nodes[0].node.get_content(MetadataMode.EMBED)


def test_documents_and_nodes_become_items(items: list[SearchableItem], searcher: Searcher) -> None:
    documents = [Document(id_=item.item_id, text=item.content, metadata=item.metadata) for item in items]
    assert list(to_items(documents)) == items
    (node,) = LlamaIndexRetriever(searcher, k=1).retrieve("temples")
    (item,) = to_items([node.node])
    assert (item.item_id, item.content, item.title) == ("kyoto", "A city of temples and gardens.", "Kyoto")


def test_a_document_that_is_no_item_is_named() -> None:
    with pytest.raises(SourceError, match='node 1: "id_" is empty'):
        list(to_items([Document(id_=" ", text="x")]))
