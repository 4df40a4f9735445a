"""The searchers of a study over an index that names its own retrievers, where no configuration says how to search it."""

from __future__ import annotations

from pathlib import Path

from nlp_retrieval.core.components.registry import build_as, names
from nlp_retrieval.core.search.known_retrievers import retrievers_of
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.searcher import Searcher
from nlp_retrieval.errors import IndexMissingError

__all__ = ["searchers_of"]

HOP, SIGNALS = "hop", "multi_signal"


def searchers_of(index: str | Path, profile: str, *, trust: bool = False) -> tuple[Searcher, Searcher | None]:
    """Return a searcher over the retrievers of an index, and one over those that go along relations, if it has such.

    What the first finds is scored by all signals of the profile.

    Args:
        index: its directory.
        profile: the name of a profile, or its file.
        trust: let the index decide more than settings of a search.

    Raises:
        IndexMissingError: there is no index, or it has only retrievers that go along relations.
        UntrustedError: the index asks for more than it may decide.
    """
    found = retrievers_of(index, trust=trust)
    plain, along = [one for one in found if one.name != HOP], [one for one in found if one.name == HOP]
    if not plain:
        plain = [part for one in along for part in one.parts()]
    if not plain:
        raise IndexMissingError(f"{index} has no retriever that finds passages by themselves; index with --retriever faiss")
    reranker = build_as(BaseReranker, "rerankers", {"name": SIGNALS, "profile": profile}, "reranker") if SIGNALS in names("rerankers") else None
    return Searcher(plain, reranker=reranker), Searcher(along) if along else None
