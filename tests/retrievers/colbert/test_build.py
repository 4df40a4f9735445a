"""A ColBERT index is built in bounded memory, from one pass of the encoder, to the same bytes every time."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hashed_tokens import HashedTokens
from hashed_words import items_of
from token_passages import ENCODER, TEXTS

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever


@pytest.mark.parametrize(("bits", "most"), [(2, 36), (4, 68)])
def test_a_token_of_128_dimensions_takes_so_many_bytes(tmp_path: Path, bits: Literal[2, 4], most: int) -> None:
    retriever = ColbertRetriever(HashedTokens(128), bits=bits)
    retriever.index(items_of(TEXTS[:200]), tmp_path)
    (folder,) = tmp_path.glob("colbert-*")
    n_tokens = len(np.load(folder / "codes.npy"))
    assert n_tokens == sum(len(text.split()) for text in TEXTS[:200])
    stored = np.load(folder / "codes.npy").nbytes + np.load(folder / "residuals.npy").nbytes
    assert stored / n_tokens <= most
    assert np.load(folder / "list_rows.npy").nbytes / n_tokens <= 4
    assert not (folder / "tokens.npy").exists()


def test_more_centroids_than_tokens_is_an_error_that_says_how_many_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="centroids=99 cannot be trained on 4 tokens"):
        ColbertRetriever(ENCODER, centroids=99).index(items_of(["red fox", "blue whale"]), tmp_path)


class Spoilt(HashedTokens):
    """Gives what cannot be used for texts that begin with a certain word."""

    name = "spoilt"

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        found = super().encode_passages(passages)
        for place, text in enumerate(passages):
            if text.startswith("nan"):
                found[place][0, 0] = np.nan
            elif text.startswith("long"):
                found[place] *= 3
            elif text.startswith("wide"):
                found[place] = np.ones((2, 25), np.float32)
        return found[:-1] if passages[-1] == "lost" else found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nan here", "a vector of length nan, not 1, for a token of 'nan here'"),
        ("wide", r"returned an array \(2, 25\); an array \(2, 24\) was expected"),
    ],
)
def test_an_encoder_whose_vectors_cannot_be_used_is_an_error_that_names_the_text(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ColbertRetriever(Spoilt(24)).index(items_of(["red fox", text]), tmp_path)
    assert not (tmp_path / "manifest.json").exists()
