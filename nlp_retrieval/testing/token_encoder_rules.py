"""The rules of token encoders: a matrix of unit vectors per text, the same wherever the text stands."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, cast

import numpy as np

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.token_base import BaseTokenEncoder, checked_tokens
from nlp_retrieval.errors import ModelError
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.samples import ITEMS, QUERIES
from nlp_retrieval.testing.verdict import broken, in_threads, without_warnings


class TokenEncoderRules(ComponentRules):
    """Rules of what turns a text into one vector per token."""

    component: ClassVar[type[BaseTokenEncoder]]

    def make(self) -> BaseTokenEncoder:
        return self.component()

    @property
    def encoder(self) -> BaseTokenEncoder:
        """One encoder for all tests of the class."""
        if "encoder" not in self.kept:
            self.kept["encoder"] = self.make()
        return cast(BaseTokenEncoder, self.kept["encoder"])

    @property
    def texts(self) -> list[str]:
        """What is encoded: the kit's passages and queries, an empty text among them."""
        return [*(item.text for item in ITEMS), *QUERIES]

    def encoded(self, texts: list[str]) -> dict[str, list[Vectors]]:
        """The matrices of texts, as passages and as queries."""
        with without_warnings():
            return {
                "encode_passages": self.encoder.encode_passages(texts),
                "encode_queries": self.encoder.encode_queries(texts),
            }

    @property
    def whole(self) -> dict[str, list[Vectors]]:
        """All texts encoded in one batch, once for the class."""
        if "whole" not in self.kept:
            self.kept["whole"] = self.encoded(self.texts)
        return cast(dict[str, list[Vectors]], self.kept["whole"])

    def test_every_text_gets_a_matrix_of_unit_vectors(self) -> None:
        for n in (0, 1, len(self.texts)):
            for how, matrices in self.encoded(self.texts[:n]).items():
                try:
                    checked_tokens(matrices, self.texts[:n], self.encoder)
                except ModelError as error:
                    broken("a token encoder returns [tokens, dimension] of length 1 per text", self.encoder, f"{how}: {error}")

    def test_a_text_of_words_has_tokens(self) -> None:
        for how, matrices in self.encoded(list(QUERIES)).items():
            for query, matrix in zip(QUERIES, matrices, strict=True):
                if len(matrix) == 0:
                    broken("a text with a word in it has a token, in any script", self.encoder, f"{how}: none for {query!r}")

    def test_the_same_call_twice_gives_the_same_vectors(self) -> None:
        again = self.whole
        for how, matrices in self.encoded(self.texts).items():
            for text, one, other in zip(self.texts, matrices, again[how], strict=True):
                if not np.array_equal(one, other):
                    broken("the same call twice gives the same vectors", self.encoder, f"{how} of {text[:80]!r} differs")

    def test_vectors_do_not_depend_on_the_rest_of_the_batch(self) -> None:
        together = self.whole
        for row, text in enumerate(self.texts):
            for how, (alone,) in self.encoded([text]).items():
                within = together[how][row]
                if alone.shape != within.shape or (len(alone) and np.abs(alone - within).max() > self.tolerance):
                    broken(
                        "a text gets the same vectors alone and within a batch",
                        self.encoder,
                        f"{how} of {text[:80]!r}: {alone.shape} and {within.shape}, or further apart than {self.tolerance:g}",
                    )

    def test_the_fingerprint_tells_the_model(self) -> None:
        _ = self.whole  # what was named before a model was opened is what was opened
        prints = {encoder.model_fingerprint() for encoder in (self.make(), self.encoder)}
        if len(prints) != 1 or not all(isinstance(one, str) and one for one in prints):
            broken("model_fingerprint is a text, the same for the same model, open or not", self.encoder, f"{sorted(prints)}")
        if prints.pop() not in str(self.encoder.identity):
            broken("the identity of an index holds the fingerprint of the model", self.encoder, f"{self.encoder.identity}")

    def test_long_texts_are_counted(self) -> None:
        texts = [item.text for item in ITEMS]
        for how, count in (("cut_passages", self.encoder.cut_passages), ("cut_queries", self.encoder.cut_queries)):
            if not 0 <= count(texts) <= len(texts) or count(["glacier"]) != 0:
                broken(
                    f"{how} counts the texts that are longer than what is read", self.encoder, f"{count(texts)} of {len(texts)}"
                )

    def test_threads_get_the_vectors_of_one(self) -> None:
        parts = [self.texts[:4], self.texts[-4:], *([text] for text in self.texts[:2])]
        calls = [partial(self.encoded, part) for part in parts]
        wanted = [call() for call in calls]
        for number, found in in_threads(calls):
            for how, matrices in found.items():
                for text, one, other in zip(parts[number], wanted[number][how], matrices, strict=True):
                    if one.shape != other.shape or not np.allclose(one, other, rtol=0, atol=self.tolerance):
                        broken("an encoder is safe in several threads at once", self.encoder, f"{how} of {text[:80]!r} differs")
