"""The retrievers that :mod:`damage.trials` searches with, where the files of hops are damaged."""

from __future__ import annotations

from typing import Literal

from hashed_words import HashedWords

from nlp_retrieval import Bm25Retriever
from nlp_retrieval.core import BaseRetriever
from nlp_retrieval.systems.policy.hop.retriever import HopRetriever


def retrievers(backend: Literal["auto", "numba", "numpy"] = "numpy") -> dict[str, BaseRetriever]:
    """Return hops with settings that read all of their files, and what they start from."""
    lexical = Bm25Retriever(backend=backend)
    hops = HopRetriever(lexical, encoder=HashedWords(16), document="old", position="year", centrality_weight=0.1)
    return {"bm25": lexical, "hop": hops}
