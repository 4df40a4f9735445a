"""The rules of encoders: one finite vector per text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar, cast

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
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.verdict import ITEMS, QUERIES, broken, in_threads, without_warnings

# The rules for encoders of every kind: a text is encoded in the same way whatever the texts around it.


Encoder = TypeVar("Encoder", bound=BaseEncoder | BaseTokenEncoder | BaseSparseEncoder)

Encoded = Mapping[str, Sequence[Vectors]]
"""Encoded texts by the method that encoded them."""


class AnyEncoderRules(ComponentRules, Generic[Encoder]):
    """Rules of components that turn a text into numbers; a subclass defines how these are compared."""

    counts_cut: ClassVar[tuple[str, ...]] = ("cut_passages",)
    """The methods that count the texts longer than the encoder's limit."""

    def make(self) -> Encoder:
        return cast(Encoder, self.component())

    @property
    def encoder(self) -> Encoder:
        """One encoder for all tests of the class."""
        if "encoder" not in self.kept:
            self.kept["encoder"] = self.make()
        return cast(Encoder, self.kept["encoder"])

    @property
    def texts(self) -> list[str]:
        """Return the texts to encode: the kit's passages and queries, including an empty text."""
        return [*(item.text for item in ITEMS), *QUERIES]

    @abstractmethod
    def arrays(self, texts: list[str]) -> Encoded:
        """Return the encodings of each text, as a passage and as a query."""

    @property
    def whole(self) -> Encoded:
        """All texts encoded in one batch, once for the class."""
        if "whole" not in self.kept:
            self.kept["whole"] = self.arrays(self.texts)
        return cast(Encoded, self.kept["whole"])

    def test_the_same_call_twice_gives_the_same_numbers(self) -> None:
        first = self.whole
        for how, repeated in self.arrays(self.texts).items():
            self._compare("the same call twice gives the same numbers", how, self.texts, first[how], repeated, 0.0)

    def test_a_text_becomes_the_same_alone_and_within_a_batch(self) -> None:
        together, turned = self.whole, self.arrays(self.texts[::-1])
        for row, text in enumerate(self.texts):
            for how, alone in self.arrays([text]).items():
                for other in (together[how][row], turned[how][len(self.texts) - 1 - row]):
                    rule = "a text is encoded the same alone and within a batch"
                    self._compare(rule, how, [text], alone, [other], self.tolerance)

    def test_threads_get_the_numbers_of_one(self) -> None:
        parts = [self.texts[:4], self.texts[-4:], *([text] for text in self.texts[:2])]
        calls = [partial(self.arrays, part) for part in parts]
        wanted = [call() for call in calls]
        for number, actual in in_threads(calls):
            for how, arrays in actual.items():
                rule = "an encoder is safe in several threads at once"
                self._compare(rule, how, parts[number], wanted[number][how], arrays, self.tolerance)

    def test_the_fingerprint_tells_the_model(self) -> None:
        _ = self.whole  # the model named before opening must be the one opened
        prints = {encoder.model_fingerprint() for encoder in (self.make(), self.encoder)}
        if len(prints) != 1 or not all(isinstance(first, str) and first for first in prints):
            broken("model_fingerprint is a text, the same for the same model, open or not", self.encoder, f"{sorted(prints)}")
        if prints.pop() not in str(self.encoder.identity):
            broken("the identity of an index holds the fingerprint of the model", self.encoder, f"{self.encoder.identity}")

    def test_long_texts_are_counted(self) -> None:
        texts = [item.text for item in ITEMS]
        for how in self.counts_cut:
            count = getattr(self.encoder, how)
            n_cut = count(texts)
            if not 0 <= n_cut <= len(texts) or count(["glacier"]) != 0:
                broken(f"{how} counts the texts that are longer than what is read", self.encoder, f"{n_cut} of {len(texts)}")

    def _compare(
        self, rule: str, how: str, texts: list[str], some: Sequence[Vectors], others: Sequence[Vectors], tolerance: float
    ) -> None:
        for text, first, other in zip(texts, some, others, strict=True):
            if first.shape != other.shape:
                broken(rule, self.encoder, f"{how} of {text[:80]!r}: {first.shape} and {other.shape}")
            deviation = float(np.abs(first - other).max(initial=0.0))
            if not deviation <= tolerance:
                broken(rule, self.encoder, f"{how} of {text[:80]!r}: up to {deviation:g} apart (tolerance {tolerance:g})")


_UNLIKE = 1e-3


