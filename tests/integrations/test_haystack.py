"""In Haystack a searcher is a component of a pipeline, and Haystack's documents become items."""

from __future__ import annotations

import pytest
from haystack import Document

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.errors import SourceError
from nlp_retrieval.integrations.haystack import HaystackRetriever, to_items

from .conftest import QUERY


def test_documents_are_the_results_of_a_search_with_scores(searcher: Searcher) -> None:
    found = HaystackRetriever(searcher).run(QUERY)["documents"]
    results = searcher.search(QUERY, 10)[0]
    assert len(found) == 4
    for document, result in zip(found, results, strict=True):
        assert (document.id, document.content, document.score) == (result.item.item_id, result.item.content, result.score)
        assert document.meta == result.item.metadata | {"signals": result.signals}


def test_k_and_filter_hold_for_all_runs_or_for_one(searcher: Searcher) -> None:
    retriever = HaystackRetriever(searcher, top_k=1, where={"country": "Japan"})
    assert [document.meta["country"] for document in retriever.run(QUERY)["documents"]] == ["Japan"]
    found = retriever.run(QUERY, top_k=5, where={"country": "Norway"})["documents"]
    assert {document.id for document in found} == {"oslo", "bergen"}


def test_documents_become_the_items_that_they_were_made_of(items: list[SearchableItem]) -> None:
    documents = [Document(id=item.item_id, content=item.content, meta=item.metadata) for item in items]
    assert list(to_items(documents)) == items


def test_a_document_that_is_no_item_is_named() -> None:
    with pytest.raises(SourceError, match="document 1: 'a' has no content"):
        list(to_items([Document(id="a")]))
