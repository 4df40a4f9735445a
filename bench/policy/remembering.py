"""An encoder that encodes each text once, however many indexes keep its vector and however many runs ask it."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from nlp_retrieval import SentenceTransformerEncoder
from nlp_retrieval.encoders.base import Vectors


class RememberingEncoder(SentenceTransformerEncoder):
    """Remembers the vectors of a model: ``faiss`` and ``hop`` keep the same ones, and every grid asks the same questions."""

    name = "remembering"

    _remembered: ClassVar[dict[tuple[str, str, str], Vectors]] = {}

    def encode_queries(self, queries: list[str]) -> Vectors:
        return self._once("query", queries, super().encode_queries)

    def encode_passages(self, passages: list[str]) -> Vectors:
        return self._once("passage", passages, super().encode_passages)

    def _once(self, kind: str, texts: list[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
        keys = [(self.model, kind, text) for text in texts]
        new = [key for key in dict.fromkeys(keys) if key not in self._remembered]
        if new:
            self._remembered.update(zip(new, encode([text for _, _, text in new]), strict=True))
        return np.stack([self._remembered[key] for key in keys])
