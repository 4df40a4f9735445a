"""In Haystack a searcher is a component of a pipeline, and Haystack's documents become items."""

from __future__ import annotations

import pytest
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.agents import recording
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


def test_a_pipeline_joins_two_of_them(searcher: Searcher) -> None:
    pipeline = Pipeline()
    pipeline.add_component("norway", HaystackRetriever(searcher, where={"country": "Norway"}))
    pipeline.add_component("japan", HaystackRetriever(searcher, where={"country": "Japan"}))
    pipeline.add_component("join", DocumentJoiner())
    pipeline.connect("norway.documents", "join.documents")
    pipeline.connect("japan.documents", "join.documents")
    found = pipeline.run({"norway": {"query": QUERY}, "japan": {"query": QUERY, "top_k": 1}})["join"]["documents"]
    japan = searcher.search(QUERY, 1, where={"country": "Japan"})[0][0].item.item_id
    assert {document.id for document in found} == {"oslo", "bergen", japan}


def test_documents_become_the_items_that_they_were_made_of(items: list[SearchableItem]) -> None:
    documents = [Document(id=item.item_id, content=item.content, meta=item.metadata) for item in items]
    assert list(to_items(documents)) == items


def test_a_document_that_is_no_item_is_named() -> None:
    with pytest.raises(SourceError, match="document 1: 'a' has no content"):
        list(to_items([Document(id="a")]))


def test_a_pipeline_is_recorded_by_one_line(searcher: Searcher) -> None:
    pipeline = Pipeline()
    pipeline.add_component("search", HaystackRetriever(searcher))
    with recording() as session:
        pipeline.run({"search": {"query": QUERY}})
    assert [step.query for step in session.steps] == [QUERY]
