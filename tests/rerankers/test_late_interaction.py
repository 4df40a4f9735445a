"""MaxSim as one would count it token by token, and every text encoded once."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from nlp_retrieval import RetrievalResult, SearchableItem
from nlp_retrieval.core import BaseReranker
from nlp_retrieval.encoders.base import BaseTokenEncoder, Vectors
from nlp_retrieval.rerankers.late_interaction import LateInteractionReranker


class HashedTokens(BaseTokenEncoder):
    """A random direction of length 1 per word; remembers what it encoded.

    Args:
        scale: length of the vectors.
    """

    name = "hashed-tokens"

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self.queries: list[str] = []
        self.passages: list[str] = []

    @property
    def dimension(self) -> int:
        return 8

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        self.queries += queries
        return [self.vectors(query) for query in queries]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        self.passages += passages
        return [self.vectors(passage) for passage in passages]

    def model_fingerprint(self) -> str:
        return "hashed tokens"

    def vectors(self, text: str) -> Vectors:
        drawn = [np.random.default_rng(zlib.crc32(word.encode())).standard_normal(8) for word in text.lower().split()]
        return np.array([self.scale * one / np.linalg.norm(one) for one in drawn], np.float32).reshape(-1, 8)


def by_hand(query: str, text: str) -> float:
    tokens = HashedTokens()
    query_tokens, passage_tokens = tokens.vectors(query).tolist(), tokens.vectors(text).tolist()
    nearest = [max(sum(a * b for a, b in zip(q, p, strict=True)) for p in passage_tokens) for q in query_tokens]
    return sum(nearest) / len(nearest)


def results(texts: list[str]) -> list[RetrievalResult]:
    return [
        RetrievalResult(
            item=SearchableItem(item_id=f"d{row}", content=text), score=9.0 - row, signals={"bm25.score": 9.0 - row}
        )
        for row, text in enumerate(texts)
    ]


def scores_of(reranker: BaseReranker, query: str, texts: list[str]) -> dict[str, float]:
    return {hit.item.item_id: hit.score for hit in reranker.rerank([query], [results(texts)], len(texts))[0]}


TEXTS = ["red fox", "the red fox sleeps", "blue whale", "Köln 東京 🦊", "fox", "a tree that is blue and green " * 5]


def test_the_score_is_the_mean_over_query_tokens_of_the_nearest_passage_token() -> None:
    query = "the blue fox sleeps in 東京"
    found = scores_of(LateInteractionReranker(HashedTokens()), query, TEXTS)
    assert found == pytest.approx({f"d{row}": by_hand(query, text) for row, text in enumerate(TEXTS)}, abs=1e-6)


def test_each_query_and_each_passage_is_encoded_once_passages_of_like_length_together() -> None:
    encoder = HashedTokens()
    lists = [results(TEXTS), results(TEXTS[::-1]), results(TEXTS[:2])]
    LateInteractionReranker(encoder).rerank(["red", "red", "fox"], lists, 3)
    assert encoder.queries == ["red", "fox"]
    assert sorted(encoder.passages) == sorted(TEXTS)
    assert [len(text) for text in encoder.passages] == sorted(map(len, TEXTS), reverse=True)
