"""The retrievers that :mod:`damage.trials` searches with, where the files of hops are damaged."""

from __future__ import annotations

from typing import Literal

from nlp_retrieval import Bm25Retriever
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever


def retrievers(backend: Literal["auto", "numba", "numpy"] = "numpy") -> dict[str, BaseRetriever]:
    """Return hops, and what they start from; the collection has editions by its metadata."""
    lexical = Bm25Retriever(backend=backend)
    hops = HopRetriever(lexical, subject="old")
    return {"bm25": lexical, "hop": hops}
