"""Traces of searches: the input and output of every stage, and whether it was computed for them."""

from __future__ import annotations

from dataclasses import dataclass, field

from nlp_retrieval.core.candidates import CandidateBatch, Scores
from nlp_retrieval.core.search.reranker import BaseReranker
from nlp_retrieval.core.search.retriever import BaseRetriever


@dataclass(frozen=True)
class Retrieved:
    """A retriever's part in a search: its input and output."""

    retriever: BaseRetriever
    processed: list[list[str]]
    depth: int
    batch: CandidateBatch


@dataclass(frozen=True)
class Reranked:
    """A reranker's part in a search: the candidates it received, and its columns for them."""

    reranker: BaseReranker
    batch: CandidateBatch
    columns: dict[str, Scores]


@dataclass
class SearchTrace:
    """Stages of the searches while they were recorded.

    Args:
        processed: the sub-queries, if there is a processor.
        retrieved: by label.
        reranked: None without a reranker.
        saved_seconds: additional time if each stage had been computed for these searches.
        peak_bytes: largest resident memory of the process while their stages were computed, now or before.
        computed: the stages that were computed now, at least in part, in order.
        reused: the stages that were completely available.
        beside: whether a stage was computed in parallel with others, so that its seconds are not those it takes alone.
    """

    processed: list[list[str]] | None = None
    retrieved: dict[str, Retrieved] = field(default_factory=dict)
    reranked: Reranked | None = None
    saved_seconds: float = 0.0
    peak_bytes: int = 0
    computed: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    beside: bool = False
