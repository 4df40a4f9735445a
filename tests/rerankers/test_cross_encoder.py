"""A cross-encoder's score is the model's own, whatever stands beside a pair; what is no such model is refused with a cure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nlp_retrieval import RetrievalResult, SearchableItem
from nlp_retrieval.errors import ModelError
from nlp_retrieval.rerankers.cross_encoder import CrossEncoderReranker

from .tiny_models import TinyOnnx, save_bert

QUERY = "who wrote the novel that Kubrick filmed"
TEXTS = [
    "The Shining is a novel.",
    "red fox",
    "",
    "Köln, 東京 🦊",
    "blue whale, green tree, red fox and the novel that Kubrick filmed",
    "red red red",
]


def items_of(texts: list[str]) -> list[SearchableItem]:
    return [SearchableItem(item_id=f"d{row}", content=text) for row, text in enumerate(texts)]


def results(items: list[SearchableItem]) -> list[RetrievalResult]:
    return [
        RetrievalResult(item=item, score=10.0 - place, signals={"bm25.score": 10.0 - place, "bm25.rank": place + 1.0})
        for place, item in enumerate(items)
    ]


def scores_of(reranker: CrossEncoderReranker, query: str, texts: list[str]) -> NDArray[np.floating]:
    """By the public way, in the order of ``texts``."""
    hits = reranker.rerank([query], [results(items_of(texts))], len(texts))[0]
    found = {hit.item.item_id: hit.signals["cross_encoder.score"] for hit in hits}
    return np.array([found[f"d{row}"] for row in range(len(texts))])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture(scope="module")
def onnx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return TinyOnnx().save(tmp_path_factory.mktemp("models") / "onnx")


def by_transformers(folder: Path, query: str, text: str) -> NDArray[np.floating]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)([query], [text], truncation=True, return_tensors="pt")
    with torch.inference_mode():
        found: NDArray[np.floating] = AutoModelForSequenceClassification.from_pretrained(folder)(**tokens).logits[0].numpy()
    return found


def test_scores_by_torch_are_the_logits_that_transformers_gives_for_each_pair(bert: Path) -> None:
    wanted = [by_transformers(bert, QUERY, text)[0] for text in TEXTS]
    assert np.ptp(wanted) > 0.1
    np.testing.assert_allclose(scores_of(CrossEncoderReranker(str(bert), device="cpu"), QUERY, TEXTS), wanted, atol=1e-5)


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("file", ["model.onnx", "onnx/model.onnx"])
def test_scores_by_onnx_are_those_of_the_graph_by_hand(tmp_path: Path, labels: int, file: str) -> None:
    model = TinyOnnx(labels)
    folder = model.save(tmp_path / "model", file)
    logits = np.array([model.logits(QUERY, text) for text in TEXTS])
    wanted = logits[:, 1] - logits[:, 0] if labels == 2 else logits[:, 0]
    found = scores_of(CrossEncoderReranker(str(folder), backend="onnx"), QUERY, TEXTS)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


# what cannot be used


def test_a_model_without_a_scoring_head_is_refused_because_a_random_one_would_be_drawn(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "encoder", head=False)
    with pytest.raises(ModelError, match="is not a cross-encoder but BertModel, without a scoring head"):
        scores_of(CrossEncoderReranker(str(folder), device="cpu"), "red", ["fox"])
