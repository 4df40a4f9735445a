"""Figures of an index, and the content of ``index_metadata.json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict

from nlp_retrieval.core import STOP_WORDS
from nlp_retrieval.systems.evidence.index.store import EvidenceStore, SourceVersion
from nlp_retrieval.systems.evidence.index.urls import registrable_domain

_WORD = re.compile(r"\w+")


class IndexStatistics(TypedDict):
    """Figures of an index; what is ``indexed`` is searchable, all else counts replaced and waiting texts, too."""

    index_built: bool
    document_count: int
    indexed_count: int
    source_count: int
    passage_count: int
    indexed_passage_count: int
    unique_domains: int
    indexed_domains: int
    total_queries: int
    zero_result_queries: int
    avg_results_per_query: float
    average_relevance: float


def relevance_of(query: str, passage: str) -> float:
    """Return ten times the share of a query's words, without the most common ones, that its best passage has."""
    words = set(_WORD.findall(query.casefold()))
    asked = (words - STOP_WORDS) or words
    return 10 * len(asked & set(_WORD.findall(passage.casefold()))) / len(asked) if asked else 0.0


def metadata_of(store: EvidenceStore, held: Mapping[str, int], *, built: bool) -> dict[str, Any]:
    """Return the content of ``index_metadata.json``; a document is a text, however many URLs it has."""
    texts, asked = store.texts(), store.searches()
    shown = ("url", "title", "quality", "fetch_date", "passage_count")
    return {
        "index_built": built,
        "document_count": len(texts),
        "indexed_hashes": [text.key for text in texts.values() if is_held(text, held)],
        "sources": {text.key: {name: getattr(text, name) for name in shown} for text in texts.values()},
        "retrieval_stats": {
            "total_queries": int(asked["queries"]),
            "avg_results_per_query": _ratio(asked["results"], asked["queries"]),
        },
    }


def statistics_of(store: EvidenceStore, held: Mapping[str, int], *, built: bool) -> IndexStatistics:
    """Count what an index holds."""
    texts, versions, asked = store.texts(), store.all_versions(), store.searches()
    domains = {url: registrable_domain(url) for url in {version.canonical for version in versions}}
    indexed = {sha256: text for sha256, text in texts.items() if is_held(text, held)}
    return {
        "index_built": built,
        "document_count": len(texts),
        "indexed_count": len(indexed),
        "source_count": len(domains),
        "passage_count": sum(text.passage_count for text in texts.values()),
        "indexed_passage_count": sum(text.passage_count for text in indexed.values()),
        "unique_domains": len(set(domains.values())),
        "indexed_domains": len({domains[each.canonical] for each in versions if each.newest and each.sha256 in indexed}),
        "total_queries": int(asked["queries"]),
        "zero_result_queries": int(asked["without"]),
        "avg_results_per_query": _ratio(asked["results"], asked["queries"]),
        "average_relevance": min(10.0, _ratio(asked["relevance"], asked["queries"] - asked["without"])),
    }


def is_held(text: SourceVersion, held: Mapping[str, int]) -> bool:
    """Return whether the index holds all passages of a text that is to be searched."""
    return text.newest and held.get(text.sha256, 0) == text.passage_count


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole > 0 else 0.0
