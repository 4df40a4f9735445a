"""Passages are ranked as the model itself would: by cosine, dot product or euclidean distance, whatever its settings say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from named_models import NAMED

from nlp_retrieval import (
    FaissRetriever,
    MultiSignalReranker,
    SearchableItem,
    Searcher,
    SentenceTransformerEncoder,
)
from nlp_retrieval.errors import ConfigurationError, ModelError

WORDS = "red fox and blue whale green tree who filmed the".split()
TEXTS = [" ".join(np.random.default_rng(number).choice(WORDS, 1 + number % 7)) for number in range(40)]


def model_that_says(folder: Path, similarity: str | None) -> Path:
    NAMED["encoder"].save(folder, 3)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"similarity_fn_name": similarity}))
    return folder


@pytest.mark.parametrize("backend", ["torch", "onnx"])
@pytest.mark.parametrize("similarity", [None, "cosine", "dot", "euclidean"])
def test_faiss_ranks_by_the_similarity_of_the_model(tmp_path: Path, similarity: str | None, backend: str) -> None:
    from sentence_transformers import SentenceTransformer

    folder = model_that_says(tmp_path / "model", similarity)
    encoder = SentenceTransformerEncoder(str(folder), precision="float32", device="cpu", backend=backend)
    items = [SearchableItem(item_id=str(number), content=text) for number, text in enumerate(TEXTS)]
    searcher = Searcher([FaissRetriever(encoder, index="flat")])
    searcher.index(items, tmp_path / "index")
    model = SentenceTransformer(str(folder), device="cpu")
    wanted = model.similarity(model.encode(TEXTS[:5]), model.encode(TEXTS)).numpy()
    for query, row in zip(TEXTS[:5], wanted, strict=True):
        found = [int(hit.item.item_id) for hit in searcher.search([query], k=10)[0]]
        np.testing.assert_allclose(row[found], np.sort(row)[::-1][:10], atol=2e-3)


@pytest.mark.parametrize("similarity", ["dot", "euclidean"])
def test_what_compares_by_cosine_refuses_a_model_of_another_similarity(tmp_path: Path, similarity: str) -> None:
    encoder = SentenceTransformerEncoder(str(model_that_says(tmp_path / "model", similarity)), device="cpu")
    items = [SearchableItem(item_id=str(number), content=text) for number, text in enumerate(TEXTS)]
    searcher = Searcher(["bm25"], reranker=MultiSignalReranker(encoder=encoder))
    searcher.index(items, tmp_path / "index")
    with pytest.raises(ModelError, match=f"multi_signal compares .* by {similarity}; pass normalize=True"):
        searcher.search(["red fox"], k=3)


def test_scores_of_a_retriever_that_are_no_cosines_are_no_signal(tmp_path: Path) -> None:
    folder = str(model_that_says(tmp_path / "model", None))
    long = SentenceTransformerEncoder(folder, normalize=False, device="cpu", precision="float32")
    searcher = Searcher([FaissRetriever(long)], reranker=MultiSignalReranker())
    searcher.index([SearchableItem(item_id=str(number), content=text) for number, text in enumerate(TEXTS)], tmp_path / "index")
    with pytest.raises(ConfigurationError, match=r"faiss\.score is no cosine"):
        searcher.search(["red fox"], k=3)


def test_a_similarity_that_is_no_inner_product_is_an_error(tmp_path: Path) -> None:
    folder = model_that_says(tmp_path / "model", "manhattan")
    with pytest.raises(ModelError, match=r'compares vectors by "manhattan".*normalize=True'):
        SentenceTransformerEncoder(str(folder), device="cpu").encode_queries(["red fox"])
