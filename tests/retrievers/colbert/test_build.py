"""A ColBERT index is built in bounded memory, from one pass of the encoder, to the same bytes every time."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hashed_tokens import HashedTokens
from hashed_words import items_of, rows_of
from token_passages import ASKED, ENCODER, TEXTS

from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.errors import ConfigurationError, ModelError
from nlp_retrieval.retrievers.colbert import codec as colbert_centroids
from nlp_retrieval.retrievers.colbert import files as colbert_build
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

BITS: tuple[Literal[2, 4] | None, ...] = (None, 2, 4)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colbert") / "index"
    for bits in BITS:
        ColbertRetriever(ENCODER, bits=bits).index(items_of(TEXTS), folder)
    return folder


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


class Watched(HashedTokens):
    """Remembers how many passages came at once."""

    name = "watched"
    at_once: list[int]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        self.at_once = [*getattr(self, "at_once", []), len(passages)]
        return super().encode_passages(passages)


def test_a_build_never_holds_the_whole_corpus_and_encodes_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colbert_build, "TOKENS_AT_ONCE", 500)
    monkeypatch.setattr(colbert_build, "PAIRS_AT_ONCE", 700)
    read = []
    whole = np.fromfile

    def counted(file: object, dtype: np.dtype, count: int) -> np.ndarray:
        read.append(count)
        return whole(file, dtype, count)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(np, "fromfile", counted)
    encoder = Watched(24)
    retriever = ColbertRetriever(encoder, bits=2, train_size=1000)
    retriever.index(items_of(TEXTS), tmp_path)
    assert max(encoder.at_once) <= 256
    assert sum(encoder.at_once) == len(TEXTS)
    assert max(read) <= 500 * 24
    found = retriever.retrieve([[TEXTS[0]]], tmp_path, 1)
    assert TEXTS[rows_of(found[0])[0]] == TEXTS[0]


def test_blocks_of_any_size_give_the_same_lists(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(colbert_build, "PAIRS_AT_ONCE", 50)
    monkeypatch.setattr(colbert_build, "TOKENS_AT_ONCE", 16_384 // 16)
    ColbertRetriever(ENCODER, bits=2).index(items_of(TEXTS), tmp_path)
    (folder,) = tmp_path.glob("colbert-*")
    codes, offsets = np.load(folder / "codes.npy"), np.load(folder / "offsets.npy")
    owner = np.repeat(np.arange(len(TEXTS)), np.diff(offsets))
    bounds, rows = np.load(folder / "list_offsets.npy"), np.load(folder / "list_rows.npy")
    for centroid in range(len(bounds) - 1):
        wanted = np.unique(owner[codes == centroid])
        assert rows[bounds[centroid] : bounds[centroid + 1]].tolist() == wanted.tolist()


def test_many_centroids_are_trained_in_two_levels_and_find_as_much(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(colbert_centroids, "_FLAT_UP_TO", 64)
    retriever = ColbertRetriever(ENCODER, bits=4, centroids=512)
    retriever.index(items_of(TEXTS), tmp_path)
    (folder,) = tmp_path.glob("colbert-*")
    assert len(np.load(folder / "centroids.npy")) == 512
    exact = ColbertRetriever(ENCODER, bits=None).retrieve(ASKED, path, 10)
    found = retriever.retrieve(ASKED, tmp_path, 10)
    ratios = [sum(h.score for h in a) / sum(h.score for h in b) for a, b in zip(found, exact, strict=True)]
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)
    assert np.mean([len(set(rows_of(a)) & set(rows_of(b))) for a, b in zip(found, exact, strict=True)]) > 8


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
        ("nan here", "NaN or infinity for a token of 'nan here'"),
        ("wide", r"returned \(2, 25\) for 'wide'; an array \[tokens, 24\] was expected"),
    ],
)
def test_an_encoder_whose_vectors_cannot_be_used_is_an_error_that_names_the_text(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ColbertRetriever(Spoilt(24)).index(items_of(["red fox", text]), tmp_path)
    assert not (tmp_path / "manifest.json").exists()
