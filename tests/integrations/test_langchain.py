"""In LangChain a searcher is a retriever like any other, and LangChain's documents become items."""

from __future__ import annotations

import asyncio
from datetime import date

import pytest
from langchain_core.documents import Document

from nlp_retrieval import SearchableItem, Searcher
from nlp_retrieval.agents import recording
from nlp_retrieval.errors import SourceError
from nlp_retrieval.integrations.langchain import LangChainRetriever, to_items

from .conftest import QUERY


def test_documents_are_the_results_of_a_search_with_scores_and_signals(searcher: Searcher) -> None:
    found = LangChainRetriever(searcher=searcher).invoke(QUERY)
    results = searcher.search(QUERY, 10)[0]
    assert len(found) == 4
    for document, result in zip(found, results, strict=True):
        assert (document.id, document.page_content) == (result.item.item_id, result.item.content)
        assert document.metadata == result.item.metadata | {"score": result.score, "signals": result.signals}


def test_documents_become_the_items_that_they_were_made_of(items: list[SearchableItem]) -> None:
    documents = [Document(id=item.item_id, page_content=item.content, metadata=item.metadata) for item in items]
    assert list(to_items(documents)) == items


def test_a_document_that_is_no_item_is_named(items: list[SearchableItem]) -> None:
    with pytest.raises(SourceError, match='document 2: "id" is null; an id is text'):
        list(to_items([Document(id="a", page_content="x"), Document(page_content="y")]))
    with pytest.raises(SourceError, match=r"document 1: item 'a': metadata\.when"):
        list(to_items([Document(id="a", page_content="x", metadata={"when": date(2026, 1, 1)})]))


def test_a_batch_in_threads_is_recorded_by_one_line(searcher: Searcher) -> None:
    retriever = LangChainRetriever(searcher=searcher, k=2)
    with recording() as session:
        retriever.batch([QUERY, "temples"])
        asyncio.run(retriever.ainvoke("rain"))
    assert sorted(step.query for step in session.steps) == [QUERY, "rain", "temples"]
