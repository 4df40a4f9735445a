"""Encoders that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools

import numpy as np
from hashed_tokens import HashedTokens
from hashed_words import HashedWords
from sparse_models import HashedTerms

from nlp_retrieval.core.candidates import offsets_of
from nlp_retrieval.encoders.base import TermWeights
from nlp_retrieval.testing import EncoderRules, SparseEncoderRules, TokenEncoderRules

from .breaking import breaks

_counter = itertools.count()


class _Vectors(HashedWords):
    """Changes what comes back.

    Args:
        dimension: of the vectors.
        seed: of the directions.
        api_key: used for nothing.
    """

    def encode_passages(self, passages):
        return self.change(super().encode_passages(passages), passages)


@breaks(EncoderRules, "test_every_text_gets_one_finite_vector", "float64")
class Doubles(_Vectors):
    def change(self, vectors, texts):
        return vectors.astype(np.float64)


@breaks(EncoderRules, "test_no_texts_give_no_vectors", "encode_passages([])")
class OneVectorAtLeast(_Vectors):
    def change(self, vectors, texts):
        return vectors if len(texts) else np.zeros((1, self.dimension), np.float32)


@breaks(EncoderRules, "test_different_texts_have_different_vectors", "東京")
class LatinAlone(_Vectors):
    def encode_passages(self, passages):
        return HashedWords.encode_passages(
            self, [text.encode("ascii", "ignore").decode().replace("d", "") for text in passages]
        )


@breaks(EncoderRules, "test_the_fingerprint_tells_the_model")
class OtherFingerprint(HashedWords):
    def model_fingerprint(self):
        return f"model {next(_counter)}"


@breaks(EncoderRules, "test_long_texts_are_counted", "-1")
class CountsWrongly(HashedWords):
    def cut_passages(self, passages):
        return -1


class _Matrices(HashedTokens):
    """Changes what comes back.

    Args:
        dimension: of the vectors.
        seed: of the directions.
        most: words that are read of a passage.
    """

    def encode_passages(self, passages):
        return [self.change(matrix, passages) for matrix in super().encode_passages(passages)]


@breaks(TokenEncoderRules, "test_every_text_gets_a_matrix_of_unit_vectors", "length 2")
class TwiceAsLong(_Matrices):
    def change(self, matrix, texts):
        return matrix * 2


@breaks(TokenEncoderRules, "test_a_text_of_words_has_tokens", "glacier")
class NoSingleTokens(_Matrices):
    def change(self, matrix, texts):
        return matrix if len(matrix) > 1 else matrix[:0]


@breaks(TokenEncoderRules, "test_the_fingerprint_tells_the_model")
class NoFingerprint(HashedTokens):
    def model_fingerprint(self):
        return ""


@breaks(TokenEncoderRules, "test_long_texts_are_counted", "-1")
class CountsTokensWrongly(HashedTokens):
    def cut_passages(self, passages):
        return -1


class _Weights(HashedTerms):
    """Changes what comes back.

    Args:
        dimension: how many terms there are.
        seed: of numbers and weights.
        most: words that are read of a passage.
    """

    def encode_passages(self, passages):
        return self.change(super().encode_passages(passages), passages)


@breaks(SparseEncoderRules, "test_every_text_gets_terms_in_order_with_weights_above_0", "encode_passages")
class WeightsBelowNothing(_Weights):
    def change(self, given, texts):
        return given._replace(weights=-given.weights)


@breaks(SparseEncoderRules, "test_a_text_of_words_has_terms_and_a_blank_one_has_none", "encode_passages")
class NoTermsAtAll(_Weights):
    def change(self, given, texts):
        return TermWeights(offsets_of([0] * len(texts)), given.terms[:0], given.weights[:0])


@breaks(SparseEncoderRules, "test_terms_have_names")
class NamelessTerms(HashedTerms):
    def term_names(self, terms):
        return [""] * len(terms)


@breaks(SparseEncoderRules, "test_the_fingerprint_tells_the_model")
class AnyFingerprint(HashedTerms):
    def model_fingerprint(self):
        return f"model {next(_counter)}"


@breaks(SparseEncoderRules, "test_long_texts_are_counted", "-1")
class CountsCutTermsWrongly(HashedTerms):
    def cut_passages(self, passages):
        return -1
