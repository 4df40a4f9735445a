"""The rules of encoders: one finite vector per text."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from nlp_retrieval.encoders.base import BaseEncoder, Vectors
from nlp_retrieval.testing.any_encoder_rules import AnyEncoderRules, Encoded
from nlp_retrieval.testing.verdict import broken

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
