"""The default lexical engine of this machine."""

from __future__ import annotations

from nlp_retrieval.core.search.retriever import BaseRetriever


def default_lexical_retriever() -> BaseRetriever:
    """Return Lucene's BM25 if pyserini and a recent enough Java are installed, else bm25."""
    from nlp_retrieval.retrievers.pyserini.jvm import available

    if available() is None:
        from nlp_retrieval.retrievers.pyserini.retriever import PyseriniRetriever

        return PyseriniRetriever()
    from nlp_retrieval.retrievers.bm25.retriever import Bm25Retriever

    return Bm25Retriever()
