"""Encoders that are sound but for one thing each; the kit has to find it."""

from __future__ import annotations

import itertools

import numpy as np
from hashed_tokens import HashedTokens
from hashed_words import HashedWords
from sparse_models import HashedTerms

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


@breaks(EncoderRules, "test_the_fingerprint_tells_the_model")
class OtherFingerprint(HashedWords):
    def model_fingerprint(self):
        return f"model {next(_counter)}"


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
