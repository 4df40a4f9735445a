"""What the tests share that needs no model: a deterministic encoder, and corpora in memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from nlp_retrieval import SearchableItem
from nlp_retrieval.core import BaseLoader
from nlp_retrieval.encoders import BaseEncoder
from nlp_retrieval.encoders.base import Vectors


class HashedWords(BaseEncoder):
    """The mean of one random direction per word, scaled to length 1.

    Args:
        dimension: of the vectors.
        seed: of the directions.
        api_key: used for nothing; what holds a secret must not be written down.
    """

    name = "hashed-words"

    def __init__(self, dimension: int = 16, seed: int = 0, api_key: str | None = None) -> None:
        self.dimension = dimension
        self.seed = seed
        self.api_key = api_key

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self.encode_passages(queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        vectors = np.zeros((len(passages), self.dimension), np.float32)
        for row, text in enumerate(passages):
            for word in text.lower().split():
                vectors[row] += self._direction(word)
            vectors[row] /= max(length_of(vectors[row]), 1e-9)
        return vectors

    def model_fingerprint(self) -> str:
        return f"hashed words, {self.dimension} dimensions, seed {self.seed}"

    def _direction(self, word: str) -> Vectors:
        draw = np.random.default_rng([self.seed, zlib.crc32(word.encode())])
        return draw.standard_normal(self.dimension).astype(np.float32)


def length_of(vector: Vectors) -> float:
    """Of one vector; numpy's own norm is BLAS's, which rounds as the CPU has it."""
    return float(np.sqrt(np.square(vector).sum()))


class InMemory(BaseLoader):
    """Items that are there already; not made for configuration files."""

    name = "in-memory"

    def __init__(self, texts: Sequence[str], titles: Sequence[str] | None = None) -> None:
        self.texts = texts
        self.titles = titles

    def stream(self) -> Iterator[SearchableItem]:
        return iter(items_of(self.texts, self.titles))


def items_of(texts: Sequence[str], titles: Sequence[str] | None = None) -> list[SearchableItem]:
    """Items ``d0``, ``d1``, ...; row r is ``dr``."""
    return [
        SearchableItem(item_id=f"d{row}", content=text, metadata={"title": titles[row]} if titles else {})
        for row, text in enumerate(texts)
    ]


def rows_of(hits: Sequence[object]) -> list[int]:
    """The rows of results over :func:`items_of`."""
    return [int(hit.item.item_id[1:]) for hit in hits]  # type: ignore[attr-defined]