class EncoderRules(AnyEncoderRules[BaseEncoder]):
    """Rules of components that turn a text into one vector."""

    component: ClassVar[type[BaseEncoder]]

    def encoded(self, texts: list[str]) -> dict[str, Vectors]:
        """The vectors of texts, as passages and as queries."""
        return {"encode_passages": self.encoder.encode_passages(texts), "encode_queries": self.encoder.encode_queries(texts)}

    def arrays(self, texts: list[str]) -> Encoded:
        return {how: list(vectors) for how, vectors in self.encoded(texts).items()}

    def test_every_text_gets_one_finite_vector(self) -> None:
        shapes = set()
        for n in (1, 2, len(self.texts)):
            for how, vectors in self.encoded(self.texts[:n]).items():
                if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != n:
                    message = f"{vectors.dtype} {vectors.shape}" if isinstance(vectors, np.ndarray) else type(vectors).__name__
                    broken("an encoder returns float32 [texts, dimension]", self.encoder, f"{how} of {n} texts: {message}")
                if not np.isfinite(vectors).all():
                    row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
                    broken("vectors are finite", self.encoder, f"{how} of {self.texts[row][:80]!r}")
                shapes.add(vectors.shape[1])
        if len(shapes) != 1:
            broken("queries and passages have vectors of one dimension", self.encoder, f"{sorted(shapes)}")

    def test_no_texts_give_no_vectors(self) -> None:
        for how, vectors in self.encoded([]).items():
            if not isinstance(vectors, np.ndarray) or len(vectors) != 0:
                broken("an empty batch gives an empty array", self.encoder, f"{how}([]) gave {vectors!r}")

    def test_different_texts_have_different_vectors(self) -> None:
        texts = ["glacier", "harpsichord", "東京 🦊", "Łódź"]
        for how, vectors in self.encoded(texts).items():
            for first in range(len(texts)):
                for other in range(first):
                    if np.abs(vectors[first] - vectors[other]).max() < _UNLIKE:
                        broken(
                            "texts that have nothing in common have different vectors, in any script",
                            self.encoder,
                            f"{how}: {texts[first]!r} and {texts[other]!r} have one vector",
                        )


# The rules of sparse encoders: weights of terms for every text.


class SparseEncoderRules(AnyEncoderRules[BaseSparseEncoder]):
    """Rules of components that turn a text into weights of terms."""

    component: ClassVar[type[BaseSparseEncoder]]

    def encoded(self, texts: list[str]) -> dict[str, TermWeights]:
        """The weights of texts, as passages and as queries."""
        with without_warnings():
            return {
                "encode_passages": self.encoder.encode_passages(texts),
                "encode_queries": self.encoder.encode_queries(texts),
            }

    def arrays(self, texts: list[str]) -> dict[str, list[Vectors]]:
        """The same with a weight for every term, so that a weight of nearly 0 is close to a missing one."""
        matrices = {}
        for how, (offsets, terms, weights) in self.encoded(texts).items():
            matrix = np.zeros((len(texts), self.encoder.dimension), np.float32)
            matrix[np.repeat(np.arange(len(texts)), np.diff(offsets)), terms] = weights
            matrices[how] = list(matrix)
        return matrices

    def test_every_text_gets_terms_in_order_with_weights_above_0(self) -> None:
        for n in (0, 1, len(self.texts)):
            for how, weights in self.encoded(self.texts[:n]).items():
                try:
                    checked_terms(weights, self.texts[:n], self.encoder)
                except ModelError as error:
                    broken("a sparse encoder returns ascending terms with weights above 0", self.encoder, f"{how}: {error}")

    def test_a_text_of_words_has_terms_and_a_blank_one_has_none(self) -> None:
        texts = [*QUERIES, "", "  \n"]
        for how, weights in self.encoded(texts).items():
            for text, count in zip(texts, np.diff(weights.offsets).tolist(), strict=True):
                if bool(count) != bool(text.strip()):
                    broken("a text with a word has a term, a blank one none", self.encoder, f"{how}: {count} for {text!r}")

    def test_terms_have_names(self) -> None:
        terms = sorted(set(self.encoded(list(QUERIES))["encode_queries"].terms.tolist()))
        names = self.encoder.term_names(terms)
        if len(names) != len(terms) or not all(isinstance(name, str) and name for name in names):
            broken("every term has a name", self.encoder, f"{names} for {terms}")


# The rules of token encoders: a matrix of unit vectors per text.


class TokenEncoderRules(AnyEncoderRules[BaseTokenEncoder]):
    """Rules of components that turn a text into one vector per token."""

    component: ClassVar[type[BaseTokenEncoder]]

    counts_cut = ("cut_passages", "cut_queries")

    def arrays(self, texts: list[str]) -> dict[str, list[Vectors]]:
        """The matrices of texts, as passages and as queries."""
        with without_warnings():
            return {
                "encode_passages": self.encoder.encode_passages(texts),
                "encode_queries": self.encoder.encode_queries(texts),
            }

    def test_every_text_gets_a_matrix_of_unit_vectors(self) -> None:
        for n in (0, 1, len(self.texts)):
            for how, matrices in self.arrays(self.texts[:n]).items():
                try:
                    checked_tokens(matrices, self.texts[:n], self.encoder)
                except ModelError as error:
                    broken("a token encoder returns [tokens, dimension] of length 1 per text", self.encoder, f"{how}: {error}")

    def test_a_text_of_words_has_tokens(self) -> None:
        for how, matrices in self.arrays(list(QUERIES)).items():
            for query, matrix in zip(QUERIES, matrices, strict=True):
                if len(matrix) == 0:
                    broken("a text with a word in it has a token, in any script", self.encoder, f"{how}: none for {query!r}")
