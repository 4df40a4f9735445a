"""A ColBERT index is built in bounded memory, from one pass of the encoder, to the same bytes every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hashed_tokens import HashedTokens
from hashed_words import items_of

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ModelError
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever


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
        ("wide", r"returned \(2, 25\) for 'wide'; an array \[tokens, 24\] was expected"),
    ],
)
def test_an_encoder_whose_vectors_cannot_be_used_is_an_error_that_names_the_text(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ColbertRetriever(Spoilt(24)).index(items_of(["red fox", text]), tmp_path)
    assert not (tmp_path / "manifest.json").exists()
