"""A deterministic token encoder that needs no model."""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
from hashed_words import length_of

from nlp_retrieval.encoders.base import BaseTokenEncoder, Vectors

MOST = 100
"""Words that are read of a passage."""


class HashedTokens(BaseTokenEncoder):
    """One random direction per word, a little off it for the word before.

    Args:
        dimension: of the vectors.
        seed: of the directions.
    """

    name = "hashed-tokens"

    def __init__(self, dimension: int = 16, seed: int = 0) -> None:
        self._dimension = dimension
        self.seed = seed

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return [self._tokens(query.lower().split()) for query in queries]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [self._tokens(passage.lower().split()[:MOST]) for passage in passages]

    def cut_passages(self, passages: list[str]) -> int:
        return sum(len(passage.split()) > MOST for passage in passages)

    def model_fingerprint(self) -> str:
        return f"hashed tokens, {self._dimension} dimensions, seed {self.seed}"

    def _tokens(self, words: list[str]) -> Vectors:
        vectors = np.zeros((len(words), self._dimension), np.float32)
        for place, word in enumerate(words):
            vectors[place] = direction(word, self._dimension, self.seed)
            if place:
                vectors[place] += 0.4 * direction(words[place - 1], self._dimension, self.seed)
            vectors[place] /= length_of(vectors[place])
        return vectors


@lru_cache(maxsize=100_000)
def direction(word: str, dimension: int, seed: int) -> Vectors:
    draw = np.random.default_rng([seed, zlib.crc32(word.encode())])
    found = draw.standard_normal(dimension).astype(np.float32)
    vector: Vectors = found / length_of(found)
    return vector


def naive_maxsim(query: Vectors, passage: Vectors) -> float:
    """MaxSim as it is written in the paper, in float64."""
    if len(passage) == 0:
        return -np.inf
    return float((query.astype(np.float64) @ passage.astype(np.float64).T).max(axis=1).sum())
