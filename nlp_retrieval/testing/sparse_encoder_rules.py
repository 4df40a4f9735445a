"""The rules of sparse encoders: weights of terms for every text, the same wherever the text stands."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, cast

import numpy as np

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.sparse_base import BaseSparseEncoder, TermWeights, checked_terms
from nlp_retrieval.errors import ModelError
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.samples import ITEMS, QUERIES
from nlp_retrieval.testing.verdict import broken, in_threads, without_warnings


class SparseEncoderRules(ComponentRules):
    """Rules of what turns a text into weights of terms."""

    component: ClassVar[type[BaseSparseEncoder]]

    def make(self) -> BaseSparseEncoder:
        return self.component()

    @property
    def encoder(self) -> BaseSparseEncoder:
        """One encoder for all tests of the class."""
        if "encoder" not in self.kept:
            self.kept["encoder"] = self.make()
        return cast(BaseSparseEncoder, self.kept["encoder"])

    @property
    def texts(self) -> list[str]:
        """What is encoded: the kit's passages and queries, an empty text among them."""
        return [*(item.text for item in ITEMS), *QUERIES]

    def encoded(self, texts: list[str]) -> dict[str, TermWeights]:
        """The weights of texts, as passages and as queries."""
        with without_warnings():
            return {
                "encode_passages": self.encoder.encode_passages(texts),
                "encode_queries": self.encoder.encode_queries(texts),
            }

    def dense(self, texts: list[str]) -> dict[str, Vectors]:
        """The same as ``[texts, terms]``, so that a weight of nearly 0 is near to none."""
        matrices = {}
        for how, (offsets, terms, weights) in self.encoded(texts).items():
            matrices[how] = np.zeros((len(texts), self.encoder.dimension), np.float32)
            matrices[how][np.repeat(np.arange(len(texts)), np.diff(offsets)), terms] = weights
        return matrices

    @property
    def whole(self) -> dict[str, Vectors]:
        """All texts encoded in one batch, once for the class."""
        if "whole" not in self.kept:
            self.kept["whole"] = self.dense(self.texts)
        return cast(dict[str, Vectors], self.kept["whole"])

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

    def test_the_same_call_twice_gives_the_same_weights(self) -> None:
        again = self.whole
        for how, matrix in self.dense(self.texts).items():
            if not np.array_equal(matrix, again[how]):
                broken("the same call twice gives the same weights", self.encoder, how)

    def test_weights_do_not_depend_on_the_rest_of_the_batch(self) -> None:
        together, turned = self.whole, self.dense(self.texts[::-1])
        for row, text in enumerate(self.texts):
            for how, alone in self.dense([text]).items():
                for others in (together[how][row], turned[how][len(self.texts) - 1 - row]):
                    apart = float(np.abs(alone[0] - others).max())
                    if not apart <= self.tolerance:
                        broken(
                            "a text gets the same weights alone and within a batch",
                            self.encoder,
                            f"{how} of {text[:80]!r}: up to {apart:g} apart (tolerance {self.tolerance:g})",
                        )

    def test_the_fingerprint_tells_the_model(self) -> None:
        _ = self.whole  # what was named before a model was opened is what was opened
        prints = {encoder.model_fingerprint() for encoder in (self.make(), self.encoder)}
        if len(prints) != 1 or not all(isinstance(one, str) and one for one in prints):
            broken("model_fingerprint is a text, the same for the same model, open or not", self.encoder, f"{sorted(prints)}")
        if prints.pop() not in str(self.encoder.identity):
            broken("the identity of an index holds the fingerprint of the model", self.encoder, f"{self.encoder.identity}")

    def test_long_passages_are_counted(self) -> None:
        texts = [item.text for item in ITEMS]
        n_cut = self.encoder.cut_passages(texts)
        if not 0 <= n_cut <= len(texts) or self.encoder.cut_passages(["glacier"]) != 0:
            broken(
                "cut_passages counts the passages that are longer than what is read", self.encoder, f"{n_cut} of {len(texts)}"
            )

    def test_threads_get_the_weights_of_one(self) -> None:
        parts = [self.texts[:4], self.texts[-4:], *([text] for text in self.texts[:2])]
        calls = [partial(self.dense, part) for part in parts]
        wanted = [call() for call in calls]
        for number, found in in_threads(calls):
            for how, matrix in found.items():
                if not np.allclose(matrix, wanted[number][how], rtol=0, atol=self.tolerance):
                    broken("an encoder is safe in several threads at once", self.encoder, how)
