"""Default searchers of a study without a configuration, from the retrievers of its index."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval import MultiSignalReranker, Searcher
from nlp_retrieval.core import BaseRetriever, retrievers_of
from nlp_retrieval.errors import IndexMissingError
from nlp_retrieval.rerankers import load_profile

__all__ = ["searchers_of"]

_HOP = "hop"
"""Registry name of the retriever that follows relations."""


def searchers_of(index: str | Path, profile: str, *, trust: bool = False) -> tuple[Searcher, Searcher | None]:
    """Return a searcher over the retrievers of an index, and one over those that follow relations, if any.

    Results of the first are scored by all signals of the profile; the study decides on the least score. Relations are followed
    as far as the profile says, else as far as the index says.

    Args:
        index: its directory.
        profile: the name of a profile, or its file.
        trust: whether the index may decide more than settings of a search.

    Raises:
        IndexMissingError: there is no index, or it has no retriever that finds passages by itself.
        UntrustedError: the index asks for more than it may decide.
    """
    found = retrievers_of(index, trust=trust)
    along = [_limited(one, profile) for one in found if one.name == _HOP]
    plain = [one for one in found if one.name != _HOP] or [part for one in along for part in one.parts()]
    if not plain:
        raise IndexMissingError(f"{index} has no retriever that finds passages by itself; index with --retriever faiss")
    reranker = MultiSignalReranker(profile, word_vectors_weight=0.0, min_similarity=0.0)
    return Searcher(plain, reranker=reranker), Searcher(along) if along else None


def _limited(hop: BaseRetriever, profile: str) -> BaseRetriever:
    """Return a retriever that follows relations as far as the profile says."""
    chosen = load_profile(profile)
    return type(hop)(**hop._arguments | {"max_hops": chosen.max_hops}) if "max_hops" in chosen.model_fields_set else hop
