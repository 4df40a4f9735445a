"""A server of the rerank protocol on 127.0.0.1, whose answers a test decides."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from embedding_server import EmbeddingServer, Reply, embedding_server


def relevance(query: str, document: str) -> float:
    """Return the share of a query's words that a document has, and a little for its length."""
    words = query.lower().split()
    found = set(document.lower().split())
    return sum(word in found for word in words) / max(len(words), 1) - len(document) / 1e6


def reranked(body: dict[str, Any]) -> dict[str, Any]:
    """The answer of a sound server: the best first, the documents sent back, a token a word."""
    scores = [relevance(body["query"], document) for document in body["documents"]]
    results = [
        {"index": index, "relevance_score": score, "document": {"text": body["documents"][index]}}
        for index, score in sorted(enumerate(scores), key=lambda pair: -pair[1])
    ]
    return {"results": results[: body["top_n"]], "usage": {"total_tokens": sum(len(one.split()) for one in body["documents"])}}


def rerank_server(answer: Callable[[dict[str, Any]], Reply] = reranked) -> AbstractContextManager[EmbeddingServer]:
    """Serve until the block ends; paths are those of the requests' headers."""
    return embedding_server(answer)
