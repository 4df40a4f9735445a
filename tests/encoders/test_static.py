"""Static embeddings: what model2vec computes from the same folder, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from static_models import save_static

from nlp_retrieval import StaticEncoder

TEXTS = [
    "The red fox jumps over the green tree",
    "A blue whale, a red whale and a red fox",
    "Köln liegt am Rhein; 東京 is in Japan",
    "the the the tree",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_static(tmp_path_factory.mktemp("static") / "words", TEXTS)


def test_vectors_are_those_of_model2vec(folder: Path) -> None:
    from model2vec import StaticModel

    texts = [*TEXTS, "fox fox Qwertz!", "a text " * 900]
    theirs = StaticModel.from_pretrained(folder, normalize=True, max_length=None).encode(texts)
    encoder = StaticEncoder(folder)
    for ours in (encoder.encode_passages(texts), encoder.encode_queries(texts)):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
