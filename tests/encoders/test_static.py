"""Static embeddings: what model2vec computes from the same folder, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hashed_words import items_of
from safetensors.numpy import load_file, save_file
from static_models import save_static

from nlp_retrieval import FaissRetriever, StaticEncoder
from nlp_retrieval.errors import ModelError

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


def test_a_table_that_is_none_is_refused(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    n_tokens = len(load_file(folder / "model.safetensors")["embeddings"])
    for table in (np.zeros(n_tokens, np.float32), np.full((n_tokens, 2), np.nan, np.float32)):
        save_file({"embeddings": table}, broken / "model.safetensors")
        with pytest.raises(ModelError):
            FaissRetriever(StaticEncoder(broken)).index(items_of(TEXTS), tmp_path / "index")
    (broken / "model.safetensors").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match=r"broken.*does not load as static embeddings"):
        StaticEncoder(broken).encode_queries(["fox"])
