"""The rules of encoders: a text is encoded in the same way whatever the texts around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from nlp_retrieval.encoders.base import (
    BaseEncoder,
    BaseSparseEncoder,
    BaseTokenEncoder,
    TermWeights,
    Vectors,
    checked_terms,
    checked_tokens,
)
from nlp_retrieval.errors import ModelError
from nlp_retrieval.testing.component_rules import BatchRules
from nlp_retrieval.testing.verdict import ITEMS, QUERIES, broken, without_warnings

Encoder = TypeVar("Encoder", bound=BaseEncoder | BaseTokenEncoder | BaseSparseEncoder)

_HOW = ("encode_passages", "encode_queries")
_UNLIKE = 1e-3


class AnyEncoderRules(BatchRules[Encoder]):
    """Rules of components that turn a text into numbers; a subclass says how these become arrays."""

    counts_cut: ClassVar[tuple[str, ...]] = ("cut_passages",)
    """The methods that count the texts longer than the encoder's limit."""

    @property
    def batch(self) -> list[str]:
        """Return the texts to encode: the kit's passages and queries, including an empty text."""
        return [*(item.text for item in ITEMS), *QUERIES]

    def encoded(self, texts: list[str]) -> dict[str, Any]:
        """What the encoder returns for texts, as passages and as queries."""
        with without_warnings():
            return {how: getattr(self.shared, how)(texts) for how in _HOW}

    def arrays(self, texts: list[str], encoded: Any) -> Sequence[Vectors]:
        """Return an array for each text."""
        del texts
        return cast(Sequence[Vectors], encoded)

    def answers(self, batch: list[str]) -> list[tuple[Vectors, ...]]:
        return list(zip(*(self.arrays(batch, encoded) for encoded in self.encoded(batch).values()), strict=True))

    def apart(self, first: tuple[Vectors, ...], other: tuple[Vectors, ...], tolerance: float) -> str | None:
        for how, left, right in zip(_HOW, first, other, strict=True):
            if left.shape != right.shape:
                return f"{how}: {left.shape} and {right.shape}"
            deviation = float(np.abs(left - right).max(initial=0.0))
            if not deviation <= tolerance:
                return f"{how}: up to {deviation:g} apart (tolerance {tolerance:g})"
        return None

    def test_the_fingerprint_tells_the_model(self) -> None:
        _ = self.whole  # the model named before opening must be the one opened
        prints = {encoder.model_fingerprint() for encoder in (self.make(), self.shared)}
        is_one = len(prints) == 1 and all(isinstance(first, str) and first for first in prints)
        self.require(is_one, "model_fingerprint is a text, the same for the same model, open or not", sorted(prints))
        identity = str(self.shared.identity)
        self.require(prints.pop() in identity, "the identity of an index holds the fingerprint of the model", identity)

    def test_long_texts_are_counted(self) -> None:
        texts = [item.text for item in ITEMS]
        for how in self.counts_cut:
            count = getattr(self.shared, how)
            n_cut, holds = count(texts), count(["glacier"]) == 0
            rule = f"{how} counts the texts that are longer than what is read"
            self.require(0 <= n_cut <= len(texts) and holds, rule, f"{n_cut} of {len(texts)}")


class EncoderRules(AnyEncoderRules[BaseEncoder]):
    """Rules of components that turn a text into one vector."""

    def test_every_text_gets_one_finite_vector(self) -> None:
        shapes = set()
        for n in (0, 1, 2, len(self.batch)):
            for how, vectors in self.encoded(self.batch[:n]).items():
                is_array = isinstance(vectors, np.ndarray) and len(vectors) == n and (n == 0 or vectors.ndim == 2)
                seen = f"{vectors.dtype} {vectors.shape}" if isinstance(vectors, np.ndarray) else type(vectors).__name__
                rule = "an encoder returns float32 [texts, dimension]"
                self.require(is_array and (n == 0 or vectors.dtype == np.float32), rule, f"{how} of {n} texts: {seen}")
                self.require(np.isfinite(vectors).all(), "vectors are finite", f"{how} of {n} texts")
                shapes |= {vectors.shape[1]} if n else set()
        self.require(len(shapes) == 1, "queries and passages have vectors of one dimension", sorted(shapes))

    def test_different_texts_have_different_vectors(self) -> None:
        texts = ["glacier", "harpsichord", "東京 🦊", "Łódź"]
        for how, vectors in self.encoded(texts).items():
            for first, one in enumerate(texts):
                for other in range(first):
                    is_unlike = np.abs(vectors[first] - vectors[other]).max() >= _UNLIKE
                    rule = "texts that have nothing in common have different vectors, in any script"
                    self.require(is_unlike, rule, f"{how}: {one!r} and {texts[other]!r} have one vector")


class SparseEncoderRules(AnyEncoderRules[BaseSparseEncoder]):
    """Rules of components that turn a text into weights of terms."""

    def arrays(self, texts: list[str], encoded: TermWeights) -> Sequence[Vectors]:
        """Return a weight for every term, so that a weight of nearly 0 is close to a missing one."""
        offsets, terms, weights = encoded
        matrix = np.zeros((len(texts), self.shared.dimension), np.float32)
        matrix[np.repeat(np.arange(len(texts)), np.diff(offsets)), terms] = weights
        return list(matrix)

    def test_every_text_gets_terms_in_order_with_weights_above_0(self) -> None:
        for n in (0, 1, len(self.batch)):
            for how, weights in self.encoded(self.batch[:n]).items():
                try:
                    checked_terms(weights, self.batch[:n], self.shared)
                except ModelError as error:
                    broken("a sparse encoder returns ascending terms with weights above 0", self.shared, f"{how}: {error}")

    def test_a_text_of_words_has_terms_and_a_blank_one_has_none(self) -> None:
        texts = [*QUERIES, "", "  \n"]
        for how, weights in self.encoded(texts).items():
            for text, count in zip(texts, np.diff(weights.offsets).tolist(), strict=True):
                holds = bool(count) == bool(text.strip())
                self.require(holds, "a text with a word has a term, a blank one none", f"{how}: {count} for {text!r}")


class TokenEncoderRules(AnyEncoderRules[BaseTokenEncoder]):
    """Rules of components that turn a text into a matrix: a unit vector per token."""

    counts_cut = ("cut_passages", "cut_queries")

    def test_every_text_gets_a_matrix_of_unit_vectors(self) -> None:
        for n in (0, 1, len(self.batch)):
            for how, matrices in self.encoded(self.batch[:n]).items():
                try:
                    checked_tokens(matrices, self.batch[:n], self.shared)
                except ModelError as error:
                    broken("a token encoder returns [tokens, dimension] of length 1 per text", self.shared, f"{how}: {error}")

    def test_a_text_of_words_has_tokens(self) -> None:
        for how, matrices in self.encoded(list(QUERIES)).items():
            for query, matrix in zip(QUERIES, matrices, strict=True):
                self.require(len(matrix), "a text with a word in it has a token, in any script", f"{how}: none for {query!r}")
