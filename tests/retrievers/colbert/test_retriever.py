"""Late interaction gives what MaxSim by hand gives; compressed, it comes close, and promises the same in every way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hashed_tokens import HashedTokens, naive_maxsim
from hashed_words import items_of, rows_of
from soaking import mostly_soaked
from token_passages import ASKED, ENCODER, QUERIES, SPOKEN, TEXTS

import nlp_retrieval
from nlp_retrieval import BeirLoader, SearchableItem
from nlp_retrieval.encoders.base import Vectors
from nlp_retrieval.encoders.colbert import ColbertEncoder
from nlp_retrieval.errors import RetrievalWarning
from nlp_retrieval.retrievers.colbert.retriever import ColbertRetriever

DEMO = Path(nlp_retrieval.__file__).parent / "demo"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("colbert") / "index"
    for bits in (None, 2, 4):
        ColbertRetriever(ENCODER, bits=bits).index(items_of(TEXTS), folder)
    return folder


@pytest.mark.parametrize("k", mostly_soaked([10, 1, 5000]))
def test_exact_search_gives_maxsim_by_hand(path: Path, k: int) -> None:
    found, passages = ColbertRetriever(ENCODER, bits=None).retrieve(ASKED[:12], path, k), ENCODER.encode_passages(TEXTS)
    for tokens, hits in zip(ENCODER.encode_queries(QUERIES[:12]), found, strict=True):
        scores = np.array([naive_maxsim(tokens, passage) for passage in passages])
        rows = rows_of(hits)
        assert len(rows) == min(k, SPOKEN.sum())
        np.testing.assert_allclose([hit.score for hit in hits], scores[rows], atol=2e-3)  # float16 on disk
        np.testing.assert_allclose(scores[rows], np.sort(scores)[::-1][: len(rows)], atol=2e-3)


class Remembered(HashedTokens):
    """What a model gave for the texts of the demo, so that it is asked once."""

    name = "remembered"

    def __init__(self) -> None:
        super().__init__(128)
        self.of: dict[str, Vectors] = {}

    def encode_queries(self, queries: list[str]) -> list[Vectors]:
        return [self.of[query] for query in queries]

    def encode_passages(self, passages: list[str]) -> list[Vectors]:
        return [self.of[passage] for passage in passages]


@pytest.fixture(scope="module")
def demo() -> tuple[Remembered, list[SearchableItem], list[str]]:
    items = BeirLoader(DEMO / "corpus.jsonl").load()
    claims = [claim["claim"] for claim in json.loads((DEMO / "claims.json").read_text())]
    model = ColbertEncoder("sentence-transformers/all-MiniLM-L6-v2", device="cpu")
    encoder, texts = Remembered(), [item.text for item in items]
    with pytest.warns(RetrievalWarning, match="not a multi-vector checkpoint"):
        encoder.of = dict(zip(texts, model.encode_passages(texts), strict=True))
    encoder.of |= dict(zip(claims, model.encode_queries(claims), strict=True))
    return encoder, items, claims


@pytest.mark.parametrize(("bits", "least"), [(2, 0.85), pytest.param(4, 0.95, marks=pytest.mark.soak)])
def test_compressed_search_comes_close_to_exact_search_over_real_passages(
    demo: tuple[Remembered, list[SearchableItem], list[str]], tmp_path: Path, bits: Literal[2, 4], least: float
) -> None:
    encoder, items, claims = demo
    asked = [[claim] for claim in claims]
    exact, compressed = ColbertRetriever(encoder, bits=None), ColbertRetriever(encoder, bits=bits, rescored=64)
    exact.index(items, tmp_path)
    compressed.index(items, tmp_path)
    one, other = exact.retrieve(asked, tmp_path, 10), compressed.retrieve(asked, tmp_path, 10)
    overlap = [
        len({hit.item.item_id for hit in a} & {hit.item.item_id for hit in b}) / 10 for a, b in zip(one, other, strict=True)
    ]
    assert np.mean(overlap) >= least
