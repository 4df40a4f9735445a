"""A program with a mistake in each line that ends with ``# wrong``."""

from __future__ import annotations

import nlp_retrieval
from nlp_retrieval import Bm25Retriever, SearchableItem, Searcher
from nlp_retrieval.core import BaseUserQueryProcessor

retriever = nlp_retrieval.NoSuchRetriever()  # wrong
searcher = Searcher([Bm25Retriever()])
Bm25Retriever(k1="high")  # wrong
Searcher([Bm25Retriever()], depht=100)  # wrong
Searcher([Bm25Retriever()], scope="per_query")  # wrong
searcher.search("ferry", k="five")  # wrong
text = searcher.search("ferry")[0][0].text  # wrong
number: int = searcher.search("ferry")[0][0].item.item_id  # wrong
SearchableItem(content="an item without an id")  # wrong


class Shout(BaseUserQueryProcessor):
    """Gives one text for each query, and not a list of sub-queries."""

    def process(self, nlqs: list[str]) -> list[str]:  # wrong
        return [nlq.upper() for nlq in nlqs]
