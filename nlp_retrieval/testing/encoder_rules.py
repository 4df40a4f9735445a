"""The rules of encoders: one finite vector per text, the same wherever the text stands."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, cast

import numpy as np

from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.testing.component_rules import ComponentRules
from nlp_retrieval.testing.samples import ITEMS, QUERIES
from nlp_retrieval.testing.verdict import broken, in_threads

_UNLIKE = 1e-3


class EncoderRules(ComponentRules):
    """Rules of what turns a text into one vector."""

    component: ClassVar[type[BaseEncoder]]

    def make(self) -> BaseEncoder:
        return self.component()

    @property
    def encoder(self) -> BaseEncoder:
        """One encoder for all tests of the class."""
        if "encoder" not in self.kept:
            self.kept["encoder"] = self.make()
        return cast(BaseEncoder, self.kept["encoder"])

    @property
    def texts(self) -> list[str]:
        """What is encoded: the kit's passages and queries, an empty text among them."""
        return [*(item.text for item in ITEMS), *QUERIES]

    def encoded(self, texts: list[str]) -> dict[str, Vectors]:
        """The vectors of texts, as passages and as queries."""
        return {"encode_passages": self.encoder.encode_passages(texts), "encode_queries": self.encoder.encode_queries(texts)}

    @property
    def whole(self) -> dict[str, Vectors]:
        """All texts encoded in one batch, once for the class."""
        if "whole" not in self.kept:
            self.kept["whole"] = self.encoded(self.texts)
        return cast(dict[str, Vectors], self.kept["whole"])

    def test_every_text_gets_one_finite_vector(self) -> None:
        shapes = set()
        for n in (1, 2, len(self.texts)):
            for how, vectors in self.encoded(self.texts[:n]).items():
                if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.ndim != 2 or len(vectors) != n:
                    told = f"{vectors.dtype} {vectors.shape}" if isinstance(vectors, np.ndarray) else type(vectors).__name__
                    broken("an encoder returns float32 [texts, dimension]", self.encoder, f"{how} of {n} texts: {told}")
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

    def test_the_same_call_twice_gives_the_same_vectors(self) -> None:
        again = self.whole
        for how, vectors in self.encoded(self.texts).items():
            if not np.array_equal(vectors, again[how]):
                apart = float(np.abs(vectors - again[how]).max())
                broken("the same call twice gives the same vectors", self.encoder, f"{how}: up to {apart:g} apart")

    def test_a_vector_does_not_depend_on_the_rest_of_the_batch(self) -> None:
        together, turned = self.whole, self.encoded(self.texts[::-1])
        for row, text in enumerate(self.texts):
            for how, alone in self.encoded([text]).items():
                for others in (together[how][row], turned[how][len(self.texts) - 1 - row]):
                    apart = float(np.abs(alone[0] - others).max())
                    if not apart <= self.tolerance:
                        broken(
                            "a text gets the same vector alone and within a batch",
                            self.encoder,
                            f"{how} of {text[:80]!r}: up to {apart:g} apart (tolerance {self.tolerance:g})",
                        )

    def test_different_texts_have_different_vectors(self) -> None:
        texts = ["glacier", "harpsichord", "東京 🦊", "Łódź"]
        for how, vectors in self.encoded(texts).items():
            for one in range(len(texts)):
                for other in range(one):
                    if np.abs(vectors[one] - vectors[other]).max() < _UNLIKE:
                        broken(
                            "texts that have nothing in common have different vectors, in any script",
                            self.encoder,
                            f"{how}: {texts[one]!r} and {texts[other]!r} have one vector",
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

    def test_threads_get_the_vectors_of_one(self) -> None:
        parts = [self.texts[:4], self.texts[-4:], *([text] for text in self.texts[:2])]
        calls = [partial(self.encoded, part) for part in parts]
        wanted = [call() for call in calls]
        for number, found in in_threads(calls):
            for how, vectors in found.items():
                if not np.allclose(vectors, wanted[number][how], rtol=0, atol=self.tolerance):
                    apart = float(np.abs(vectors - wanted[number][how]).max())
                    broken("an encoder is safe in several threads at once", self.encoder, f"{how}: up to {apart:g} apart")
