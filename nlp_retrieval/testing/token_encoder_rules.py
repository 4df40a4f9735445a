"""The rules of token encoders: a matrix of unit vectors per text."""

from __future__ import annotations

from typing import ClassVar

from nlp_retrieval.encoders.base import BaseTokenEncoder, Vectors, checked_tokens
from nlp_retrieval.errors import ModelError
from nlp_retrieval.testing.any_encoder_rules import AnyEncoderRules
from nlp_retrieval.testing.samples import QUERIES
from nlp_retrieval.testing.verdict import broken, without_warnings


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
