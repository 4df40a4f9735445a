"""The rules of sparse encoders: weights of terms for every text."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nlp_retrieval.encoders.base import BaseSparseEncoder, TermWeights, Vectors, checked_terms
from nlp_retrieval.errors import ModelError
from nlp_retrieval.testing.any_encoder_rules import AnyEncoderRules
from nlp_retrieval.testing.samples import QUERIES
from nlp_retrieval.testing.verdict import broken, without_warnings


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
