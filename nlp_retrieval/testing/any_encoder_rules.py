"""The rules for encoders of every kind: a text is encoded in the same way whatever the texts around it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Generic, TypeVar, cast

import numpy as np

from nlp_retrieval.encoders.base import BaseEncoder, BaseSparseEncoder, BaseTokenEncoder, Vectors
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.samples import ITEMS, QUERIES
from nlp_retrieval.testing.verdict import broken, in_threads

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
        for how, again in self.arrays(self.texts).items():
            self._compare("the same call twice gives the same numbers", how, self.texts, first[how], again, 0.0)

    def test_a_text_becomes_the_same_alone_and_within_a_batch(self) -> None:
        together, turned = self.whole, self.arrays(self.texts[::-1])
        for row, text in enumerate(self.texts):
            for how, alone in self.arrays([text]).items():
                for other in (together[how][row], turned[how][len(self.texts) - 1 - row]):
                    rule = "a text becomes the same alone and within a batch"
                    self._compare(rule, how, [text], alone, [other], self.tolerance)

    def test_threads_get_the_numbers_of_one(self) -> None:
        parts = [self.texts[:4], self.texts[-4:], *([text] for text in self.texts[:2])]
        calls = [partial(self.arrays, part) for part in parts]
        wanted = [call() for call in calls]
        for number, found in in_threads(calls):
            for how, arrays in found.items():
                rule = "an encoder is safe in several threads at once"
                self._compare(rule, how, parts[number], wanted[number][how], arrays, self.tolerance)

    def test_the_fingerprint_tells_the_model(self) -> None:
        _ = self.whole  # the model named before opening must be the one opened
        prints = {encoder.model_fingerprint() for encoder in (self.make(), self.encoder)}
        if len(prints) != 1 or not all(isinstance(one, str) and one for one in prints):
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
        for text, one, other in zip(texts, some, others, strict=True):
            if one.shape != other.shape:
                broken(rule, self.encoder, f"{how} of {text[:80]!r}: {one.shape} and {other.shape}")
            apart = float(np.abs(one - other).max(initial=0.0))
            if not apart <= tolerance:
                broken(rule, self.encoder, f"{how} of {text[:80]!r}: up to {apart:g} apart (tolerance {tolerance:g})")
